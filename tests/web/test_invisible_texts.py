"""No field takes a text that people cannot see, and no line turns around what follows it."""

from io import BytesIO

import pytest

from tests.conftest import TOKEN
from tests.helpers import pictures
from tests.helpers.assertions import assert_problem, error_locations
from tests.helpers.moderation import REASON
from tests.helpers.texts import INVISIBLE

SIGN_UP = {"username": "newcomer", "password": "a long walk by the sea"}
BODIES = {
    "POST /posts": {"title": "x", "content": "x"},
    "PATCH /posts/{post}": {"title": "x", "content": "x"},
    "POST /posts/{post}/comments": {"content": "x"},
    "POST /preview": {"content": "x"},
    "PATCH /images/{image}": {"alt": "x"},
    "POST /tokens": TOKEN | {"name": "x"},
    "POST /signup": SIGN_UP | {"display_name": "x", "bio": "x", "application": "x"},
    "PATCH /users/me": {"display_name": "x", "bio": "x"},
    "POST /invitations": {"note": "x"},
    "POST /posts/{post}/reports": REASON,
    "PUT /users/{user}/suspension": REASON,
}
FREE = ("username", "password", "scope")
LINES = ("title", "display_name")
FIELDS = [
    (operation, field) for operation, body in BODIES.items() for field in body if field not in FREE
]


@pytest.fixture
def send(alice, moderator, post):
    image = alice.add_image(post)

    def send(operation, **fields):
        method, path = operation.split()
        path = path.format(post=post["id"], user=alice.user["id"], image=image["id"])
        is_of_moderators = path == "/invitations" or "suspension" in path
        client = moderator if is_of_moderators else alice
        return client.open(path, method=method, json=BODIES[operation] | fields)

    return send


@pytest.mark.parametrize(("operation", "field"), FIELDS)
def test_an_invisible_text_is_blank(send, operation, field):
    for text in INVISIBLE:
        errors = assert_problem(send(operation, **{field: text}), 422)["errors"]
        assert errors[0]["pointer"] == f"/{field}"
        assert (
            {"blank"}
            <= {error["code"] for error in errors}
            <= {"blank", "line_break"} | ({"open_direction"} if field in LINES else set())
        ), ascii(text)


@pytest.mark.parametrize(("operation", "field"), FIELDS)
@pytest.mark.parametrize(
    "text", ["👩\u200d💻❤\ufe0f", "\u0645\u06cc\u200c\u062e", "\u202b\u05d0\u202c"]
)
def test_a_text_with_invisible_characters_is_taken(send, operation, field, text):
    response = send(operation, **{field: text})
    assert response.status_code in {200, 201}, response.text
    if field in response.json:
        assert response.json[field] == text


@pytest.mark.parametrize(("operation", "field"), [pair for pair in FIELDS if pair[1] in LINES])
def test_a_line_does_not_turn_around_what_follows(send, operation, field):
    errors = assert_problem(send(operation, **{field: "a\u202eb"}), 422)["errors"]
    assert errors == [
        {
            "code": "open_direction",
            "detail": "Must close each character that changes the direction, such as U+202E.",
            "pointer": f"/{field}",
        }
    ]


def test_the_alternative_text_of_an_upload_is_not_blank(alice, post):
    form = {"file": (BytesIO(pictures.png()), "picture"), "alt": "\u3164"}
    response = alice.post(f"/posts/{post['id']}/images", data=form)
    assert_problem(response, 422)
    assert error_locations(response) == {"/alt"}
