"""Rate limits: new content, sign-ups and failed sign-ins."""

import re
from datetime import timedelta
from io import BytesIO
from threading import BoundedSemaphore
from unittest.mock import patch

import pytest
import sqlalchemy as sa
from werkzeug.exceptions import Conflict, ServiceUnavailable

from posting.accounts import passwords
from posting.db.base import db
from posting.db.types import now
from posting.web import limits as rate_limits
from posting.web.endpoint import PUBLIC, Blueprint
from posting.web.limits import Counts, Limit, RateWindow
from tests.conftest import PASSWORD
from tests.helpers import pictures
from tests.helpers.assertions import assert_problem

HERE, ELSEWHERE = "203.0.113.7", "198.51.100.9"
WRONG = "not the password"


@pytest.fixture
def limited(make_app):
    """Return a function that creates an app with the given limits and no others."""

    def limited(**limits):
        names = ("SIGNIN", "PASSWORDS", "SIGNUP", "POSTS", "COMMENTS", "IMAGES")
        settings = {f"LIMIT_{name}": limits.get(name.lower(), "") for name in names}
        return make_app(RATE_LIMITS="on", **settings)

    return limited


@pytest.fixture
def wait(monkeypatch):
    """Stop the clock of the limits; return a function that moves it."""
    time = now()
    monkeypatch.setattr(rate_limits, "now", lambda: time)

    def wait(seconds):
        nonlocal time
        time += timedelta(seconds=seconds)

    return wait


def create_post(client, **fields):
    return client.post("/posts", json={"title": "a", "content": "b"} | fields)


def sign_up(client, name, address=HERE, headers=None):
    body = {"username": name, "password": PASSWORD}
    sent_from = {"REMOTE_ADDR": address}
    return client.post("/signup", json=body, environ_base=sent_from, headers=headers)


def sign_in(client, password=PASSWORD, name="alice", address=HERE):
    body = {"username": name, "password": password}
    return client.post("/signin", json=body, environ_base={"REMOTE_ADDR": address})


def age_windows(app, **by):
    """Move the end of all windows into the past by a duration."""
    with app.app_context():
        for window in db.session.scalars(sa.select(RateWindow)):
            window.ends_at -= timedelta(**by)
        db.session.commit()


def count_windows(app):
    with app.app_context():
        return db.session.scalar(sa.select(sa.func.count()).select_from(RateWindow))


def remaining(response, name):
    match = re.search(rf'"{name}";r=(\d+);t=(\d+)', response.headers["RateLimit"])
    return int(match[1])


class TestContent:
    def test_a_limit_holds_within_its_window(self, limited, alice, wait):
        client = alice.copy(limited(posts="3/hour"))
        assert [create_post(client).status_code for _ in range(3)] == [201] * 3
        wait(seconds=3599)
        response = create_post(client)
        assert "3 an hour" in assert_problem(response, 429)["detail"]
        assert response.headers["Retry-After"] == "1"
        assert len(client.get("/posts").json) == 3
        wait(seconds=1)
        assert create_post(client).status_code == 201

    def test_headers_show_the_remaining_quota(self, limited, alice, wait):
        """As in draft-ietf-httpapi-ratelimit-headers-10."""
        client = alice.copy(limited(posts="2/minute"))
        for left, seconds in ((1, 60), (0, 50), (0, 40)):
            response = create_post(client)
            assert response.headers["RateLimit-Policy"] == '"posts";q=2;w=60'
            assert response.headers["RateLimit"] == f'"posts";r={left};t={seconds}'
            wait(seconds=10)
        assert "RateLimit" not in client.get("/posts").headers

    def test_each_user_has_a_separate_limit(self, limited, alice, bob):
        app = limited(posts="1/hour")
        for client in (alice.copy(app), bob.copy(app)):
            assert [create_post(client).status_code for _ in range(2)] == [201, 429]

    def test_posts_comments_and_images_have_separate_limits(self, limited, alice, post):
        client = alice.copy(limited(comments="1/hour", images="1/hour"))
        path = f"/posts/{post['id']}"
        for _ in range(2):
            assert create_post(client).status_code == 201
        for status in (201, 429):
            comment = client.post(f"{path}/comments", json={"content": "a"})
            image = client.post(f"{path}/images", data={"file": (BytesIO(pictures.png()), "a")})
            assert (comment.status_code, image.status_code) == (status, status)

    def test_an_invalid_request_is_not_counted(self, limited, alice):
        client = alice.copy(limited(posts="1/hour"))
        assert_problem(create_post(client, title=""), 422)
        assert_problem(client.post("/posts", data="{", content_type="application/json"), 400)
        assert create_post(client).status_code == 201

    def test_a_repeated_request_with_a_key_is_not_counted(self, limited, alice):
        client = alice.copy(limited(posts="2/hour"))
        for _ in range(2):
            body = {"title": "a", "content": "b"}
            response = client.post("/posts", json=body, headers={"Idempotency-Key": "a"})
            assert response.status_code == 201
        assert create_post(client).status_code == 201

    def test_a_repeated_request_with_a_key_succeeds_at_the_limit(self, limited, alice):
        client = alice.copy(limited(posts="1/hour"))
        body, headers = {"title": "a", "content": "b"}, {"Idempotency-Key": "a"}
        first, again = (client.post("/posts", json=body, headers=headers) for _ in range(2))
        assert (again.status_code, again.json) == (201, first.json)
        assert_problem(client.post("/posts", json=body, headers={"Idempotency-Key": "b"}), 429)

    def test_429_comes_after_errors_of_the_request_and_before_those_of_the_view(
        self, limited, alice
    ):
        app = limited(comments="1/hour")
        client = alice.copy(app)
        path = f"/posts/{client.create_post('a')['id']}/comments"
        comment, unknown = {"content": "a"}, f"/posts/{'a' * 21}/comments"
        assert client.post(path, json=comment).status_code == 201
        assert_problem(app.test_client().post(path, json=comment), 401)
        assert_problem(client.post(path, data=b"x" * 2**21), 413)
        assert_problem(client.post(path, data=b"{", content_type="application/json"), 400)
        assert_problem(client.post(path, json={}), 422)
        assert_problem(client.post(unknown, json=comment), 429)

    def test_reads_and_deletions_are_not_limited(self, limited, alice):
        client = alice.copy(limited(posts="1/hour", comments="1/hour"))
        path = create_post(client).headers["Location"]
        assert client.patch(path, json={"title": "b"}).status_code == 200
        assert_problem(client.patch(path, json={"title": "c"}), 429)
        for _ in range(3):
            assert client.get(path).status_code == 200
        assert client.delete(path).status_code == 204

    def test_edits_of_all_kinds_have_one_limit(self, limited, alice, bob, post):
        comment, image = alice.add_comment(post, "a"), alice.add_image(post)
        app = limited(comments="4/hour")
        client = alice.copy(app)
        edits = {
            f"/posts/{post['id']}": {"title": "b"},
            f"/comments/{comment['id']}": {"content": "b"},
            f"/images/{image['id']}": {"alt": "b"},
            "/users/me": {"bio": "b"},
        }
        for left, (path, body) in enumerate(edits.items()):
            response = client.patch(path, json=body)
            assert (response.status_code, remaining(response, "edits")) == (200, 3 - left)
        for path, body in edits.items():
            assert "4 an hour" in assert_problem(client.patch(path, json=body), 429)["detail"]
        by_id = f"/users/{client.get('/users/me').json['id']}"
        assert_problem(client.patch(by_id, json={"bio": "c"}), 429)
        path = f"/posts/{post['id']}/comments"
        assert client.post(path, json={"content": "a"}).status_code == 201
        assert bob.copy(app).patch("/users/me", json={"bio": "b"}).status_code == 200

    def test_an_edit_that_fails_is_not_counted(self, limited, alice, bob, post):
        app = limited(comments="1/hour")
        path, edit = f"/posts/{post['id']}", {"title": "b"}
        for _ in range(2):
            assert_problem(bob.copy(app).patch(path, json=edit), 403)
            stale = {"If-Match": '"7"'}
            assert_problem(alice.copy(app).patch(path, json=edit, headers=stale), 412)
        assert alice.copy(app).patch(path, json=edit).status_code == 200

    @pytest.fixture
    def locked(self, alice, moderator):
        """A post on which only moderators may comment."""
        locked = alice.create_post("Locked")
        moderator.put(f"/posts/{locked['id']}/lock")
        return locked

    @pytest.mark.parametrize("kind", ["post", "comment"])
    def test_a_text_is_prepared_only_if_it_may_be_written(self, limited, alice, bob, locked, kind):
        """Words and mentions of a long text take 0.2 seconds."""
        post = alice.create_post("On engines")
        comment = alice.add_comment(post, "a")
        app = limited(posts="1/hour", comments="1/hour")
        alice, bob = (client.copy(app) for client in (alice, bob))
        new, path = "/posts", f"/posts/{post['id']}"
        if kind == "comment":
            new, path = f"{path}/comments", f"/comments/{comment['id']}"
        body = {"content": "b"} | ({"title": "b"} if kind == "post" else {})
        prepare_text = f"posting.{kind}s.views.prepare_text"
        with patch(prepare_text, None):
            assert_problem(bob.patch(path, json=body), 403)
            assert_problem(bob.patch(path[:-1], json=body), 422)
            stale = {"If-Match": '"7"'}
            assert_problem(alice.patch(path, json=body, headers=stale), 412)
            if kind == "comment":
                other = f"/posts/{'a' * 21}/comments", f"/posts/{locked['id']}/comments"
                assert [bob.post(path, json=body).status_code for path in other] == [404, 403]
                assert_problem(bob.post(new, json=body | {"parent_id": "a" * 21}), 422)
        assert alice.post(new, json=body).status_code == 201
        assert alice.patch(path, json=body).status_code == 200
        with patch(prepare_text, None):
            assert_problem(alice.post(new, json=body), 429)
            assert_problem(alice.patch(path, json=body), 429)

    def test_limits_are_off_in_tests_and_if_set_to_off(self, make_app, limited, alice):
        for app in (make_app(LIMIT_POSTS="1/hour"), limited(posts="off")):
            client = alice.copy(app)
            for _ in range(2):
                response = create_post(client)
                assert response.status_code == 201
                assert "RateLimit" not in response.headers


class TestSignUp:
    def test_sign_ups_are_limited_by_ip_address(self, app, limited):
        client = limited(signup="2/hour").test_client()
        assert sign_up(client, "one").status_code == 201
        assert sign_up(client, "ONE").status_code == 409
        assert_problem(sign_up(client, "two"), 429)
        assert sign_up(client, "two", ELSEWHERE).status_code == 201
        age_windows(app, hours=1)
        assert sign_up(client, "three").status_code == 201

    @pytest.mark.parametrize(
        ("one", "other", "same"),
        [
            ("2001:db8:1:2::1", "2001:db8:1:2:ffff::9", True),
            ("2001:db8:1:2::1", "2001:db8:1:3::1", False),
            ("::ffff:203.0.113.7", "203.0.113.7", True),
            ("203.0.113.7", "203.0.113.8", False),
            ("203.0.113.7:5123", "203.0.113.7:80", True),
            ("203.0.113.7:5123", "203.0.113.8:5123", False),
            ("[2001:db8::1]:80", "2001:db8::2", True),
            ("", "", True),
        ],
    )
    def test_an_ipv6_network_of_64_bits_counts_as_one_address(self, limited, one, other, same):
        client = limited(signup="1/hour").test_client()
        assert sign_up(client, "one", one).status_code == 201
        assert sign_up(client, "two", other).status_code == (429 if same else 201)

    def test_x_forwarded_for_counts_only_from_a_configured_proxy(self, make_app):
        for hops, expected in ((0, [201, 429, 429]), (1, [201, 201, 201])):
            app = make_app(RATE_LIMITS="on", LIMIT_SIGNUP="1/hour", PROXY_HOPS=hops)
            client = app.test_client()
            statuses = []
            for number in range(3):
                headers = {"X-Forwarded-For": f"192.0.2.{number}"}
                response = sign_up(client, f"user-{hops}-{number}", headers=headers)
                statuses.append(response.status_code)
            assert statuses == expected


@pytest.mark.usefixtures("alice", "bob")
class TestSignIn:
    def test_failures_of_one_address_and_account_are_limited(self, limited, wait):
        client = limited(signin="3/hour").test_client()
        for name in ("alice", "ALICE", "Alice"):
            assert_problem(sign_in(client, WRONG, name), 401)
        response = sign_in(client)
        assert_problem(response, 429)
        assert response.headers["Retry-After"] == "3600"
        wait(seconds=3600)
        assert sign_in(client).status_code == 200

    def test_the_owner_of_the_account_can_sign_in_from_another_address(self, limited):
        client = limited(signin="3/hour").test_client()
        for _ in range(5):
            sign_in(client, WRONG)
        assert sign_in(client, address=ELSEWHERE).status_code == 200

    def test_a_successful_sign_in_does_not_count_as_a_failure(self, limited):
        client = limited(signin="2/hour").test_client()
        for _ in range(12):
            assert sign_in(client).status_code == 200
        assert_problem(sign_in(client, WRONG), 401)
        assert sign_in(client).status_code == 200
        assert_problem(sign_in(client, WRONG), 401)
        assert_problem(sign_in(client), 429)

    def test_failures_of_one_address_for_all_accounts_are_limited(self, limited):
        """The limit is five times the limit for one account."""
        client = limited(signin="2/hour").test_client()
        for number in range(10):
            assert_problem(sign_in(client, WRONG, f"name-{number}"), 401)
        assert_problem(sign_in(client, WRONG, "name-10"), 429)
        assert_problem(sign_in(client), 429)
        assert sign_in(client, address=ELSEWHERE).status_code == 200

    def test_unknown_usernames_have_the_same_limit(self, limited):
        client = limited(signin="2/hour").test_client()
        responses = {
            name: [sign_in(client, WRONG, name) for _ in range(3)] for name in ("bob", "nobody")
        }
        for known, unknown in zip(*responses.values(), strict=True):
            assert known.status_code == unknown.status_code
            assert list(known.headers.keys()) == list(unknown.headers.keys())
            assert known.headers["RateLimit-Policy"] == unknown.headers["RateLimit-Policy"]

    def test_a_wrong_current_password_counts_as_a_failure(self, limited, alice):
        client = alice.copy(limited(signin="2/hour"))
        path = f"/users/{alice.user['id']}"
        change = {"password": "another walk by the sea", "current_password": WRONG}
        for _ in range(2):
            assert_problem(client.patch(path, json=change), 422)
        assert_problem(client.patch(path, json=change | {"current_password": PASSWORD}), 429)
        assert client.patch(path, json={"bio": "x"}).status_code == 200

    def test_a_new_username_does_not_reset_the_limit(self, limited, alice):
        client = alice.copy(limited(signin="2/hour"))
        path = f"/users/{alice.user['id']}"
        change = {"password": "another walk by the sea", "current_password": WRONG}
        for _ in range(2):
            assert_problem(client.patch(path, json=change), 422)
        assert client.patch(path, json={"username": "alice-two"}).status_code == 200
        assert_problem(client.patch(path, json=change), 429)

    def test_a_hit_is_refunded_only_to_its_own_window(self, app, limited, monkeypatch):
        """Another window may have begun while the password was hashed."""
        client = limited(signin="1/hour").test_client()
        monkeypatch.setattr(passwords, "_cores", BoundedSemaphore(2))
        check_password_hash = passwords.check_password_hash

        def fail_in_next_window(*arguments):
            monkeypatch.setattr(passwords, "check_password_hash", check_password_hash)
            age_windows(app, hours=1)
            assert_problem(sign_in(client, WRONG), 401)
            return check_password_hash(*arguments)

        monkeypatch.setattr(passwords, "check_password_hash", fail_in_next_window)
        assert sign_in(client).status_code == 200
        assert_problem(sign_in(client, WRONG), 429)

    def test_a_refused_attempt_does_not_use_the_quota_of_the_address(self, limited):
        client = limited(signin="1/hour").test_client()
        sign_in(client, WRONG)
        for _ in range(2):
            assert remaining(sign_in(client, WRONG), "signin-address") == 4

    def test_headers_show_both_limits(self, limited):
        client = limited(signin="2/hour").test_client()
        response = sign_in(client, WRONG)
        assert response.headers["RateLimit-Policy"] == (
            '"signin-address";q=10;w=3600, "signin";q=2;w=3600'
        )
        assert (remaining(response, "signin"), remaining(response, "signin-address")) == (1, 9)


class TestRightPasswords:
    """They have a limit of their own, because they cost as much to check as wrong ones."""

    def test_those_of_an_account_are_limited_wherever_they_are_sent(self, limited, alice, bob):
        app = limited(passwords="3/hour")
        client, visitor = alice.copy(app), app.test_client()
        codes = client.post("/recovery-codes", json={"current_password": PASSWORD})
        assert codes.status_code == 201
        assert sign_in(visitor, address=ELSEWHERE).status_code == 200
        change = {"password": PASSWORD, "current_password": PASSWORD}
        assert client.patch("/users/me", json=change).status_code == 200
        for response in (
            sign_in(visitor),
            client.patch("/users/me", json=change),
            client.post("/recovery-codes", json={"current_password": PASSWORD}),
        ):
            assert "3 an hour" in assert_problem(response, 429)["detail"]
        assert client.patch("/users/me", json={"bio": "x"}).status_code == 200
        assert sign_in(visitor, name="bob").status_code == 200

    def test_a_right_recovery_code_counts(self, limited, alice):
        client = limited(passwords="2/hour").test_client()
        body = {"current_password": PASSWORD}
        codes = alice.copy(client.application).post("/recovery-codes", json=body).json["codes"]
        body = {"username": "alice", "password": "another walk by the sea"}
        for code, status in zip(codes, (200, 429), strict=False):
            response = client.post("/password-resets", json=body | {"recovery_code": code})
            assert response.status_code == status

    def test_those_of_an_address_are_limited(self, limited, sign_in_as):
        """The limit is five times the limit of an account."""
        client = limited(passwords="1/hour").test_client()
        for number in range(5):
            assert sign_in_as(client, number, HERE).status_code == 200
        assert_problem(sign_in_as(client, 5, HERE), 429)
        assert sign_in_as(client, 6, ELSEWHERE).status_code == 200

    @pytest.fixture
    def sign_in_as(self, sign_in):
        for number in range(7):
            sign_in(f"user-{number}")

        def sign_in_as(client, number, address):
            body = {"username": f"user-{number}", "password": PASSWORD}
            return client.post("/signin", json=body, environ_base={"REMOTE_ADDR": address})

        return sign_in_as

    @pytest.mark.usefixtures("alice")
    def test_wrong_passwords_do_not_lock_the_owner_out(self, limited):
        client = limited(passwords="2/hour", signin="1000/hour").test_client()
        for number in range(20):
            assert_problem(sign_in(client, WRONG, address=f"203.0.113.{number}"), 401)
        assert sign_in(client, address=ELSEWHERE).status_code == 200

    @pytest.mark.usefixtures("alice")
    def test_beyond_the_limit_no_password_is_hashed(self, limited, monkeypatch):
        client = limited(passwords="1/hour").test_client()
        assert sign_in(client).status_code == 200
        monkeypatch.setattr(passwords, "check_password_hash", None)
        monkeypatch.setattr(passwords, "place_to_hash", None)
        assert_problem(sign_in(client), 429)

    @pytest.mark.usefixtures("alice")
    def test_headers_show_all_limits(self, limited):
        response = sign_in(limited(passwords="2/hour", signin="3/hour").test_client())
        names = ("signin-address", "signin", "passwords-address", "passwords")
        assert [remaining(response, name) for name in names] == [15, 3, 9, 1]
        assert len(response.headers.getlist("RateLimit")) == 1


def test_hits_that_are_not_committed_are_not_announced(limited, monkeypatch):
    def fail(_):
        raise sa.exc.OperationalError("COMMIT", {}, Exception("it is locked"))

    monkeypatch.setattr(rate_limits, "purge_expired", fail)
    response = sign_up(limited(signup="2/hour").test_client(), "one")
    assert_problem(response, 503)
    assert "RateLimit" not in response.headers


class TestAttempts:
    """Errors that follow the count announce the limit, and some of them do not count."""

    @pytest.fixture
    def attempt(self, limited):
        """Return a function that sends an attempt, which fails with an error."""

        class Busy(ServiceUnavailable):
            pass

        blueprint = Blueprint("extra", __name__, description="Extra")
        limit = Limit("extra", "LIMIT_IMAGES", str, Counts.ATTEMPTS, refunded=(Busy,))
        errors = {
            "busy": Busy,
            "conflict": Conflict,
            "internal": RuntimeError,
            "database": sa.exc.OperationalError("SELECT 1", {}, Exception("it is locked")),
        }

        @blueprint.post("/extra/<kind>", access=PUBLIC, limits=[limit], status=204)
        def fail(kind):
            raise errors[kind]

        app = limited(images="3/hour")
        app.config["PROPAGATE_EXCEPTIONS"] = False
        app.register_blueprint(blueprint)
        return lambda kind: app.test_client().post(f"/extra/{kind}")

    @pytest.mark.parametrize(
        ("kind", "status"), [("conflict", 409), ("internal", 500), ("database", 503)]
    )
    def test_an_error_counts_and_announces_the_limit(self, attempt, kind, status):
        for left in (2, 1, 0):
            response = attempt(kind)
            assert (response.status_code, remaining(response, "extra")) == (status, left)
        assert (attempt(kind).status_code, attempt("busy").status_code) == (429, 429)

    def test_an_error_that_is_declared_as_refunded_does_not_count(self, attempt):
        for _ in range(5):
            response = attempt("busy")
            assert (response.status_code, remaining(response, "extra")) == (503, 3)
        assert remaining(attempt("conflict"), "extra") == 2


def test_ended_windows_are_purged(app, limited):
    client = limited(signup="9/hour").test_client()
    for number in range(5):
        sign_up(client, f"user-{number}", f"203.0.113.{number}")
    assert count_windows(app) == 5
    age_windows(app, hours=1)
    sign_up(client, "one-more", ELSEWHERE)
    assert count_windows(app) == 1


def test_windows_are_purged_only_when_one_begins(app, limited, alice, monkeypatch):
    purged = []
    monkeypatch.setattr(rate_limits, "purge_expired", purged.append)
    app_with_limits = limited(signup="4/hour", posts="4/hour")
    client = app_with_limits.test_client()
    for name in ("one", "two"):
        assert sign_up(client, name).status_code == 201
    assert purged == [RateWindow]
    age_windows(app, hours=1)
    assert sign_up(client, "three").status_code == 201
    assert purged == [RateWindow] * 2
    assert create_post(alice.copy(app_with_limits)).status_code == 201
    assert purged == [RateWindow] * 2  # others would wait until the post is committed


@pytest.mark.parametrize("days", [1, 365])
def test_windows_of_a_clock_that_was_ahead_are_ignored(app, limited, alice, days):
    """A window counts as ended if it ends later than a new one would."""
    app_with_limits = limited(posts="2/hour", signin="1/hour")
    client, guesser = alice.copy(app_with_limits), app_with_limits.test_client()
    for _ in range(2):
        create_post(client)
    assert_problem(sign_in(guesser, WRONG), 401)
    age_windows(app, days=-days)
    responses = [create_post(client) for _ in range(2)]
    assert [response.status_code for response in responses] == [201, 201]
    assert remaining(responses[-1], "posts") == 0
    assert_problem(create_post(client), 429)
    assert sign_in(guesser).status_code == 200


def test_clocks_of_several_machines_may_differ_slightly(app, limited, alice):
    client = alice.copy(limited(posts="2/hour"))
    for _ in range(2):
        create_post(client)
    age_windows(app, seconds=-30)
    assert_problem(create_post(client), 429)


def test_no_ip_address_or_username_is_stored(app, limited):
    sign_in(limited(signin="9/hour").test_client(), WRONG)
    with app.app_context():
        for window in db.session.scalars(sa.select(RateWindow)):
            assert re.fullmatch(r"[0-9a-f]{32}", window.key)
            assert now() < window.ends_at <= now() + timedelta(hours=1)


def test_limits_are_documented(anonymous):
    document = anonymous.get("/openapi.json").json
    for path in ("/posts", "/posts/{id}/comments", "/posts/{id}/images", "/signin", "/signup"):
        responses = document["paths"][path]["post"]["responses"]
        assert "429" in responses
        success = responses.get("201") or responses["200"]
        assert {"RateLimit", "RateLimit-Policy"} <= success["headers"].keys()
        headers = responses["429"]["headers"]
        assert {"Retry-After", "RateLimit", "RateLimit-Policy"} <= headers.keys()
