"""Personal access tokens, by which programs act as a user."""

import re
from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa

from posting.accounts.models import TOKENS_PER_USER, Token, User
from posting.db.base import db
from posting.db.purge import purge_expired
from posting.db.transactions import unit_of_work
from posting.db.types import now
from posting.web.idempotency import IdempotencyKey
from tests.conftest import PASSWORD
from tests.helpers.assertions import assert_problem, error_locations

NEW = {"name": "Backup script", "scope": "write"}
DAY = timedelta(days=1)


def in_days(days):
    return (datetime.now(UTC) + timedelta(days=days)).isoformat()


def test_a_token_is_created_used_listed_and_deleted(alice, anonymous):
    created = alice.post("/tokens", json=NEW)
    assert created.status_code == 201
    assert created.headers["Cache-Control"] == "private, no-store"
    token = created.json
    assert token.keys() == {
        "id", "name", "scope", "created_at", "expires_at", "last_used_at", "token",
    }  # fmt: skip
    lifetime = datetime.fromisoformat(token["expires_at"]) - datetime.fromisoformat(
        token["created_at"]
    )
    assert lifetime == timedelta(days=366)
    secret = token.pop("token")
    assert secret.startswith("posting_")
    assert alice.get("/tokens").json == [token]
    assert alice.get(created.headers["Location"]).json == token
    assert created.headers["Location"] == f"http://localhost/tokens/{token['id']}"
    assert token["last_used_at"] is None

    headers = {"Authorization": f"Bearer {secret}"}
    assert anonymous.get("/users/me", headers=headers).json["username"] == "alice"
    [listed] = alice.get("/tokens").json
    assert listed["last_used_at"] >= token["created_at"]

    assert alice.delete(f"/tokens/{token['id']}").status_code == 204
    assert alice.get("/tokens").json == []
    assert anonymous.get("/users/me", headers=headers).status_code == 401


def test_its_use_stores_when_its_user_was_seen(app, reader):
    long_ago = now() - 30 * DAY
    with app.app_context():
        db.session.execute(sa.update(User).values(last_seen_at=long_ago))
        db.session.commit()
        reader.get("/users/me")
        assert now() - db.session.scalar(sa.select(User.last_seen_at)) < DAY


def test_a_program_writes_what_the_user_may(writer, anonymous, bob):
    post = writer.create_post("On engines")
    assert post["author"]["username"] == "alice"
    assert writer.patch(f"/posts/{post['id']}", json={"title": "x"}).status_code == 200
    comment = writer.add_comment(post, "A comment")
    writer.add_image(post)
    assert writer.delete(f"/comments/{comment['id']}").status_code == 204
    assert_problem(writer.delete(f"/posts/{bob.create_post('x')['id']}"), 403)
    key = {"Idempotency-Key": "1"}
    first, second = (writer.post("/posts", json={"title": "a", "content": "b"}, headers=key)
                     for _ in range(2))  # fmt: skip
    assert first.json == second.json
    assert writer.delete(f"/posts/{post['id']}").status_code == 204


def test_a_token_that_may_read_does_not_write(reader):
    assert reader.get("/users/me").json["username"] == "alice"
    response = reader.post("/posts", json={"title": "x", "content": "x"})
    assert_problem(response, 403)
    assert response.json["code"] == "insufficient_scope"
    assert response.headers["WWW-Authenticate"] == (
        'Bearer error="insufficient_scope", scope="write"'
    )


def test_a_token_does_not_manage_the_account(writer, alice):
    account = f"/users/{alice.user['id']}"
    for method, path, body in (
        ("PATCH", account, {"bio": "x"}),
        ("DELETE", account, None),
        ("GET", "/sessions", None),
        ("GET", "/tokens", None),
        ("PATCH", "/users/me", {"bio": "x"}),
        ("DELETE", "/users/me", None),
        ("POST", "/tokens", NEW),
    ):
        response = writer.open(path, method=method, json=body)
        assert (response.status_code, response.json["code"]) == (403, "token_not_allowed"), path
    assert alice.get("/users/me").json["bio"] is None


def assert_invalid_token(response):
    assert assert_problem(response, 401)["code"] == "invalid_token"
    assert response.headers["WWW-Authenticate"] == 'Bearer error="invalid_token"'
    assert response.headers["Cache-Control"] == "private, no-store"


BAD = [
    "Bearer",
    "Bearer ",
    "Bearer x",
    "bearer posting_x",
    "Bearer a b",
    "Bearer a=b",
    "Bearer \xe9",
]


@pytest.mark.parametrize("path", ["/users/me", "/posts"])
@pytest.mark.parametrize("value", BAD)
def test_a_bad_token_gets_401(anonymous, path, value):
    assert_invalid_token(anonymous.get(path, headers={"Authorization": value}))


def test_a_bad_token_is_not_replaced_by_a_session(alice):
    bad = {"Authorization": "Bearer x"}
    assert alice.get("/users/me", headers=bad).status_code == 401
    assert alice.get("/posts", headers=bad).status_code == 401


# Paths that everyone may read, with objects of Alice.
PUBLIC_PATHS = (
    "/posts",
    "/posts/{post}",
    "/posts/{post}/comments",
    "/comments/{comment}",
    "/images/{image}",
    "/images/{image}/metadata",
    "/users?username=alice",
    "/users/{user}",
    "/users/{user}/comments",
)


@pytest.mark.parametrize("path", PUBLIC_PATHS)
def test_a_program_learns_by_its_first_read_that_its_token_has_ended(
    alice, anonymous, reader, id_of, path
):
    """Not even a response that is in the cache is sent to it."""
    [token] = alice.get("/tokens").json
    url = path.format_map({name: id_of(name) for name in re.findall(r"{(\w+)}", path)})
    read = [anonymous.get(url) for _ in range(2)]
    assert {response.status_code for response in read} == {200}
    with_token = reader.get(url)
    assert (with_token.status_code, with_token.data) == (200, read[0].data)
    assert with_token.headers["Cache-Control"] == read[0].headers["Cache-Control"]
    assert alice.delete(f"/tokens/{token['id']}").status_code == 204
    assert anonymous.get(url).status_code == 200
    assert_invalid_token(reader.get(url))
    assert reader.head(url).status_code == 401
    headers = {"If-None-Match": read[0].headers["ETag"]}
    assert_invalid_token(reader.get(url, headers=headers))
    assert anonymous.get(url, headers=headers).status_code == 304


def test_pages_feeds_and_the_service_itself_ignore_tokens(anonymous, post):
    bad = {"Authorization": "Bearer x"}
    for path in (
        *("/", "/search", f"/p/{post['id']}", "/@alice", "/signin", "/robots.txt"),
        *("/feed.atom", f"/p/{post['id']}/feed.json"),
        *("/healthz", "/readyz", "/openapi.json", "/docs", "/site"),
    ):
        for _ in range(2):
            assert anonymous.get(path, headers=bad).status_code == 200, path
    body = {"username": "newcomer", "password": PASSWORD}
    for path, status in (("/signup", 201), ("/signin", 200), ("/signout", 204)):
        assert anonymous.post(path, json=body, headers=bad).status_code == status


@pytest.mark.parametrize("value", ["Basic YTpi", "Digest x", "x", "", "Cookie x"])
def test_other_schemes_are_ignored(alice, anonymous, value):
    headers = {"Authorization": value}
    assert anonymous.get("/posts", headers=headers).status_code == 200
    assert alice.get("/users/me", headers=headers).status_code == 200
    response = anonymous.get("/users/me", headers=headers)
    assert response.json["code"] == "not_signed_in"


def test_a_token_wins_over_a_session(writer, bob):
    headers = {"Authorization": writer.environ_base["HTTP_AUTHORIZATION"]}
    assert bob.get("/users/me", headers=headers).json["username"] == "alice"


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"name": ""}, "/name"),
        ({"name": " "}, "/name"),
        ({"name": "a\nb"}, "/name"),
        ({"name": "x" * 65}, "/name"),
        ({"scope": "admin"}, "/scope"),
        ({"scope": None}, "/scope"),
        ({"expires_at": in_days(-1)}, "/expires_at"),
        ({"expires_at": in_days(367)}, "/expires_at"),
        ({"expires_at": "9999-12-31T23:59:59-23:59"}, "/expires_at"),
        ({"expires_at": "0001-01-01T00:00:00+23:59"}, "/expires_at"),
        ({"expires_at": "tomorrow"}, "/expires_at"),
        ({"expires_at": "2027-01-01"}, "/expires_at"),
        ({"expires_at": "2027-01-01T00:00:00"}, "/expires_at"),
        ({"expires_at": "20270101T000000Z"}, "/expires_at"),
        ({"expires_at": "2027-W01-1T00:00:00Z"}, "/expires_at"),
        ({"expires_at": "2027-01-01T00:00Z"}, "/expires_at"),
        ({"expires_at": "2027-01-01T00:00:00+00:00:01"}, "/expires_at"),
        ({"expires_at": "2027-02-29T00:00:00Z"}, "/expires_at"),
        ({"expires_at": 1}, "/expires_at"),
        ({"expires_at": None}, "/expires_at"),
        ({"user_id": "x"}, "/user_id"),
    ],
)
def test_an_invalid_token_gets_422_and_not_created(alice, fields, expected):
    assert error_locations(alice.post("/tokens", json=NEW | fields)) == {expected}
    assert alice.get("/tokens").json == []


def test_name_and_scope_are_required(alice):
    assert error_locations(alice.post("/tokens", json={})) == {"/name", "/scope"}


def test_an_expired_token_is_refused_not_listed_and_purged(app, alice, with_token):
    program = with_token("write", expires_at=in_days(30).replace("+00:00", "Z"))
    [listed] = alice.get("/tokens").json
    assert program.get("/users/me").status_code == 200
    with app.app_context():
        db.session.execute(sa.update(Token).values(expires_at=now() - DAY))
        db.session.commit()
        assert program.get("/users/me").status_code == 401
        assert alice.get("/tokens").json == []
        assert_problem(alice.get(f"/tokens/{listed['id']}"), 404)
        with unit_of_work():
            purge_expired(Token)
        assert db.session.scalar(sa.select(sa.func.count()).select_from(Token)) == 0


def test_a_user_has_fifty_tokens_at_most(app, alice, bob):
    for _ in range(TOKENS_PER_USER):
        assert alice.post("/tokens", json=NEW).status_code == 201
    response = alice.post("/tokens", json=NEW)
    assert_problem(response, 409)
    assert response.json["code"] == "too_many_tokens"
    assert bob.post("/tokens", json=NEW).status_code == 201
    with app.app_context():  # expired ones do not count
        db.session.execute(sa.update(Token).values(expires_at=now() - DAY))
        db.session.commit()
    assert alice.post("/tokens", json=NEW).status_code == 201


def change_password(alice, flask):
    body = {"current_password": PASSWORD, "password": "another walk by the sea"}
    assert alice.patch(f"/users/{alice.user['id']}", json=body).status_code == 200


def suspend(alice, flask):
    assert flask("users", "suspend", "alice")[0] == 0


def reset_password(alice, flask):
    assert flask("users", "reset-password", "alice", input="another walk\n")[0] == 0


def delete_account(alice, flask):
    assert alice.delete(f"/users/{alice.user['id']}").status_code == 204


@pytest.mark.parametrize("end", [change_password, suspend, reset_password, delete_account])
def test_a_new_password_suspension_reset_or_deletion_ends_tokens(alice, writer, flask, end):
    assert writer.get("/users/me").status_code == 200
    end(alice, flask)
    assert writer.get("/users/me").status_code == 401
    assert writer.post("/posts", json={"title": "x", "content": "x"}).status_code == 401


def test_tokens_survive_a_sign_out(alice, writer):
    alice.post("/signout")
    assert writer.get("/users/me").status_code == 200


def test_secrets_are_not_stored(app, alice):
    secret = alice.post("/tokens", json=NEW, headers={"Idempotency-Key": "1"}).json["token"]
    with app.app_context():
        [stored] = db.session.scalars(sa.select(Token.token_hash))
        assert secret not in stored
        assert len(stored) == 64
        assert db.session.scalars(sa.select(IdempotencyKey)).all() == []


def test_somebody_elses_token_gets_404(alice, bob, id_of):
    path = f"/tokens/{id_of('token')}"
    assert_problem(bob.get(path), 404)
    assert_problem(bob.delete(path), 404)
    assert len(alice.get("/tokens").json) == 1


def test_new_tokens_are_limited(make_app, alice):
    app = make_app(RATE_LIMITS="on", LIMIT_POSTS="2/hour")
    client = alice.copy(app)
    statuses = [client.post("/tokens", json=NEW).status_code for _ in range(3)]
    assert statuses == [201, 201, 429]


def test_a_moderator_moderates_by_token(moderator, app, post):
    secret = moderator.post("/tokens", json=NEW).json["token"]
    client = app.test_client()
    headers = {"Authorization": f"Bearer {secret}"}
    assert client.delete(f"/posts/{post['id']}", headers=headers).status_code == 204
