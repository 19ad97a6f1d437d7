"""Sign-in, sign-out, and the lifetime of sessions."""

import hashlib
import hmac
from datetime import timedelta

import pytest
import sqlalchemy as sa

from posting.accounts import sessions
from posting.accounts.models import SESSIONS_PER_USER, Session, User
from posting.db.base import db
from posting.db.transactions import transaction
from posting.db.types import now
from posting.web import endpoint, request_body
from tests.conftest import PASSWORD, POSTGRES
from tests.helpers.assertions import assert_problem, error_locations

CREDENTIALS = {"username": "alice", "password": PASSWORD}
POST = {"title": "a", "content": "b"}


def client_with_token(app, token):
    client = app.test_client()
    client.set_cookie("session", token)
    return client


def set_timestamps(app, **timestamps):
    with app.app_context():
        db.session.execute(sa.update(Session).values(**timestamps))
        db.session.commit()


def last_seen_at(app):
    with app.app_context():
        return db.session.scalar(sa.select(Session.last_seen_at))


def set_last_seen(app, time):
    """Set when all users were last seen, and return this time."""
    with app.app_context():
        db.session.execute(sa.update(User).values(last_seen_at=time))
        db.session.commit()
    return time


def user_last_seen_at(app, username):
    with app.app_context():
        return db.session.scalar(sa.select(User.last_seen_at).where(User.username == username))


def delete_sessions(*_):
    with transaction() as connection:
        connection.execute(sa.delete(Session))


@pytest.fixture
def sign_in_often(app, alice):
    """Return a function that starts sessions for Alice and returns the client of the last one."""

    def sign_in_often(count):
        for _ in range(count):
            client = app.test_client()
            assert client.post("/signin", json=CREDENTIALS).status_code == 200
        return client

    return sign_in_often


class TestSignIn:
    def test_it_returns_the_user_and_sets_a_cookie(self, alice, anonymous):
        response = anonymous.post("/signin", json=CREDENTIALS | {"username": "ALICE"})
        assert (response.status_code, response.json) == (200, alice.user)
        cookie = response.headers["Set-Cookie"]
        for attribute in ("session=", "HttpOnly", "SameSite=Lax", "Path=/", "Max-Age=7776000"):
            assert attribute in cookie
        assert "Secure" not in cookie
        assert "Domain" not in cookie

    def test_it_stores_when_the_user_was_seen(self, app, anonymous):
        assert anonymous.post("/signup", json=CREDENTIALS).status_code == 201
        assert user_last_seen_at(app, "alice") is None
        wrong = CREDENTIALS | {"password": "wrong"}
        assert anonymous.post("/signin", json=wrong).status_code == 401
        assert user_last_seen_at(app, "alice") is None
        assert anonymous.post("/signin", json=CREDENTIALS).status_code == 200
        assert now() - user_last_seen_at(app, "alice") < timedelta(minutes=1)

    def test_behind_https_the_cookie_is_secure_and_bound_to_the_host(self, alice, make_app):
        client = make_app(PUBLIC_URL="https://example.org").test_client()
        response = client.post("/signin", json=CREDENTIALS, base_url="https://example.org")
        cookie = response.headers["Set-Cookie"]
        assert cookie.startswith("__Host-session=")
        assert "; Secure;" in cookie
        assert "Path=/" in cookie
        assert "Domain" not in cookie
        assert client.get("/users/me", base_url="https://example.org").json == alice.user

    @pytest.mark.parametrize(
        ("url", "name"),
        [
            ("http://127.0.0.1", "session"),
            ("http://127.0.0.1:8001", "session-8001"),
            ("https://example.org:443", "__Host-session"),
            ("https://example.org:8443", "__Host-session-8443"),
            ("https://example.org/a", "__Host-session+a"),
            ("https://example.org/a/b-c.d", "__Host-session+a+b-c.d"),
            ("https://example.org:8443/a", "__Host-session-8443+a"),
        ],
    )
    def test_the_cookie_has_the_port_and_the_path_of_the_public_url(
        self, alice, make_app, url, name
    ):
        app = make_app(PUBLIC_URL=url)
        client = app.test_client()
        response = client.post("/signin", json=CREDENTIALS, base_url=url.removesuffix(":443"))
        assert response.headers["Set-Cookie"].startswith(f"{name}=")
        token = response.headers["Set-Cookie"].partition("=")[2].partition(";")[0]
        names = {"session", "session-8002", "__Host-session", "__Host-session+b"} - {name}
        others = "".join(f"{other}=x; " for other in names)
        reader = app.test_client(use_cookies=False)
        headers = {"Cookie": f"{others}{name}={token}"}
        assert reader.get("/users/me", headers=headers, base_url=url).json == alice.user
        documented = client.get("/openapi.json", base_url=url).json["components"]
        assert documented["securitySchemes"]["session"]["name"] == name

    @pytest.mark.usefixtures("alice")
    def test_https_is_not_inferred_from_the_request(self, anonymous):
        headers = {"X-Forwarded-Proto": "https"}
        response = anonymous.post("/signin", json=CREDENTIALS, headers=headers)
        assert response.headers["Set-Cookie"].startswith("session=")

    @pytest.mark.usefixtures("alice")
    def test_an_unknown_user_and_a_wrong_password_get_the_same_response(self, anonymous):
        headers = {"X-Request-ID": "same"}
        wrong, unknown = (
            anonymous.post("/signin", json=CREDENTIALS | change, headers=headers)
            for change in ({"password": "wrong"}, {"username": "nobody-here"})
        )
        assert_problem(wrong, 401)
        assert wrong.headers["WWW-Authenticate"] == "Cookie"
        assert (wrong.data, dict(wrong.headers)) == (unknown.data, dict(unknown.headers))

    def test_a_password_is_hashed_for_an_unknown_user_too(self, anonymous, monkeypatch):
        hashed = []
        monkeypatch.setattr(
            "posting.accounts.passwords.check_password_hash",
            lambda known_hash, password: hashed.append((known_hash.split("$")[0], password)),
        )
        assert_problem(anonymous.post("/signin", json=CREDENTIALS), 401)
        assert hashed == [("scrypt:128:8:1", PASSWORD)]

    @pytest.mark.parametrize(
        ("body", "expected"),
        [
            ({}, {"/username", "/password"}),
            ({"username": 1, "password": None}, {"/username", "/password"}),
            ({"username": "a\u0000", "password": "b\u0000"}, {"/username", "/password"}),
            ({"username": "a", "password": "b", "remember": True}, {"/remember"}),
        ],
    )
    def test_malformed_credentials_get_422(self, anonymous, body, expected):
        assert error_locations(anonymous.post("/signin", json=body)) == expected

    def test_it_replaces_the_session_sent_with_the_request(self, alice):
        before = alice.copy()
        assert alice.post("/signin", json=CREDENTIALS).status_code == 200
        assert alice.session_token != before.session_token
        assert_problem(before.get("/users/me"), 401)

    def test_if_it_fails_the_session_sent_with_the_request_is_kept(self, alice):
        assert_problem(alice.post("/signin", json=CREDENTIALS | {"password": "wrong"}), 401)
        assert alice.get("/users/me").json == alice.user

    @pytest.mark.usefixtures("alice")
    def test_a_hash_with_other_parameters_is_replaced(self, app, make_app):
        stronger = make_app(PASSWORD_HASH="scrypt:256:8:1")
        assert stronger.test_client().post("/signin", json=CREDENTIALS).status_code == 200
        with app.app_context():
            assert db.session.scalar(sa.select(User.password_hash)).startswith("scrypt:256:8:1$")
        assert app.test_client().post("/signin", json=CREDENTIALS).status_code == 200


class TestTokens:
    def test_the_database_stores_only_a_hash(self, app, alice):
        with app.app_context():
            stored = db.session.scalars(sa.select(Session.token_hash)).all()
        assert stored == [hashlib.sha256(alice.session_token.encode()).hexdigest()]
        assert len(alice.session_token) == 43  # 256 bits

    @pytest.mark.parametrize("token", ["", "x", "a" * 43, "a" * 4000, "%00", "é", "a b"])
    @pytest.mark.usefixtures("alice")
    def test_an_unknown_token_gets_401(self, app, token):
        assert_problem(client_with_token(app, token).get("/users/me"), 401)

    def test_sign_out_ends_the_session_on_the_server(self, alice):
        copy = alice.copy()
        response = alice.post("/signout")
        assert (response.status_code, response.data) == (204, b"")
        assert "Max-Age=0" in response.headers["Set-Cookie"]
        assert_problem(copy.get("/users/me"), 401)

    def test_nothing_is_saved_if_the_session_ends_while_the_body_arrives(self, alice, monkeypatch):
        copy, parse_json = alice.copy(), request_body.parse_json

        def sign_out_and_parse(data):
            copy.post("/signout")
            return parse_json(data)

        monkeypatch.setattr(endpoint, "MAX_ACCESS_AGE", 0)
        monkeypatch.setattr(request_body, "parse_json", sign_out_and_parse)
        assert_problem(alice.post("/posts", json=POST), 401)
        assert alice.get("/posts").json == []

    def test_a_name_that_changes_while_the_body_arrives_is_the_new_one(self, alice, monkeypatch):
        copy, parse_json = alice.copy(), request_body.parse_json

        def rename_and_parse(data):
            monkeypatch.setattr(request_body, "parse_json", parse_json)
            assert copy.patch("/users/me", json={"username": "alicia"}).status_code == 200
            return parse_json(data)

        monkeypatch.setattr(endpoint, "MAX_ACCESS_AGE", 0)
        monkeypatch.setattr(request_body, "parse_json", rename_and_parse)
        assert alice.create_post("On engines")["author"]["username"] == "alicia"

    def test_sign_out_needs_no_session(self, app, anonymous):
        for client in (anonymous, client_with_token(app, "x"), anonymous):
            assert client.post("/signout").status_code == 204

    @pytest.mark.parametrize("cookies", ["{other}; {session}", "{session}; {other}", "{other}"])
    @pytest.mark.parametrize("value", ["", "x", "a|b", "a|\u00e9", '"a|\\351"', "{id}|{digest}"])
    def test_a_cookie_of_another_program_is_ignored(self, alice, value, cookies):
        """Flask-Login would take the user from it, and fail without a secret key."""
        id = alice.user["id"]
        forged = value.format(id=id, digest=hmac.new(b"", id.encode(), hashlib.sha512).hexdigest())
        session = f"session={alice.session_token}"
        header = cookies.format(other=f"remember_token={forged}", session=session)
        client = alice.application.test_client(use_cookies=False)
        environ = {"HTTP_COOKIE": header.encode().decode("latin1")}
        read = client.get("/users/me", environ_overrides=environ)
        written = client.post("/posts", json=POST, environ_overrides=environ)
        if "session" in header:
            assert (read.status_code, written.status_code) == (200, 201)
            assert read.json == alice.user
        else:
            assert_problem(read, 401)
            assert_problem(written, 401)
        for response in (read, written, client.get("/posts", environ_overrides=environ)):
            assert not {"Set-Cookie", "Vary"} & set(response.headers.keys())

    def test_the_first_of_two_session_cookies_counts(self, alice):
        own, other = f"session={alice.session_token}", "session=x"
        client = alice.application.test_client(use_cookies=False)
        for cookies, status in (([own, other], 200), ([other, own], 401)):
            response = client.get("/users/me", headers={"Cookie": "; ".join(cookies)})
            assert response.status_code == status

    def test_a_secret_key_changes_nothing(self, make_app, alice):
        """Flask's own session would have the same cookie."""
        app = make_app()
        app.secret_key = "secret"
        client = alice.copy(app)
        for response in (client.get("/users/me"), client.get("/posts"), client.get("/")):
            assert response.status_code == 200
            assert not {"Set-Cookie", "Vary"} & set(response.headers.keys())
        assert client.get("/users/me").json == alice.user

    def test_a_read_sets_no_cookie(self, alice):
        response = alice.get("/posts")
        assert "Set-Cookie" not in response.headers
        assert "Vary" not in response.headers


class TestExpiry:
    @pytest.mark.parametrize(
        ("unused_for", "age", "status"),
        [
            (timedelta(days=29, hours=23), timedelta(days=89, hours=23), 200),
            (timedelta(days=30, seconds=1), timedelta(days=31), 401),
            (timedelta(), timedelta(days=90, seconds=1), 401),
        ],
    )
    def test_a_session_ends_after_30_days_without_use_or_90_in_total(
        self, app, alice, unused_for, age, status
    ):
        set_timestamps(app, last_seen_at=now() - unused_for, created_at=now() - age)
        assert alice.get("/users/me").status_code == status

    @pytest.mark.parametrize("method", ["GET", "PATCH"])
    def test_a_request_extends_the_session(self, app, alice, method):
        set_timestamps(app, last_seen_at=now() - timedelta(days=29))
        if method == "GET":
            response = alice.get("/users/me")
        else:
            response = alice.patch(f"/users/{alice.user['id']}", json={})
        assert response.status_code == 200
        assert now() - last_seen_at(app) < timedelta(minutes=1)

    def test_a_session_is_extended_at_most_once_an_hour(self, app, alice):
        before = now() - timedelta(minutes=59)
        set_timestamps(app, last_seen_at=before)
        alice.get("/users/me")
        assert last_seen_at(app) == before

    def test_a_request_that_extends_it_stores_when_its_user_was_seen(self, app, alice, bob):
        before = set_last_seen(app, now() - timedelta(days=1))
        set_timestamps(app, last_seen_at=before)
        alice.get("/users/me")
        assert now() - user_last_seen_at(app, "alice") < timedelta(minutes=1)
        assert user_last_seen_at(app, "bob") == before

    def test_a_request_that_does_not_extend_it_writes_nothing(self, app, alice, statements):
        before = set_last_seen(app, now() - timedelta(days=1))
        statements.clear()
        assert alice.get("/users/me").status_code == 200
        assert [sql for sql in statements if not sql.startswith("SELECT")] == []
        assert user_last_seen_at(app, "alice") == before

    @pytest.mark.parametrize(
        "send",
        [lambda client: client.get("/users/me"), lambda client: client.post("/posts", json=POST)],
    )
    def test_a_session_may_end_during_the_request_that_extends_it(
        self, app, alice, monkeypatch, send
    ):
        set_timestamps(app, last_seen_at=now() - timedelta(days=1))
        mark_used = sessions.mark_used

        def touch_deleted_session(*arguments):
            delete_sessions()
            mark_used(*arguments)

        monkeypatch.setattr(endpoint, "MAX_ACCESS_AGE", 3600)  # do not check the session again
        monkeypatch.setattr(sessions, "mark_used", touch_deleted_session)
        assert send(alice).status_code in {200, 201}  # it was valid when the request began
        assert_problem(send(alice), 401)

    def test_nothing_is_saved_if_the_session_ends_while_it_is_extended(
        self, app, alice, monkeypatch
    ):
        set_timestamps(app, last_seen_at=now() - timedelta(days=1))
        monkeypatch.setattr(endpoint, "MAX_ACCESS_AGE", 0)
        monkeypatch.setattr(sessions, "mark_used", delete_sessions)
        assert_problem(alice.post("/posts", json=POST), 401)
        assert alice.get("/posts").json == []

    @pytest.mark.usefixtures("short_lock_timeout")
    def test_a_request_succeeds_if_its_session_cannot_be_extended(self, app, alice):
        set_timestamps(app, last_seen_at=now() - timedelta(days=1))
        with app.app_context(), transaction() as writer:
            writer.execute(sa.update(Session).values(user_agent="locked"))
            assert alice.get("/users/me").json == alice.user

    @pytest.mark.usefixtures("alice", "bob")
    def test_sign_in_purges_expired_sessions(self, app, sign_in):
        set_timestamps(app, created_at=now() - timedelta(days=91))
        sign_in("charlie")
        with app.app_context():
            assert db.session.scalar(sa.select(sa.func.count(Session.id))) == 1

    def test_the_oldest_of_more_than_fifty_sessions_ends(self, app, alice, sign_in_often):
        set_timestamps(app, created_at=now() - timedelta(hours=1))
        newest = sign_in_often(SESSIONS_PER_USER)
        assert_problem(alice.get("/users/me"), 401)
        assert len(newest.get("/sessions").json) == SESSIONS_PER_USER == 50

    def test_the_new_session_is_kept_if_the_clock_has_been_set_back(self, app, sign_in_often):
        sign_in_often(SESSIONS_PER_USER)
        set_timestamps(app, created_at=now() + timedelta(hours=1))
        newer, newest = sign_in_often(1), sign_in_often(1)
        assert len(newest.get("/sessions").json) == SESSIONS_PER_USER
        assert newer.get("/users/me").status_code == 200

    @pytest.mark.skipif(not POSTGRES, reason="SQLite has one writer at a time")
    @pytest.mark.usefixtures("short_lock_timeout")
    def test_sign_in_does_not_wait_for_locked_sessions(self, app, sign_in_often):
        """Otherwise two concurrent sign-ins could wait for each other's deleted sessions."""
        sign_in_often(SESSIONS_PER_USER)
        with app.app_context(), transaction() as other:
            other.execute(sa.delete(Session))
            sign_in_often(1)
            other.rollback()


class TestSessions:
    @pytest.mark.usefixtures("bob")
    def test_users_list_their_own_sessions(self, app, alice):
        headers = {"User-Agent": "tele\u00adphone\t1"}
        app.test_client().post("/signin", json=CREDENTIALS, headers=headers)
        sessions = alice.get("/sessions").json
        assert set(sessions[0]) == {"id", "created_at", "last_seen_at", "user_agent", "current"}
        assert sorted(session["current"] for session in sessions) == [False, True]
        assert {session["user_agent"] for session in sessions} == {"Werkzeug/3.1.9", "telephone1"}

    def test_users_read_each_of_their_sessions(self, alice, sign_in):
        sign_in("alice")
        for session in alice.get("/sessions").json:
            assert alice.get(f"/sessions/{session['id']}").json == session
        assert_problem(alice.get(f"/sessions/{'a' * 21}"), 404)
        assert error_locations(alice.get("/sessions/short")) == {"id"}

    def test_an_expired_session_gets_404(self, app, alice, sign_in):
        sign_in("alice")
        [current, other] = sorted(alice.get("/sessions").json, key=lambda each: not each["current"])
        with app.app_context():
            expired = sa.update(Session).where(Session.id == other["id"])
            db.session.execute(expired.values(last_seen_at=now() - timedelta(days=31)))
            db.session.commit()
        assert alice.get("/sessions").json == [current]
        assert_problem(alice.get(f"/sessions/{other['id']}"), 404)

    def test_users_end_any_of_their_sessions(self, alice, sign_in):
        elsewhere = sign_in("alice")
        [other] = [session for session in alice.get("/sessions").json if not session["current"]]
        assert alice.delete(f"/sessions/{other['id']}").status_code == 204
        assert_problem(elsewhere.get("/users/me"), 401)
        assert alice.get("/users/me").status_code == 200
        assert_problem(alice.delete(f"/sessions/{other['id']}"), 404)

    def test_to_end_the_current_session_is_to_sign_out(self, alice):
        [current] = alice.get("/sessions").json
        response = alice.delete(f"/sessions/{current['id']}")
        assert response.status_code == 204
        assert "Max-Age=0" in response.headers["Set-Cookie"]
        assert_problem(alice.get("/users/me"), 401)

    def test_a_session_of_another_user_gets_404(self, alice, bob):
        [session] = alice.get("/sessions").json
        assert_problem(bob.get(f"/sessions/{session['id']}"), 404)
        assert_problem(bob.delete(f"/sessions/{session['id']}"), 404)
        assert alice.get("/users/me").status_code == 200
        assert error_locations(bob.delete("/sessions/short")) == {"id"}


def test_requests_within_one_app_context_have_their_own_users(app, alice, bob, anonymous):
    with app.app_context():
        user = db.session.scalar(sa.select(User).filter_by(username="bob"))  # opens a transaction
        assert alice.get("/users/me").json == alice.user
        assert bob.patch(f"/users/{user.id}", json={"bio": "Hello."}).status_code == 200
        assert_problem(anonymous.get("/users/me"), 401)
        assert user.bio == "Hello."
