"""How often one may do something, counted in the database."""

import re
from datetime import timedelta
from io import BytesIO

import pytest
import sqlalchemy as sa

from posting.auth import passwords
from posting.db.engine import db
from posting.db.models import RateWindow
from posting.db.types import now
from tests.conftest import PASSWORD
from tests.helpers import pictures
from tests.helpers.assertions import problem

HERE, ELSEWHERE = "203.0.113.7", "198.51.100.9"
WRONG = "not the password"


@pytest.fixture
def limited(make_app):
    """Make an app with these limits and no others."""

    def limited(**limits):
        names = ("SIGNIN", "SIGNUP", "POSTS", "COMMENTS", "IMAGES")
        settings = {f"LIMIT_{name}": limits.get(name.lower(), "") for name in names}
        return make_app(RATE_LIMITS="on", **settings)

    return limited


@pytest.fixture
def as_alice(alice):
    """Return a client of an app in which Alice is signed in."""

    def as_alice(app, who=alice):
        client = app.test_client()
        client.set_cookie("session", who.get_cookie("session").value)
        return client

    return as_alice


def write(client, **fields):
    return client.post("/posts", json={"title": "a", "content": "b"} | fields)


def sign_up(client, name, address=HERE):
    body = {"username": name, "password": PASSWORD}
    return client.post("/signup", json=body, environ_base={"REMOTE_ADDR": address})


def sign_in(client, password=PASSWORD, name="alice", address=HERE, **headers):
    body = {"username": name, "password": password}
    return client.post("/signin", json=body, environ_base={"REMOTE_ADDR": address}, headers=headers)


def age(app, **by):
    """Move all windows into the past."""
    with app.app_context():
        for window in db.session.scalars(sa.select(RateWindow)):
            window.ends_at -= timedelta(**by)
        db.session.commit()


def windows(app):
    with app.app_context():
        return db.session.scalar(sa.select(sa.func.count()).select_from(RateWindow))


def remaining(answer, name):
    match = re.search(rf'"{name}";r=(\d+);t=(\d+)', answer.headers["RateLimit"])
    return int(match[1])


class TestWriting:
    def test_so_much_and_no_more_within_an_hour(self, app, limited, as_alice):
        client = as_alice(limited(posts="3/hour"))
        assert [write(client).status_code for _ in range(3)] == [201] * 3
        answer = write(client)
        assert "3 an hour" in problem(answer, 429)["detail"]
        assert 3590 <= int(answer.headers["Retry-After"]) <= 3600
        assert len(client.get("/posts").json) == 3
        age(app, hours=1)
        assert write(client).status_code == 201

    def test_headers_tell_what_is_left(self, limited, as_alice):
        """As in draft-ietf-httpapi-ratelimit-headers-10."""
        client = as_alice(limited(posts="2/minute"))
        for left in (1, 0, 0):
            answer = write(client)
            assert answer.headers["RateLimit-Policy"] == '"posts";q=2;w=60'
            assert re.fullmatch(rf'"posts";r={left};t=(5\d|60)', answer.headers["RateLimit"])
        assert "RateLimit" not in client.get("/posts").headers

    def test_each_user_has_their_own(self, limited, as_alice, bob):
        app = limited(posts="1/hour")
        for who in (as_alice(app), as_alice(app, bob)):
            assert [write(who).status_code for _ in range(2)] == [201, 429]

    def test_each_kind_has_its_own(self, limited, as_alice, post):
        client = as_alice(limited(comments="1/hour", images="1/hour"))
        path = f"/posts/{post['id']}"
        for _ in range(2):
            assert client.post("/posts", json={"title": "a", "content": "b"}).status_code == 201
        for status in (201, 429):
            comment = client.post(f"{path}/comments", json={"content": "a"})
            image = client.post(f"{path}/images", data={"file": (BytesIO(pictures.png()), "a")})
            assert (comment.status_code, image.status_code) == (status, status)

    def test_what_fails_is_not_counted(self, limited, as_alice):
        client = as_alice(limited(posts="1/hour"))
        problem(write(client, title=""), 422)
        problem(client.post("/posts", data="{", content_type="application/json"), 400)
        assert write(client).status_code == 201

    def test_what_is_sent_again_is_not_counted(self, limited, as_alice):
        client = as_alice(limited(posts="2/hour"))
        for _ in range(2):
            body = {"title": "a", "content": "b"}
            answer = client.post("/posts", json=body, headers={"Idempotency-Key": "a"})
            assert answer.status_code == 201
        assert write(client).status_code == 201

    def test_an_answer_that_got_lost_is_given_when_none_is_left(self, limited, as_alice):
        client = as_alice(limited(posts="1/hour"))
        body, headers = {"title": "a", "content": "b"}, {"Idempotency-Key": "a"}
        first, again = (client.post("/posts", json=body, headers=headers) for _ in range(2))
        assert (again.status_code, again.json) == (201, first.json)
        problem(client.post("/posts", json=body, headers={"Idempotency-Key": "b"}), 429)

    def test_it_answers_after_401_and_before_all_else(self, limited, as_alice, post):
        app = limited(posts="1/hour", images="1/hour")
        client = as_alice(app)
        client.post("/posts", json={"title": "a", "content": "b"})
        problem(app.test_client().post("/posts", json={}), 401)
        for body in (b"{", b"x" * 2**21, b""):
            problem(client.post("/posts", data=body, content_type="text/plain"), 429)

    def test_reading_editing_and_deleting_are_not_limited(self, limited, as_alice):
        client = as_alice(limited(posts="1/hour"))
        path = write(client).headers["Location"]
        for _ in range(3):
            assert client.get(path).status_code == 200
            assert client.patch(path, json={"title": "b"}).status_code == 200
        assert client.delete(path).status_code == 204

    def test_they_are_off_in_tests_and_may_be_off_elsewhere(self, make_app, limited, as_alice):
        for app in (make_app(LIMIT_POSTS="1/hour"), limited(posts="")):
            client = as_alice(app)
            for _ in range(2):
                answer = write(client)
                assert answer.status_code == 201
                assert "RateLimit" not in answer.headers


class TestSigningUp:
    def test_an_address_opens_so_many_accounts(self, app, limited):
        client = limited(signup="2/hour").test_client()
        assert sign_up(client, "one").status_code == 201
        assert sign_up(client, "ONE").status_code == 409
        problem(sign_up(client, "two"), 429)
        assert sign_up(client, "two", ELSEWHERE).status_code == 201
        age(app, hours=1)
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
    def test_an_address_is_an_ipv4_one_or_a_64th_of_ipv6(self, limited, one, other, same):
        client = limited(signup="1/hour").test_client()
        assert sign_up(client, "one", one).status_code == 201
        assert sign_up(client, "two", other).status_code == (429 if same else 201)

    def test_nobody_chooses_their_address(self, limited, make_app):
        spoofed = [{"X-Forwarded-For": f"192.0.2.{number}"} for number in range(3)]
        client = limited(signup="1/hour").test_client()
        body = {"password": PASSWORD}
        statuses = [
            client.post("/signup", json=body | {"username": f"user-{n}"}, headers=sent).status_code
            for n, sent in enumerate(spoofed)
        ]
        assert statuses == [201, 429, 429]
        behind = make_app(RATE_LIMITS="on", LIMIT_SIGNUP="1/hour", PROXY_HOPS=1).test_client()
        statuses = [
            behind.post("/signup", json=body | {"username": f"more-{n}"}, headers=sent).status_code
            for n, sent in enumerate(spoofed)
        ]
        assert statuses == [201] * 3


@pytest.mark.usefixtures("alice", "bob")
class TestSigningIn:
    def test_failures_from_one_address_run_out(self, app, limited):
        client = limited(signin="3/hour").test_client()
        for name in ("alice", "ALICE", "Alice"):
            problem(sign_in(client, WRONG, name), 401)
        answer = sign_in(client)
        problem(answer, 429)
        assert int(answer.headers["Retry-After"]) > 3590
        age(app, hours=1)
        assert sign_in(client).status_code == 200

    def test_the_victim_signs_in_from_elsewhere(self, limited):
        client = limited(signin="3/hour").test_client()
        for _ in range(5):
            sign_in(client, WRONG)
        assert sign_in(client, address=ELSEWHERE).status_code == 200

    def test_the_right_password_is_not_counted(self, limited):
        client = limited(signin="2/hour").test_client()
        for _ in range(12):
            assert sign_in(client).status_code == 200
        problem(sign_in(client, WRONG), 401)
        assert sign_in(client).status_code == 200
        problem(sign_in(client, WRONG), 401)
        problem(sign_in(client), 429)

    def test_an_address_may_not_try_one_name_after_another(self, limited):
        """It has five times what it has for one name."""
        client = limited(signin="2/hour").test_client()
        for number in range(10):
            problem(sign_in(client, WRONG, f"name-{number}"), 401)
        problem(sign_in(client, WRONG, "name-10"), 429)
        problem(sign_in(client), 429)
        assert sign_in(client, address=ELSEWHERE).status_code == 200

    def test_unknown_names_are_limited_alike(self, limited):
        client = limited(signin="2/hour").test_client()
        answers = {
            name: [sign_in(client, WRONG, name) for _ in range(3)] for name in ("bob", "nobody")
        }
        for known, unknown in zip(*answers.values(), strict=True):
            assert known.status_code == unknown.status_code
            assert list(known.headers.keys()) == list(unknown.headers.keys())
            assert known.headers["RateLimit-Policy"] == unknown.headers["RateLimit-Policy"]

    def test_guessing_the_current_password_counts_too(self, limited, as_alice, alice):
        client = as_alice(limited(signin="2/hour"))
        path = f"/users/{alice.user['id']}"
        change = {"password": "another walk by the sea", "current_password": WRONG}
        for _ in range(2):
            problem(client.patch(path, json=change), 422)
        problem(client.patch(path, json=change | {"current_password": PASSWORD}), 429)
        assert client.patch(path, json={"bio": "x"}).status_code == 200

    def test_another_name_brings_no_more_guesses(self, limited, as_alice, alice):
        client = as_alice(limited(signin="2/hour"))
        path = f"/users/{alice.user['id']}"
        change = {"password": "another walk by the sea", "current_password": WRONG}
        for _ in range(2):
            problem(client.patch(path, json=change), 422)
        assert client.patch(path, json={"username": "alice-two"}).status_code == 200
        problem(client.patch(path, json=change), 429)

    def test_a_hit_is_given_back_to_its_own_window(self, app, limited, monkeypatch):
        """Not to one that has begun while the password was hashed."""
        client = limited(signin="1/hour").test_client()
        matches = passwords.check_password_hash

        def slow(*arguments):
            monkeypatch.undo()
            age(app, hours=1)
            problem(sign_in(client, WRONG), 401)
            return matches(*arguments)

        monkeypatch.setattr(passwords, "check_password_hash", slow)
        assert sign_in(client).status_code == 200
        problem(sign_in(client, WRONG), 429)

    def test_a_refusal_tells_what_is_left_for_the_address(self, limited):
        client = limited(signin="1/hour").test_client()
        sign_in(client, WRONG)
        for _ in range(2):
            assert remaining(sign_in(client, WRONG), "signin-address") == 4

    def test_headers_tell_of_both(self, limited):
        client = limited(signin="2/hour").test_client()
        answer = sign_in(client, WRONG)
        assert answer.headers["RateLimit-Policy"] == (
            '"signin-address";q=10;w=3600, "signin";q=2;w=3600'
        )
        assert (remaining(answer, "signin"), remaining(answer, "signin-address")) == (1, 9)


def test_windows_that_ended_are_swept(app, limited):
    client = limited(signup="9/hour").test_client()
    for number in range(5):
        sign_up(client, f"user-{number}", f"203.0.113.{number}")
    assert windows(app) == 5
    age(app, hours=1)
    sign_up(client, "one-more", ELSEWHERE)
    assert windows(app) == 1


@pytest.mark.parametrize("days", [1, 365])
def test_a_clock_that_was_ahead_locks_out_no_one(app, limited, as_alice, days):
    """A window that ends later than a whole window from now counts as ended."""
    app_with_limits = limited(posts="2/hour", signin="1/hour")
    client, guesser = as_alice(app_with_limits), app_with_limits.test_client()
    for _ in range(2):
        write(client)
    problem(sign_in(guesser, WRONG), 401)
    age(app, days=-days)
    answers = [write(client), write(client)]
    assert [answer.status_code for answer in answers] == [201, 201]
    assert remaining(answers[-1], "posts") == 0
    problem(write(client), 429)
    assert sign_in(guesser).status_code == 200


def test_clocks_of_machines_may_differ_a_little(app, limited, as_alice):
    client = as_alice(limited(posts="2/hour"))
    for _ in range(2):
        write(client)
    age(app, seconds=-30)
    problem(write(client), 429)


def test_no_address_and_no_name_is_stored(app, limited):
    sign_in(limited(signin="9/hour").test_client(), WRONG)
    with app.app_context():
        for window in db.session.scalars(sa.select(RateWindow)):
            assert re.fullmatch(r"[0-9a-f]{32}", window.key)
            assert now() < window.ends_at <= now() + timedelta(hours=1)


def test_the_document_tells(anonymous):
    document = anonymous.get("/openapi.json").json
    for path in ("/posts", "/posts/{id}/comments", "/posts/{id}/images", "/signin", "/signup"):
        responses = document["paths"][path]["post"]["responses"]
        assert "429" in responses
        made = responses.get("201") or responses["200"]
        assert {"RateLimit", "RateLimit-Policy"} <= made["headers"].keys()
        refusal = responses["429"]
        assert {"Retry-After", "RateLimit", "RateLimit-Policy"} <= refusal["headers"].keys()
