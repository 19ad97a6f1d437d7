"""The document shows each operation's own errors: each example is what a request is answered."""

import re
from io import BytesIO

import pytest
import sqlalchemy as sa

from posting.http.idempotency import StillUnderWay
from tests.helpers import pictures
from tests.helpers.assertions import problem
from tests.http.test_access import BODIES, NAMES

SHOWN = {re.sub("{.*}", "{id}", path): path for path in NAMES.values()}
BROWSER = {"Sec-Fetch-Site": "cross-site"}


@pytest.fixture
def owned(alice, post):
    """The ids of Alice's objects, by the names that test_access gives paths."""
    return {
        "post": post["id"],
        "comment": alice.add_comment(post, "A comment")["id"],
        "image": alice.add_image(post)["id"],
        "user": alice.user["id"],
        "session": alice.get("/sessions").json[0]["id"],
    }


@pytest.fixture
def documented(anonymous):
    """Return each operation that documents a status, with its example."""

    def documented(status, client=anonymous):
        document = client.get("/openapi.json").json
        for path, item in document["paths"].items():
            for method, operation in item.items():
                response = operation["responses"].get(str(status)) if method != "parameters" else {}
                if response and "$ref" in response:
                    name = response["$ref"].rpartition("/")[2]
                    response = document["components"]["responses"][name]
                if response:
                    [content] = response["content"].values()
                    yield f"{method.upper()} {path}", content["example"]

    return documented


def body_of(operation, **changes):
    """Return a valid body for an operation, as arguments of a test client."""
    if operation == "POST /posts/{id}/images":
        return {"data": {"file": (BytesIO(pictures.png()), "a.png")} | changes}
    shown = operation.replace("{id}", "{post}")
    if operation.startswith(("POST", "PATCH")):
        return {"json": BODIES.get(shown, {}) | changes}
    return {}


def send(client, operation, id="x", **arguments):
    method, path = operation.split()
    return client.open(path.replace("{id}", id), method=method, **arguments)


def id_of(operation, owned):
    """Return the id of what Alice owns for an operation; "" where its path has none."""
    kind = re.search("{(.*)}", SHOWN.get(operation.split()[1], ""))
    return owned[kind[1]] if kind else ""


def assert_shown(answer, example):
    """Assert that the answer is the problem that the document shows."""
    body = problem(answer, example["status"])
    assert body == example | {"request_id": body["request_id"]}


def test_401(documented, anonymous):
    wrong = {"password": "another password"}
    for operation, example in documented(401):
        answer = send(anonymous, operation, "a" * 21, **body_of(operation, **wrong))
        assert_shown(answer, example)


def test_404(documented, alice):
    operations = dict(documented(404))
    assert len(operations) > 12
    for operation, example in operations.items():
        assert_shown(send(alice, operation, "a" * 21, **body_of(operation)), example)


def test_403(documented, owned, sign_in, flask, make_app):
    bob = sign_in("bob")
    sign_in("carol")
    flask("users", "suspend", "carol")
    closed = make_app(SIGNUP="closed").test_client()
    own = {"POST /posts", "POST /posts/{id}/comments", "POST /signout", "DELETE /sessions/{id}"}
    operations = dict(documented(403))
    assert own < operations.keys()
    for operation, example in operations.items():
        headers = BROWSER if operation in own else {}
        client = closed if operation == "POST /signup" else bob
        changes = {"username": "carol"} if operation == "POST /signin" else {}
        arguments = {"headers": headers} | body_of(operation, **changes)
        answer = send(client, operation, id_of(operation, owned), **arguments)
        assert_shown(answer, example)


def test_409(documented, alice, bob):
    taken = {"username": "bob"}
    for operation, example in documented(409):
        if operation in {"POST /signup", "PATCH /users/{id}"}:
            answer = send(alice, operation, alice.user["id"], **body_of(operation, **taken))
            assert_shown(answer, example)
        else:
            assert example["detail"] == StillUnderWay.description


def test_412(documented, owned, alice):
    for operation, example in documented(412):
        arguments = {"headers": {"If-Match": '"99"'}} | body_of(operation)
        assert_shown(send(alice, operation, id_of(operation, owned), **arguments), example)


def test_422(documented, alice):
    operations = dict(documented(422))
    assert len(operations) > 20
    for operation, example in operations.items():
        takes_body = operation.startswith(("POST", "PATCH")) and operation != "POST /signout"
        body = {"json": {}} if takes_body else {}
        if operation == "POST /posts/{id}/images":
            body = {"data": {"alt": "A loom"}, "content_type": "multipart/form-data"}
        query = "" if takes_body or "{id}" in operation else "?page=1"
        assert_shown(send(alice, operation + query, **body), example)


def test_400(documented, alice, make_app):
    client = make_app(PUBLIC_URL="https://example.org").test_client()
    for operation, example in documented(400):
        if operation == "POST /posts/{id}/images":
            body = {"data": b"x", "content_type": "multipart/form-data"}
            answer = send(alice, operation, **body)
        elif "JSON" in example["detail"]:
            answer = send(alice, operation, data=b"x", content_type="application/json")
        else:
            answer = send(client, operation, headers={"Host": "example.net"})
        assert_shown(answer, example)


def test_413_and_415(documented, make_app, sign_in):
    client = make_app(MAX_JSON_BYTES=1024, MAX_IMAGE_BYTES=1024).test_client()
    client.set_cookie("session", sign_in("alice").get_cookie("session").value)
    large = b"x" * 2000
    for operation, example in documented(413, client):
        form = {"data": {"file": (BytesIO(large), "a.png")}}
        body = {"data": large, "content_type": "application/json"}
        is_form = operation == "POST /posts/{id}/images"
        assert_shown(send(client, operation, **(form if is_form else body)), example)
    for operation, example in documented(415, client):
        body = {"data": b"x", "content_type": "text/plain"}
        assert_shown(send(client, operation, **body), example)


def test_429(documented, make_app, sign_in):
    names = ("SIGNIN", "SIGNUP", "POSTS", "COMMENTS", "IMAGES")
    limits = {f"LIMIT_{name}": "1/hour" for name in names}
    alice = sign_in("alice")
    post = alice.create_post("On engines")
    client = make_app(RATE_LIMITS="on", **limits).test_client()
    client.set_cookie("session", alice.get_cookie("session").value)
    operations = dict(documented(429, client))
    assert len(operations) == 6
    # Sign-in comes last, since its failures count for the address as well.
    for operation in sorted(operations, key=lambda operation: operation == "POST /signin"):
        changes = {}
        if operation == "PATCH /users/{id}":
            changes = {"password": "another password", "current_password": "wrong"}
        id = alice.user["id"] if "users" in operation else post["id"]
        for attempt in range(6):
            if operation == "POST /signin":
                changes = {"username": f"unknown-{attempt}"}
            answer = send(client, operation, id, **body_of(operation, **changes))
            if answer.status_code == 429:
                break
        assert_shown(answer, operations[operation])


def test_limits_that_are_lifted_are_not_documented(documented, make_app):
    client = make_app(LIMIT_POSTS="").test_client()
    assert "POST /posts" not in dict(documented(429, client))


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (500, RuntimeError("the inside")),
        (503, sa.exc.OperationalError("SELECT 1", {}, Exception("database is locked"))),
    ],
)
def test_500_and_503(documented, make_app, status, error):
    app = make_app(PROPAGATE_EXCEPTIONS=False)

    def fail():
        raise error

    app.view_functions["posts.list_posts"] = fail
    [example] = {str(example): example for _, example in documented(status)}.values()
    assert_shown(app.test_client().get("/posts"), example)
