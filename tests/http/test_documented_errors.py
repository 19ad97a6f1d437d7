"""The documented example of each error is the response of a request that causes it."""

import re
from io import BytesIO

import pytest
import sqlalchemy as sa

from posting.db.models import TOKENS_PER_USER
from posting.http.idempotency import StillUnderWay
from tests.helpers import pictures
from tests.helpers.assertions import assert_problem
from tests.http.test_access import BODIES, NAMES

PATHS = {re.sub("{.*}", "{id}", path): path for path in NAMES.values()}
CROSS_SITE = {"Sec-Fetch-Site": "cross-site"}


@pytest.fixture
def object_id(id_of):
    """Return a function that returns the id of Alice's object for the path of an operation."""

    def object_id(operation):
        kind = re.search("{(.*)}", PATHS.get(operation.split()[1], ""))
        return id_of(kind[1]) if kind else ""

    return object_id


@pytest.fixture
def documented(anonymous):
    """Return a function that yields each operation that documents a status, and the example."""

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
    """Return the arguments of a test client for a valid body of an operation."""
    if operation == "POST /posts/{id}/images":
        return {"data": {"file": (BytesIO(pictures.png()), "a.png")} | changes}
    if operation.startswith(("POST", "PATCH")):
        return {"json": BODIES.get(operation.replace("{id}", "{post}"), {}) | changes}
    return {}


def send(client, operation, id="x", **arguments):
    method, path = operation.split()
    return client.open(path.replace("{id}", id), method=method, **arguments)


def assert_matches(response, example):
    """Assert that the response is the documented example, apart from its request ID."""
    body = assert_problem(response, example["status"])
    assert body == example | {"request_id": body["request_id"]}


def test_each_401_is_as_documented(documented, anonymous):
    for operation, example in documented(401):
        body = body_of(operation, password="another password")
        assert_matches(send(anonymous, operation, "a" * 21, **body), example)


def test_each_404_is_as_documented(documented, alice):
    operations = dict(documented(404))
    assert len(operations) > 12
    for operation, example in operations.items():
        assert_matches(send(alice, operation, "a" * 21, **body_of(operation)), example)


def test_each_403_is_as_documented(documented, object_id, sign_in, flask, make_app):
    bob = sign_in("bob")
    sign_in("carol")
    flask("users", "suspend", "carol")
    token = bob.post("/tokens", json=BODIES["POST /tokens"]).json["token"]
    closed = make_app(SIGNUP="closed").test_client()
    own = {"POST /posts", "POST /posts/{id}/comments", "POST /signout", "POST /preview"}
    operations = dict(documented(403))
    assert own < operations.keys()
    for operation, example in operations.items():
        headers = CROSS_SITE if operation in own else {}
        client = closed if operation == "POST /signup" else bob
        if example["code"] == "token_not_allowed":
            headers = {"Authorization": f"Bearer {token}"}
        changes = {"username": "carol"} if operation == "POST /signin" else {}
        body = body_of(operation, **changes)
        response = send(client, operation, object_id(operation), headers=headers, **body)
        assert_matches(response, example)


def test_each_409_is_as_documented(documented, alice, bob, with_token):
    for _ in range(TOKENS_PER_USER):
        with_token("read")
    for operation, example in documented(409):
        if operation in {"POST /signup", "PATCH /users/{id}"}:
            body = body_of(operation, username="bob")
            assert_matches(send(alice, operation, alice.user["id"], **body), example)
        elif operation == "POST /tokens":
            assert_matches(send(alice, operation, **body_of(operation)), example)
        else:
            assert example["detail"] == StillUnderWay.description


def test_each_412_is_as_documented(documented, object_id, alice):
    headers = {"If-Match": '"99"'}
    for operation, example in documented(412):
        body = body_of(operation)
        response = send(alice, operation, object_id(operation), headers=headers, **body)
        assert_matches(response, example)


def test_each_422_is_as_documented(documented, alice):
    operations = dict(documented(422))
    assert len(operations) > 20
    for operation, example in operations.items():
        takes_body = operation.startswith(("POST", "PATCH")) and operation != "POST /signout"
        body = {"json": {}} if takes_body else {}
        if operation == "POST /posts/{id}/images":
            body = {"data": {"alt": "A loom"}, "content_type": "multipart/form-data"}
        query = "" if takes_body or "{id}" in operation else "?page=1"
        assert_matches(send(alice, operation + query, **body), example)


def test_each_400_is_as_documented(documented, alice, make_app):
    client = make_app(PUBLIC_URL="https://example.org").test_client()
    for operation, example in documented(400):
        if operation == "POST /posts/{id}/images":
            body = {"data": b"x", "content_type": "multipart/form-data"}
            response = send(alice, operation, **body)
        elif "JSON" in example["detail"]:
            response = send(alice, operation, data=b"x", content_type="application/json")
        else:
            response = send(client, operation, headers={"Host": "example.net"})
        assert_matches(response, example)


def test_each_413_and_415_is_as_documented(documented, make_app, sign_in):
    client = sign_in("alice").copy(make_app(MAX_JSON_BYTES=1024, MAX_IMAGE_BYTES=1024))
    large = b"x" * 2000
    for operation, example in documented(413, client):
        form = {"data": {"file": (BytesIO(large), "a.png")}}
        body = {"data": large, "content_type": "application/json"}
        is_form = operation == "POST /posts/{id}/images"
        assert_matches(send(client, operation, **(form if is_form else body)), example)
    for operation, example in documented(415, client):
        body = {"data": b"x", "content_type": "text/plain"}
        assert_matches(send(client, operation, **body), example)


def test_each_429_is_as_documented(documented, make_app, sign_in):
    names = ("SIGNIN", "SIGNUP", "POSTS", "COMMENTS", "IMAGES")
    limits = {f"LIMIT_{name}": "1/hour" for name in names}
    alice = sign_in("alice")
    post = alice.create_post("On engines")
    client = alice.copy(make_app(RATE_LIMITS="on", **limits))
    operations = dict(documented(429, client))
    assert len(operations) == 8
    # Sign-in comes last, because its failures count for the address too.
    for operation in sorted(operations, key=lambda operation: operation == "POST /signin"):
        changes = {}
        if operation == "PATCH /users/{id}":
            changes = {"password": "another password", "current_password": "wrong"}
        id = alice.user["id"] if "users" in operation else post["id"]
        for attempt in range(21):
            if operation == "POST /signin":
                changes = {"username": f"unknown-{attempt}"}
            response = send(client, operation, id, **body_of(operation, **changes))
            if response.status_code == 429:
                break
        assert_matches(response, operations[operation])


def test_a_limit_that_is_off_is_not_documented(documented, make_app):
    client = make_app(LIMIT_POSTS="").test_client()
    assert "POST /posts" not in dict(documented(429, client))


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (500, RuntimeError("something internal")),
        (503, sa.exc.OperationalError("SELECT 1", {}, Exception("database is locked"))),
    ],
)
def test_each_500_and_503_is_as_documented(documented, make_app, status, error):
    app = make_app(PROPAGATE_EXCEPTIONS=False)

    def fail():
        raise error

    app.view_functions["posts.list_posts"] = fail
    [example] = {str(example): example for _, example in documented(status)}.values()
    assert_matches(app.test_client().get("/posts"), example)
