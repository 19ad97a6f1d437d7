"""The documented examples of errors are the responses to requests that cause them."""

import re
from collections import defaultdict
from dataclasses import dataclass
from io import BytesIO
from threading import Semaphore
from typing import Any
from unittest.mock import patch

import psycopg
import pytest
import sqlalchemy as sa
from pysqlite3 import dbapi2 as sqlite

from posting.accounts import passwords
from posting.accounts.models import TOKENS_PER_USER, User
from posting.db.base import db
from posting.db.errors import FILE_MOVED
from posting.db.types import now
from posting.images import codec as imaging
from posting.invitations.models import OPEN_PER_USER
from posting.moderation.store import AlreadyReported
from posting.search import turns
from posting.web import idempotency
from posting.web.idempotency import StillUnderWay
from posting.webhooks.models import WEBHOOKS_PER_OWNER
from tests.conftest import PASSWORD, add_webhook, invite
from tests.helpers import pictures
from tests.helpers.assertions import assert_headers, assert_problem, resolved
from tests.helpers.owners import confirm
from tests.web.test_access import BODIES, NAMES, template

PATHS = {template(path): path for path in NAMES.values()}
UPLOADS = {
    *("POST /images", "POST /posts/{id}/images", "POST /files", "PUT /users/me/avatar"),
    *("PUT /site/logo", "PUT /site/cover"),
}
# Operations whose body has no required field.
OPTIONAL = {
    *("PATCH /users/me", "PATCH /users/me/notifications", "PATCH /site", "POST /invitations")
}
OF_OWNERS = {
    *("POST /webhooks", "PUT /users/{id}/role", "POST /users/{id}/reset-link"),
    *("POST /topics", "PATCH /topics/{id}", "DELETE /topics/{id}"),
    *("PATCH /site", "PUT /site/logo", "PUT /site/cover", "GET /backup"),
}
CROSS_SITE = {"Sec-Fetch-Site": "cross-site"}


@pytest.fixture
def object_id(id_of):
    """Return a function that returns the id of Alice's object for the path of an operation."""

    def object_id(operation):
        path = PATHS.get(operation.split()[1], "") if "{id}" in operation else ""
        kinds = re.findall(r"{(\w+)}", re.sub("/{(side|name)}$", "", path))
        return id_of(kinds[-1]) if kinds else ""

    return object_id


@dataclass(frozen=True)
class Case:
    """A documented error of an operation, with the headers of the response."""

    operation: str
    example: dict[str, Any]
    headers: dict[str, Any]
    document: dict[str, Any]

    @property
    def code(self):
        return self.example["code"]

    def assert_matches(self, response):
        """Assert that the response is the documented one, apart from its request ID."""
        body = assert_problem(response, self.example["status"])
        assert body == self.example | {"request_id": body["request_id"]}
        assert_headers(response, self.headers, self.document)


@pytest.fixture
def documented(app, anonymous):
    """Return a function that returns the documented errors with a status."""

    def documented(status, client=anonymous):
        document, cases = client.get("/openapi.json").json, []
        for path, item in document["paths"].items():
            for method in item.keys() - {"parameters"}:
                response = resolved(document, item[method]["responses"].get(str(status), {}))
                content = response.get("content", {}).get("application/problem+json", {})
                for example in content.get("examples", {}).values():
                    operation = f"{method.upper()} {path}"
                    cases.append(Case(operation, example["value"], response["headers"], document))
        assert cases
        return cases

    with patch.dict(app.config, RATE_LIMITS=True):
        yield documented


def body_of(operation, **changes):
    """Return the arguments of a test client for a valid body of an operation."""
    if operation in UPLOADS:
        file = (BytesIO(b"A loom"), "a.txt") if "files" in operation else None
        return {"data": {"file": file or (BytesIO(pictures.png()), "a.png")} | changes}
    if takes_json(operation):
        method, path = operation.split()
        return {"json": BODIES.get(f"{method} {PATHS.get(path, path)}", {}) | changes}
    return {}


def takes_json(operation):
    """Return whether an operation takes a body, which is JSON unless it is an image."""
    is_write = operation.startswith(("POST", "PUT", "PATCH"))
    return is_write and operation not in {"POST /signout", "POST /applications/{id}/approval"}


def send(client, operation, id="x", token="x", **arguments):
    method, path = operation.split()
    values = {"token": token, "side": "640", "name": "minutes.pdf", "reaction": "heart"}
    url = re.sub(r"{(\w+)}", lambda name: values.get(name[1], id), path)
    return client.open(url, method=method, **arguments)


def operations(cases):
    return {case.operation for case in cases}


def test_each_401_is_as_documented(documented, anonymous):
    cases = documented(401)
    assert len(operations(cases)) > 15
    for case in cases:
        headers = {"Authorization": "Bearer x"} if case.code == "invalid_token" else {}
        body = body_of(case.operation, password="another password")
        case.assert_matches(send(anonymous, case.operation, "a" * 21, headers=headers, **body))


def test_each_404_is_as_documented(documented, owner, id_of):
    cases, token = documented(404), id_of("feed")
    assert len(operations(cases)) > 12
    for case in cases:
        lists = {"GET /posts", "GET /comments"}
        name = "topic" if case.code == "no_such_topic" else "author"
        query = f"?{name}={'a' * 21}" if case.operation in lists else ""
        id, body = "a" * 21, body_of(case.operation)
        if case.code in {"no_such_suspension", "no_such_lock", "no_such_pin"}:
            id = id_of("user" if "/users/" in case.operation else "post")
        if case.code == "no_such_avatar" and "/users/" in case.operation:
            id = owner.user["id"]
        case.assert_matches(send(owner, case.operation + query, id, token, **body))


@pytest.fixture
def carol(sign_in, flask):
    """A suspended user."""
    carol = sign_in("carol")
    flask("users", "suspend", "carol")
    return carol


@pytest.fixture
def clients(bob, with_token, moderator, owner, make_app):
    """The client that is refused with 403 and a code, by the code. Bob, if it is not listed."""
    return defaultdict(
        lambda: bob,
        insufficient_scope=with_token("read"),
        not_confirmed=owner,
        signup_closed=bob.copy(make_app(SIGNUP="closed")),
        target_is_moderator=moderator,
        target_is_owner=moderator,
        token_not_allowed=with_token("write"),
        report_on_yourself=moderator,
    )


@pytest.fixture
def dora(app, sign_in):
    """A user who waits for approval."""
    dora = sign_in("dora")
    with app.app_context():
        db.session.get(User, dora.user["id"]).pending_since = now()
        db.session.commit()
    return dora


@pytest.mark.usefixtures("carol", "dora")
def test_each_403_is_as_documented(documented, object_id, clients, moderator, sign_in):
    inactive = {"suspended": "carol", "pending_approval": "dora"}
    cases = documented(403)
    assert len(operations(cases)) > 18
    for case in cases:
        headers = CROSS_SITE if case.code == "cross_origin" else {}
        changes = {"username": inactive[case.code]} if case.code in inactive else {}
        body, id = body_of(case.operation, **changes), object_id(case.operation)
        if case.code == "target_is_moderator":
            id = moderator.user["id"]
        if case.code == "target_is_owner":
            id = sign_in("olive", role="owner").user["id"]
        if case.code == "report_on_yourself":
            sign_in("mel", role="moderator")
            reports = f"/users/{moderator.user['id']}/reports"
            id = clients["bob"].post(reports, json={"reason": "Why?"}).json["id"]
        lock = f"/posts/{id}/lock"
        if case.code == "post_locked":
            moderator.put(lock)
        response = send(clients[case.code], case.operation, id, headers=headers, **body)
        case.assert_matches(response)
        if case.code == "post_locked":
            moderator.delete(lock)


@pytest.mark.usefixtures("cached_codec")
def test_each_409_is_as_documented(documented, object_id, sign_in, with_token, monkeypatch):
    alice, bob = sign_in("alice", role="owner"), sign_in("bob")
    bob.create_post("On looms")
    for _ in range(TOKENS_PER_USER):
        with_token("read")
    for _ in range(OPEN_PER_USER):
        invite(alice.application, alice.user["id"])
    for _ in range(WEBHOOKS_PER_OWNER):
        add_webhook(alice.application, alice.user["id"])

    def store(*_):
        raise StillUnderWay

    def insert_report(*_, **_fields):
        raise AlreadyReported

    for case in documented(409):
        changes = {"username": "bob"} if case.code == "username_taken" else {}
        if (case.code, case.operation) == ("no_mail", "POST /signup"):
            changes = {"email": "ada@example.org"}
        if case.code == "topic_taken":
            alice.post("/topics", json={"name": "Bobbins", "color": "red"})
            changes = {"name": "Bobbins"}
        body, id = body_of(case.operation, **changes), object_id(case.operation)
        if case.code == "has_content":
            id = bob.user["id"]
        if case.code == "last_owner":
            id = alice.user["id"]
            if case.operation.startswith("PUT"):
                body = {"json": {"role": "member", "current_password": PASSWORD}}
        with monkeypatch.context() as patched:
            patched.setattr(idempotency, "store_response", store)
            patched.setattr("posting.moderation.views.acts.MAX_PINNED", 0)
            if case.code == "too_many_topics":
                patched.setattr("posting.topics.store.MAX_TOPICS", 0)
            if case.code == "already_reported":
                patched.setattr("posting.moderation.store.insert_report", insert_report)
            if case.code == "report_closed":
                assert send(alice, case.operation, id, **body).status_code == 200
            headers = {"Idempotency-Key": "a"} if case.code == "still_under_way" else {}
            case.assert_matches(send(alice, case.operation, id, headers=headers, **body))


@pytest.mark.usefixtures("cached_codec")
def test_each_412_is_as_documented(documented, object_id, sign_in):
    alice, bob = sign_in("alice", role="owner"), sign_in("bob")
    post = alice.create_post("On looms")
    for path in (f"/posts/{post['id']}/lock", f"/posts/{post['id']}/pin"):
        alice.put(path)
    alice.put(f"/users/{bob.user['id']}/suspension", json={"reason": "Why?"})
    for case in documented(412):
        body, id = body_of(case.operation), object_id(case.operation)
        if case.operation.startswith("DELETE /moderation/") or "/suspension" in case.operation:
            id = bob.user["id"]
        if case.operation.endswith(("/lock", "/pin")):
            id = post["id"]
        is_by_none_match = case.code == "already_current"
        headers = {"If-None-Match": "*"} if is_by_none_match else {"If-Match": '"99"'}
        case.assert_matches(send(alice, case.operation, id, headers=headers, **body))


@pytest.mark.usefixtures("carol")
def test_each_428_is_as_documented(documented, owner):
    carol = owner.get("/users?username=carol").json[0]
    for case in documented(428):
        case.assert_matches(send(owner, case.operation, carol["id"], **body_of(case.operation)))


def test_each_422_is_as_documented(documented, owner, id_of):
    cases, token = documented(422), id_of("feed")
    confirm(owner)
    assert len(operations(cases)) > 20
    for case in cases:
        takes_body = takes_json(case.operation)
        body = {"json": {}} if takes_body else {}
        if case.operation in UPLOADS:
            names = {"alt": "A loom"} if "images" in case.operation else {}
            body = {"data": names, "content_type": "multipart/form-data"}
        # Other bodies have a required field.
        is_refused = takes_body and case.operation not in OPTIONAL
        query = "" if is_refused or "{id}" in case.operation else "?page=1"
        id = "x"
        if "/feed." in case.operation:
            query = "?before=x"
            id = owner.user["username"] if "/@" in case.operation else id_of("post")
            if "/t/" in case.operation:
                id = id_of("topic")
        case.assert_matches(send(owner, case.operation + query, id, token, **body))


def test_each_400_is_as_documented(documented, owner, make_app):
    other_host = make_app(PUBLIC_URL="https://example.org").test_client()
    for case in documented(400):
        if case.code == "other_host":
            response = send(other_host, case.operation, headers={"Host": "example.net"})
        else:
            is_form = case.operation in UPLOADS
            content_type = "multipart/form-data" if is_form else "application/json"
            response = send(owner, case.operation, data=b"x", content_type=content_type)
        case.assert_matches(response)


def test_each_413_and_415_is_as_documented(documented, make_app, sign_in):
    owner = sign_in("mel", role="owner")
    client = owner.copy(make_app(MAX_JSON_BYTES=1024, MAX_IMAGE_BYTES=1024, MAX_FILE_BYTES=1024))
    large = b"x" * 2000
    owner.send_image(pictures.photo())
    own, post = client.copy(make_app(MAX_MEMBER_BYTES=1024)), client.create_post("x")
    for case in documented(413, client):
        if case.code == "quota_exceeded":
            case.assert_matches(send(own, case.operation, post["id"], **body_of(case.operation)))
            continue
        form = {"data": {"file": (BytesIO(large), "a.png")}}
        body = {"data": large, "content_type": "application/json"}
        is_form = case.operation in UPLOADS
        case.assert_matches(send(client, case.operation, **(form if is_form else body)))
    for case in documented(415, client):
        body = {"data": b"x", "content_type": "text/plain"}
        case.assert_matches(send(client, case.operation, **body))


def test_each_429_is_as_documented(documented, make_app, sign_in):
    names = ("SIGNIN", "SIGNUP", "POSTS", "COMMENTS", "IMAGES", "FILES", "REPORTS", "LINKS")
    limits = {f"LIMIT_{name}": "1/hour" for name in names}
    alice = sign_in("alice", role="owner")
    post = alice.create_post("On engines")
    comment = alice.add_comment(post, "A comment")
    mails = {"SMTP_URL": "smtp://localhost", "MAIL_FROM": "a@b.c", "PUBLIC_URL": "http://localhost"}
    client = alice.copy(make_app(RATE_LIMITS="on", **mails, **limits))
    cases = documented(429, client)
    assert len(operations(cases)) == 40
    # These come last, because their failures count for the address too.
    guesses = {"POST /signin": "username", "POST /password-resets": "code"}
    for case in sorted(cases, key=lambda case: case.operation in guesses):
        changes = {}
        if case.operation in {"POST /recovery-codes", "POST /session-confirmations"}:
            changes = {"current_password": "wrong"}
        if case.operation in {"PATCH /users/me", "PATCH /users/{id}"}:
            changes = {"password": "another password", "current_password": "wrong"}
        id = alice.user["id"] if "/users/" in case.operation else post["id"]
        if "/comments/{id}" in case.operation:
            id = comment["id"]
        for attempt in range(21):
            if case.operation in guesses:
                changes = {guesses[case.operation]: f"{attempt:021}"}
            response = send(client, case.operation, id, **body_of(case.operation, **changes))
            if response.status_code == 429:
                break
        case.assert_matches(response)


def test_a_limit_that_is_off_is_not_documented(documented, make_app):
    client = make_app(LIMIT_POSTS="off").test_client()
    assert "POST /posts" not in operations(documented(429, client))
    create_post = client.get("/openapi.json").json["paths"]["/posts"]["post"]
    assert "RateLimit" not in str(create_post)


COUNTED = [
    (401, "POST /signin", {"password": "another password"}),
    (403, "POST /signin", {"username": "carol"}),
    (409, "POST /signup", {"username": "carol"}),
    (422, "PATCH /users/{id}", {"password": "a new one", "current_password": "wrong"}),
    (422, "POST /posts/{id}/images", {"file": (BytesIO(b"x"), "a.png")}),
]


@pytest.mark.usefixtures("carol")
@pytest.mark.parametrize("counted", COUNTED, ids=lambda counted: f"{counted[0]} {counted[1]}")
def test_an_error_that_counts_announces_the_limit(counted, documented, object_id, alice):
    status, operation, changes = counted
    response = send(alice, operation, object_id(operation), **body_of(operation, **changes))
    assert response.status_code == status
    assert {"RateLimit", "RateLimit-Policy"} <= set(response.headers.keys())
    [case, *_] = [case for case in documented(status) if case.operation == operation]
    assert_headers(response, case.headers, case.document)


def file_moved():
    error = sqlite.OperationalError("posting.db was deleted or replaced")
    error.sqlite_errorname = FILE_MOVED
    return error


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("internal_server_error", RuntimeError("something internal")),
        ("database_busy", sa.exc.OperationalError("SELECT 1", {}, Exception("it is locked"))),
        ("query_timeout", sa.exc.OperationalError("SELECT 1", {}, psycopg.errors.QueryCanceled())),
        ("database_moved", sa.exc.OperationalError("SELECT 1", {}, file_moved())),
        ("storage_full", sa.exc.OperationalError("SELECT 1", {}, psycopg.errors.DiskFull())),
    ],
)
def test_each_failure_is_as_documented(code, error, documented, make_app):
    app = make_app(PROPAGATE_EXCEPTIONS=False)

    def fail():
        raise error

    app.view_functions["posts.list_posts"] = fail
    response = app.test_client().get("/posts")
    cases = [case for case in documented(response.status_code) if case.code == code]
    assert len(operations(cases)) > 15
    for case in cases:
        case.assert_matches(response)


def test_other_503_are_as_documented(documented, alice, owner, post, monkeypatch):
    def fail(*_, **_options):
        raise imaging.BusyError

    def refuse_place(_member):
        raise imaging.OwnImageError

    confirm(owner)
    monkeypatch.setattr(imaging, "reencode", fail)
    monkeypatch.setattr(imaging, "make_faces", fail)
    monkeypatch.setattr(imaging, "make_covers", fail)
    monkeypatch.setattr("posting.web.system.is_current", lambda: False)
    monkeypatch.setattr(turns, "PLACES", 0)
    monkeypatch.setattr(passwords, "count_places", lambda: 0)
    monkeypatch.setattr("posting.accounts.views.export.PLACES", 0)
    of_the_database = {"database_busy", "database_moved", "query_timeout"}
    cases = [case for case in documented(503) if case.code not in of_the_database]
    assert len(cases) == 26
    for case in cases:
        query = "?q=engines" if case.code == "search_busy" else ""
        new = {"password": "a new one", "current_password": PASSWORD}
        body = body_of(case.operation, **(new if case.operation.startswith("PATCH") else {}))
        id = alice.user["id"] if "/users/" in case.operation else post["id"]
        with monkeypatch.context() as patch:
            if case.code == "backup_busy":
                patch.setattr("posting.ops.views._is_running", Semaphore(0))
            if case.code == "own_image_in_progress":
                patch.setattr(imaging, "place_of", refuse_place)
            client = owner if case.operation in OF_OWNERS else alice
            case.assert_matches(send(client, case.operation + query, id, **body))
