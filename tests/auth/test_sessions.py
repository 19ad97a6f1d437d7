"""Signing in and out, and what a session is."""

import hashlib
from datetime import timedelta
from time import sleep

import pytest
import sqlalchemy as sa

from posting.auth import current_user
from posting.db.engine import db
from posting.db.models import SESSIONS_PER_USER, Session, User
from posting.db.types import now
from posting.http import endpoint, request_body
from tests.conftest import PASSWORD, POSTGRES
from tests.helpers.assertions import faults, problem

CREDENTIALS = {"username": "alice", "password": PASSWORD}


def token(client, name="session"):
    cookie = client.get_cookie(name)
    return cookie and cookie.value


def with_token(app, value):
    """Return a client that presents `value`, as one who copied the cookie would."""
    client = app.test_client()
    client.set_cookie("session", value)
    return client


def age(app, **moments):
    with app.app_context():
        db.session.execute(sa.update(Session).values(**moments))
        db.session.commit()


class TestSignIn:
    def test_it_answers_the_user_and_a_cookie(self, alice, anonymous):
        answer = anonymous.post("/signin", json=CREDENTIALS | {"username": "ALICE"})
        assert (answer.status_code, answer.json) == (200, alice.user)
        cookie = answer.headers["Set-Cookie"]
        for attribute in ("session=", "HttpOnly", "SameSite=Lax", "Path=/", "Max-Age=7776000"):
            assert attribute in cookie
        assert "Secure" not in cookie
        assert "Domain" not in cookie

    def test_https_makes_the_cookie_secure_and_bound_to_the_host(self, alice, make_app):
        client = make_app(PUBLIC_URL="https://example.org").test_client()
        answer = client.post("/signin", json=CREDENTIALS, base_url="https://example.org")
        cookie = answer.headers["Set-Cookie"]
        assert cookie.startswith("__Host-session=")
        assert "; Secure;" in cookie
        assert "Path=/" in cookie
        assert "Domain" not in cookie
        assert client.get("/users/me", base_url="https://example.org").json == alice.user

    def test_https_is_never_inferred_from_the_request(self, alice, anonymous):
        answer = anonymous.post("/signin", json=CREDENTIALS, headers={"X-Forwarded-Proto": "https"})
        assert answer.headers["Set-Cookie"].startswith("session=")

    def test_unknown_user_and_wrong_password_are_told_alike(self, alice, anonymous):
        headers = {"X-Request-ID": "same"}
        wrong, unknown = (
            anonymous.post("/signin", json=CREDENTIALS | change, headers=headers)
            for change in ({"password": "wrong"}, {"username": "nobody-here"})
        )
        problem(wrong, 401)
        assert wrong.headers["WWW-Authenticate"] == "Cookie"
        assert (wrong.data, dict(wrong.headers)) == (unknown.data, dict(unknown.headers))

    def test_an_unknown_user_costs_a_hash_too(self, anonymous, monkeypatch):
        checked = []
        monkeypatch.setattr(
            "posting.auth.passwords.check_password_hash",
            lambda known, password: checked.append((known.split("$")[0], password)),
        )
        problem(anonymous.post("/signin", json=CREDENTIALS), 401)
        assert checked == [("scrypt:128:8:1", PASSWORD)]

    @pytest.mark.parametrize(
        ("body", "wrong"),
        [
            ({}, {"/username", "/password"}),
            ({"username": 1, "password": None}, {"/username", "/password"}),
            ({"username": "a\u0000", "password": "b\u0000"}, {"/username", "/password"}),
            ({"username": "a", "password": "b", "remember": True}, {"/remember"}),
        ],
    )
    def test_malformed_credentials_are_422(self, anonymous, body, wrong):
        assert faults(anonymous.post("/signin", json=body)) == wrong

    def test_every_sign_in_mints_a_token_and_ends_the_session_presented(self, app, alice):
        before = token(alice)
        assert alice.post("/signin", json=CREDENTIALS).status_code == 200
        assert token(alice) != before
        problem(with_token(app, before).get("/users/me"), 401)

    def test_a_failed_sign_in_keeps_the_session_presented(self, alice):
        problem(alice.post("/signin", json=CREDENTIALS | {"password": "wrong"}), 401)
        assert alice.get("/users/me").json == alice.user

    def test_a_hash_with_old_parameters_is_renewed(self, app, alice, make_app):
        stronger = make_app(PASSWORD_HASH="scrypt:256:8:1")
        assert stronger.test_client().post("/signin", json=CREDENTIALS).status_code == 200
        with app.app_context():
            assert db.session.scalar(sa.select(User.password_hash)).startswith("scrypt:256:8:1$")
        assert app.test_client().post("/signin", json=CREDENTIALS).status_code == 200


class TestTokens:
    def test_the_database_holds_only_a_hash(self, app, alice):
        with app.app_context():
            stored = db.session.scalars(sa.select(Session.token_hash)).all()
        assert stored == [hashlib.sha256(token(alice).encode()).hexdigest()]
        assert len(token(alice)) == 43  # 256 bits

    @pytest.mark.parametrize("value", ["", "x", "a" * 43, "a" * 4000, "%00", "é", "a b"])
    def test_other_tokens_are_nobody(self, app, alice, value):
        problem(with_token(app, value).get("/users/me"), 401)

    def test_a_session_dies_at_the_server(self, app, alice):
        copied = token(alice)
        answer = alice.post("/signout")
        assert (answer.status_code, answer.data) == (204, b"")
        assert "Max-Age=0" in answer.headers["Set-Cookie"]
        problem(with_token(app, copied).get("/users/me"), 401)

    def test_a_session_that_ends_while_the_body_arrives_is_dead(self, app, alice, monkeypatch):
        copied = token(alice)
        parse = request_body.parse_json

        def slow(data):
            with_token(app, copied).post("/signout")
            sleep(endpoint.MAX_ACCESS_AGE)
            return parse(data)

        monkeypatch.setattr(request_body, "parse_json", slow)
        problem(alice.post("/posts", json={"title": "a", "content": "b"}), 401)
        assert alice.get("/posts").json == []

    def test_anyone_may_sign_out(self, app, anonymous):
        for client in (anonymous, with_token(app, "x"), anonymous):
            assert client.post("/signout").status_code == 204

    def test_cookies_of_others_do_not_disturb(self, alice):
        alice.set_cookie("remember_token", "a|b")
        assert alice.get("/users/me").json == alice.user

    def test_reading_sends_no_cookie(self, alice):
        answer = alice.get("/posts")
        assert "Set-Cookie" not in answer.headers
        assert "Vary" not in answer.headers


class TestExpiry:
    @pytest.mark.parametrize(
        ("seen", "created", "status"),
        [
            (timedelta(days=29, hours=23), timedelta(days=89, hours=23), 200),
            (timedelta(days=30, seconds=1), timedelta(days=31), 401),
            (timedelta(), timedelta(days=90, seconds=1), 401),
        ],
    )
    def test_thirty_days_idle_or_ninety_in_all(self, app, alice, seen, created, status):
        age(app, last_seen_at=now() - seen, created_at=now() - created)
        assert alice.get("/users/me").status_code == status

    @pytest.mark.parametrize("method", ["get", "patch"])
    def test_being_seen_keeps_it_alive(self, app, alice, method):
        age(app, last_seen_at=now() - timedelta(days=29))
        body = {"json": {}} if method == "patch" else {}
        url = f"/users/{alice.user['id']}" if method == "patch" else "/users/me"
        assert getattr(alice, method)(url, **body).status_code == 200
        with app.app_context():
            seen = db.session.scalar(sa.select(Session.last_seen_at))
        assert now() - seen < timedelta(minutes=1)

    @pytest.mark.skipif(not POSTGRES, reason="SQLite's one writer is waited for")
    def test_one_that_somebody_is_ending_is_not_waited_for(self, sign_in, short_lock_timeout):
        """Two who sign in and each end the other's fiftieth would wait for one another."""
        for _ in range(SESSIONS_PER_USER):
            sign_in("ada")
        with short_lock_timeout.connect() as other:
            other.execute(sa.delete(Session))
            sign_in("ada")
            other.rollback()

    @pytest.mark.parametrize(
        "ask",
        [
            lambda user: user.get("/users/me"),
            lambda user: user.post("/posts", json={"title": "a", "content": "b"}),
        ],
    )
    def test_it_may_end_while_it_is_seen(self, app, alice, monkeypatch, ask):
        age(app, last_seen_at=now() - timedelta(days=1))
        touch = current_user.touch_session

        def late(*session):
            with db.engine.begin() as connection:
                connection.execute(sa.delete(Session))
            touch(*session)

        monkeypatch.setattr(current_user, "touch_session", late)
        assert ask(alice).status_code in {200, 201}  # it was alive when this began
        problem(ask(alice), 401)

    def test_it_writes_nothing_if_it_ends_while_being_seen_takes_long(
        self, app, alice, monkeypatch
    ):
        age(app, last_seen_at=now() - timedelta(days=1))

        def slow(*_):
            sleep(endpoint.MAX_ACCESS_AGE)
            with db.engine.begin() as connection:
                connection.execute(sa.delete(Session))

        monkeypatch.setattr(current_user, "touch_session", slow)
        problem(alice.post("/posts", json={"title": "a", "content": "b"}), 401)
        assert alice.get("/posts").json == []

    def test_being_seen_fails_for_no_writer(self, app, alice, short_lock_timeout):
        age(app, last_seen_at=now() - timedelta(days=1))
        with short_lock_timeout.begin() as writer:
            writer.execute(sa.update(Session).values(user_agent="locked"))
            assert alice.get("/users/me").json == alice.user

    def test_being_seen_is_written_once_an_hour_at_most(self, app, alice):
        almost = now() - timedelta(minutes=59)
        age(app, last_seen_at=almost)
        alice.get("/users/me")
        with app.app_context():
            assert db.session.scalar(sa.select(Session.last_seen_at)) == almost

    def test_dead_sessions_are_swept_at_sign_in(self, app, alice, bob, sign_in):
        age(app, created_at=now() - timedelta(days=91))
        sign_in("charlie")
        with app.app_context():
            assert db.session.scalar(sa.select(sa.func.count(Session.id))) == 1

    def test_a_user_has_fifty_sessions_at_most(self, app, alice, sign_in):
        age(app, created_at=now() - timedelta(hours=1))
        for _ in range(SESSIONS_PER_USER):
            newest = sign_in("alice")
        problem(alice.get("/users/me"), 401)
        assert len(newest.get("/sessions").json) == SESSIONS_PER_USER

    def test_the_new_session_survives_a_clock_that_was_set_back(self, app, sign_in):
        for _ in range(SESSIONS_PER_USER):
            sign_in("alice")
        age(app, created_at=now() + timedelta(hours=1))
        newer, newest = sign_in("alice"), sign_in("alice")
        assert len(newest.get("/sessions").json) == SESSIONS_PER_USER
        assert newer.get("/users/me").status_code == 200


class TestSessions:
    def test_own_sessions_are_listed(self, app, alice, bob, sign_in):
        elsewhere = app.test_client()
        elsewhere.post("/signin", json=CREDENTIALS, headers={"User-Agent": "tele\u00adphone\t1"})
        rows = alice.get("/sessions").json
        assert set(rows[0]) == {"id", "created_at", "last_seen_at", "user_agent", "current"}
        assert sorted(row["current"] for row in rows) == [False, True]
        assert {row["user_agent"] for row in rows} == {"Werkzeug/3.1.9", "telephone1"}

    def test_one_of_them_is_ended(self, alice, sign_in):
        elsewhere = sign_in("alice")
        other = next(row for row in alice.get("/sessions").json if not row["current"])
        assert alice.delete(f"/sessions/{other['id']}").status_code == 204
        problem(elsewhere.get("/users/me"), 401)
        assert alice.get("/users/me").status_code == 200
        problem(alice.delete(f"/sessions/{other['id']}"), 404)

    def test_ending_the_current_one_is_signing_out(self, alice):
        [own] = alice.get("/sessions").json
        answer = alice.delete(f"/sessions/{own['id']}")
        assert answer.status_code == 204
        assert "Max-Age=0" in answer.headers["Set-Cookie"]
        problem(alice.get("/users/me"), 401)

    def test_those_of_others_are_unknown(self, alice, bob):
        [own] = alice.get("/sessions").json
        problem(bob.delete(f"/sessions/{own['id']}"), 404)
        assert alice.get("/users/me").status_code == 200
        assert faults(bob.delete("/sessions/short")) == {"id"}


def test_an_app_context_around_requests_does_not_mix_up_callers(app, alice, bob, anonymous):
    with app.app_context():
        user = db.session.scalar(sa.select(User).filter_by(username="bob"))  # opens a transaction
        assert alice.get("/users/me").json == alice.user
        assert bob.patch(f"/users/{user.id}", json={"bio": "Hello."}).status_code == 200
        problem(anonymous.get("/users/me"), 401)
        assert user.bio == "Hello."
