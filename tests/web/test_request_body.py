"""Invalid and unusual request bodies and queries, at every operation that takes them."""

import json
import re
from io import BytesIO

import pytest

from tests.conftest import add_topic, report
from tests.helpers.assertions import assert_problem, error_locations

MAX_BYTES = 5 * 2**18
POST = '{"title": "On engines", "content": "Some text."%s}'

# Each operation that takes JSON, and its text fields.
TEXT_FIELDS = {
    "POST /posts": {"title", "content"},
    "PATCH /posts/{post}": {"title", "content"},
    "POST /posts/{post}/comments": {"content"},
    "PATCH /comments/{comment}": {"content"},
    "PATCH /images/{image}": {"alt"},
    "POST /preview": {"content"},
    "POST /tokens": {"name", "scope"},
    "POST /signup": {
        "username",
        "password",
        "display_name",
        "bio",
        "application",
        "email",
        "invitation",
    },
    "PUT /users/me/email": {"email", "current_password"},
    "POST /email-confirmations": {"code"},
    "POST /password-resets/requests": {"name"},
    "PUT /push/subscriptions": {"endpoint"},
    "POST /webhooks": {"url", "current_password"},
    "POST /topics": {"name", "color"},
    "PATCH /topics/{topic}": {"name", "color"},
    "PATCH /users/me/notifications": {"mail", "text", "time_zone"},
    "POST /invitations": {"note"},
    "POST /notifications/read": {"up_to"},
    "PUT /posts/{post}/subscription": {"level"},
    "PUT /posts/{post}/seen": {"up_to"},
    "POST /posts/{post}/reports": {"reason"},
    "POST /comments/{comment}/reports": {"reason"},
    "POST /users/{user}/reports": {"reason"},
    "PATCH /reports/{report}": {"outcome", "note"},
    "PUT /users/{user}/suspension": {"reason", "until"},
    "PUT /users/{user}/role": {"current_password"},
    "POST /users/{user}/reset-link": {"current_password"},
    "POST /session-confirmations": {"current_password"},
    "PATCH /site": {"name", "description", "about", "rules", "accent"},
    "POST /moderation/users/{user}/removal": {"reason"},
    "POST /password-resets": {"code", "username", "recovery_code", "password"},
    "POST /recovery-codes": {"current_password"},
    "POST /signin": {"username", "password"},
    "PATCH /users/me": {"username", "password", "display_name", "bio", "current_password"},
    "PATCH /users/{user}": {"username", "password", "display_name", "bio", "current_password"},
}
OF_OWNERS = {
    "POST /users/{user}/reset-link",
    "PATCH /site",
    "POST /topics",
    "PATCH /topics/{topic}",
    "PUT /users/{user}/role",
    "POST /webhooks",
    "POST /invitations",
    "PATCH /reports/{report}",
    "PUT /users/{user}/suspension",
    "POST /moderation/users/{user}/removal",
}
INTEGERS = ("9223372036854775808", "-9223372036854775809", "-1", "1.5", "0", "1e5", "9" * 400)


@pytest.fixture(params=TEXT_FIELDS)
def operation(request):
    return request.param


@pytest.fixture
def send(operation, alice, owner, post):
    """Send raw bytes to one of the operations that take JSON."""
    client = owner if operation in OF_OWNERS else alice
    method, path = operation.split()
    url = path.format(
        post=post["id"],
        user=alice.user["id"],
        comment=alice.add_comment(post, "Indeed.")["id"] if "{comment}" in path else "",
        image=alice.add_image(post)["id"] if "{image}" in path else "",
        topic=add_topic(alice.application) if "{topic}" in path else "",
        report=report(alice, alice.add_comment(post, "Indeed.")) if "{report}" in path else "",
    )

    def send(data, content_type="application/json", **options):
        return client.open(url, method=method, data=data, content_type=content_type, **options)

    return send


def nested(depth):
    return b'{"title": ' + b"[" * (depth - 1) + b"]" * (depth - 1) + b"}"


def test_every_operation_that_takes_json_is_listed(anonymous):
    document = anonymous.get("/openapi.json").json
    documented = {
        f"{method.upper()} {path}"
        for path, item in document["paths"].items()
        for method, operation in item.items()
        if method != "parameters"
        and "application/json" in operation.get("requestBody", {}).get("content", {})
    }
    assert documented == {re.sub(r"{\w+}", "{id}", operation) for operation in TEXT_FIELDS}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"not json",
        b'{"title": NaN}',
        b'{"title": -Infinity}',
        b'{"title": 1e999}',
        b'{"title": ' + b"9" * 5000 + b"}",
        b'{"title": "a", "title": "b"}',
        b'{"a": {"b": 1, "b": 2}}',
        b'{"title": "\xff"}',
        b'\xef\xbb\xbf{"title": "a"}',
        '{"title": "a"}'.encode("utf-16"),
        '{"title": "a"}'.encode("utf-32"),
        b'{"title": "\xed\xa0\x80"}',
        b'{"title": "a\x00b"}',
        b'{"title": "a"} {"title": "b"}',
        nested(101),
        nested(1000),
        nested(100_000),
    ],
    ids=range(19),
)
def test_invalid_json_gets_400(send, body):
    assert_problem(send(body), 400)


def test_a_depth_of_a_hundred_is_accepted(send):
    assert "/title" in error_locations(send(nested(100)))


@pytest.mark.parametrize("body", [b"[]", b'"text"', b"1", b"null", b"true"])
def test_json_other_than_an_object_gets_422(send, body):
    assert error_locations(send(body)) == {""}


@pytest.mark.parametrize(
    "content_type",
    ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "",
     "application/jsonx", "text/json"],
)  # fmt: skip
def test_other_media_types_get_415(send, content_type):
    assert_problem(send(POST % "", content_type), 415)


def test_the_charset_parameter_is_ignored(alice):
    response = alice.post(
        "/posts", data=POST % "", content_type="Application/JSON; charset=latin-1"
    )
    assert response.status_code == 201


def test_merge_patch_gets_415_except_for_patch(alice):
    response = alice.post("/posts", data=POST % "", content_type="application/merge-patch+json")
    assert_problem(response, 415)


@pytest.mark.parametrize("text", ['"a\\ud800b"', '"\\udfff"', '"a\\u0000"'])
def test_text_with_a_nul_or_a_lone_surrogate_gets_422(send, operation, text):
    fields = sorted(TEXT_FIELDS[operation])
    body = ", ".join(f'"{field}": {text}' for field in fields)
    assert {f"/{field}" for field in fields} <= error_locations(send(f"{{{body}}}"))


def test_a_surrogate_pair_is_one_character(alice):
    response = alice.post(
        "/posts",
        data='{"title": "\\ud83d\\ude82", "content": "c"}',
        content_type="application/json",
    )
    assert response.json["title"] == "🚂"


def test_a_lone_surrogate_in_a_name_is_replaced_in_the_error(send):
    assert "/?" in error_locations(send(b'{"\\ud800": 1}'))


@pytest.mark.parametrize("value", [*INTEGERS, "true", "[]", "{}"])
def test_other_types_than_text_get_422(send, operation, value):
    fields = sorted(TEXT_FIELDS[operation])
    body = ", ".join(f'"{field}": {value}' for field in fields)
    assert {f"/{field}" for field in fields} <= error_locations(send(f"{{{body}}}"))


@pytest.mark.parametrize("path", ["/posts", "/posts/{post}/comments"])
@pytest.mark.parametrize(
    "limit",
    [
        *INTEGERS[:4],
        "0",
        "101",
        "",
        " ",
        "x",
        "1x",
        "1_0",
        "\N{FULLWIDTH DIGIT ONE}",
        "+5",
        "1" * 5000,
        "%00",
        "%FF",
        "null",
    ],
)
def test_an_invalid_or_repeated_limit_gets_422(anonymous, post, path, limit):
    url = path.format(post=post["id"])
    assert error_locations(anonymous.get(f"{url}?limit={limit}")) == {"limit"}
    assert error_locations(anonymous.get(f"{url}?limit=5&limit=6")) == {"limit"}


@pytest.mark.parametrize(
    ("query", "parameters"),
    [
        ("cursor=x", {"cursor"}),
        ("cursor=", {"cursor"}),
        ("cursor=%00", {"cursor"}),
        ("cursor=" + "x" * 9999, {"cursor"}),
        ("offset=5&a=b", {"offset", "a"}),
        ("%00=1", {"\0"}),
    ],
)
@pytest.mark.parametrize("path", ["/posts", "/posts/{post}/comments"])
def test_an_invalid_cursor_or_unknown_parameter_gets_422(anonymous, post, path, query, parameters):
    assert error_locations(anonymous.get(f"{path.format(post=post['id'])}?{query}")) == parameters


@pytest.mark.parametrize("value", ["purge", "", "KEEP", "%00", "keep&content=keep"])
def test_an_invalid_choice_for_the_content_of_an_account_gets_422(alice, value):
    url = f"/users/{alice.user['id']}?content={value}"
    assert error_locations(alice.delete(url)) == {"content"}
    assert alice.get("/users/me").status_code == 200


def test_an_object_with_too_many_names_gets_400(send):
    """Each unknown name would be an error of its own in the response."""
    many = json.dumps({f"name{number}": 1 for number in range(51)})
    for body in (many, f'{{"title": {many}}}'):
        assert "more than 50 names" in assert_problem(send(body), 400)["detail"]
    few = json.dumps({f"name{number}": 1 for number in range(40)})
    assert {f"/name{number}" for number in range(40)} <= error_locations(send(few))


def test_a_long_name_is_truncated_in_errors(anonymous):
    body = json.dumps({"n" * 1_000_000: 1})
    response = anonymous.post("/signin", data=body, content_type="application/json")
    assert "/" + "n" * 100 in error_locations(response)


@pytest.mark.parametrize(
    ("count", "more"), [(1234, "1,184 more errors are"), (51, "1 more error is")]
)
def test_at_most_fifty_errors_are_listed(anonymous, count, more):
    query = "&".join(f"name{number}=1" for number in range(count))
    *errors, last = assert_problem(anonymous.get(f"/posts?{query}"), 422)["errors"]
    assert len(errors) == 50
    assert {error["detail"] for error in errors} == {"Unknown field."}
    assert len({error["parameter"] for error in errors}) == 50
    assert last == {"code": "more", "detail": f"{more} not listed."}


def test_the_longest_content_fits_when_it_is_escaped(alice):
    content = "\N{GRINNING FACE}" * 100_000
    body = json.dumps({"title": "\N{GRINNING FACE}" * 200, "content": content})
    response = alice.post("/posts", data=body, content_type="application/json")
    assert response.status_code == 201
    assert response.json["content"] == content


def test_a_body_over_the_limit_gets_413(send):
    body = b'{"title": "' + b"x" * MAX_BYTES + b'"}'
    assert assert_problem(send(body), 413)["detail"] == "The body may have at most 1,310,720 bytes."


class Broken(BytesIO):
    """A body that cannot be read, as when a server receives malformed chunks."""

    def readinto(self, buffer):
        raise ValueError("bad chunk")

    def read(self, size=-1):
        raise ValueError("bad chunk")


def chunked(stream):
    """Pass a body as a server does when it arrives in chunks: without a length."""
    environ = {"wsgi.input": stream, "wsgi.input_terminated": True}
    return {"environ_overrides": environ, "headers": {"Transfer-Encoding": "chunked"}}


def test_a_chunked_body_is_read(send):
    assert_problem(send(None, **chunked(BytesIO(b'{"title": ""}'))), 422)


def test_a_chunked_body_over_the_limit_gets_413(send):
    for length, status in ((MAX_BYTES, 400), (MAX_BYTES + 1, 413), (2**21, 413)):
        error = assert_problem(send(None, **chunked(BytesIO(b"x" * length))), status)
        assert status == 400 or "1,310,720 bytes" in error["detail"]


def test_an_incomplete_body_gets_400(send):
    assert (
        assert_problem(send(None, **chunked(Broken())), 400)["detail"] == "The body is incomplete."
    )


def test_the_limit_is_a_setting(make_app):
    client = make_app(MAX_JSON_BYTES=1024).test_client()
    assert_problem(client.post("/signup", data=b" " * 1025, content_type="application/json"), 413)
    assert_problem(client.post("/signup", data=b" " * 1024, content_type="application/json"), 400)


def test_size_is_checked_before_type_and_type_before_syntax(alice):
    large = b"{" * (MAX_BYTES + 1)
    assert_problem(alice.post("/posts", data=large, content_type="text/plain"), 413)
    assert_problem(alice.post("/posts", data=b"{", content_type="text/plain"), 415)
    assert_problem(alice.post("/posts?x=1", data=b"{", content_type="application/json"), 400)


def test_an_unexpected_body_is_ignored(alice, post):
    for method, url in (("GET", "/posts"), ("DELETE", f"/posts/{post['id']}")):
        assert alice.open(url, method=method, data=b"{").status_code < 300
