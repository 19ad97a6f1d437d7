"""Suspension, closed sign-up, and the moderation log."""

from datetime import timedelta
from io import BytesIO

import pytest
import sqlalchemy as sa

from posting.accounts.models import Session, Token, User
from posting.accounts.views import users
from posting.db.base import db
from posting.db.transactions import transaction
from posting.db.types import now, to_rfc3339
from posting.moderation.models import Act
from posting.web import endpoint, request_body
from tests.conftest import PASSWORD
from tests.helpers import pictures
from tests.helpers.assertions import assert_problem

CREDENTIALS = {"username": "alice", "password": PASSWORD}


@pytest.fixture
def log(flask):
    """Return a function that returns the lines of `flask moderation log`, without timestamps."""

    def log(*arguments):
        code, output = flask("moderation", "log", *arguments)
        assert code == 0
        return [line.partition(" ")[2] for line in output.splitlines()]

    return log


class TestSuspension:
    def test_it_ends_all_sessions_at_once(self, flask, alice, bob):
        expected = "alice is suspended and signed out everywhere.\n"
        assert flask("users", "suspend", "ALICE") == (0, expected)
        assert_problem(alice.get("/users/me"), 401)
        assert_problem(alice.post("/posts", json={"title": "a", "content": "b"}), 401)
        assert bob.get("/users/me").status_code == 200

    def test_sign_in_reveals_it_only_with_the_right_password(self, flask, app, alice):
        flask("users", "suspend", "alice")
        client = app.test_client()
        wrong = client.post("/signin", json=CREDENTIALS | {"password": "not the password"})
        unknown = client.post("/signin", json=CREDENTIALS | {"username": "nobody-here"})
        assert assert_problem(wrong, 401)["detail"] == assert_problem(unknown, 401)["detail"]
        right = client.post("/signin", json=CREDENTIALS)
        assert "suspended" in assert_problem(right, 403)["detail"]
        assert "Set-Cookie" not in right.headers
        assert client.get_cookie("session") is None

    def test_it_says_when_it_ends(self, app, alice):
        until = set_states(app, IN_AN_HOUR)["suspended_until"]
        problem = assert_problem(app.test_client().post("/signin", json=CREDENTIALS), 403)
        assert problem["code"] == "suspended"
        assert problem["detail"] == f"This account is suspended until {to_rfc3339(until)}."

    def test_it_ends_by_itself_at_its_time(self, app, alice, writer):
        for state, status in ((IN_AN_HOUR, 401), (AN_HOUR_AGO, 200)):
            set_states(app, state)
            assert alice.get("/users/me").status_code == status
            assert writer.get("/users/me").status_code == status
        assert app.test_client().post("/signin", json=CREDENTIALS).status_code == 200

    def test_posts_of_a_suspended_user_are_kept(self, flask, alice, anonymous, post):
        flask("users", "suspend", "alice")
        assert anonymous.get(f"/posts/{post['id']}").json["author"]["username"] == "alice"
        assert anonymous.get(f"/users/{alice.user['id']}").status_code == 200

    def test_a_restored_user_can_sign_in_again(self, flask, app, alice):
        flask("users", "suspend", "alice")
        assert flask("users", "restore", "alice") == (0, "alice may sign in again.\n")
        assert_problem(alice.get("/users/me"), 401)
        client = app.test_client()
        assert client.post("/signin", json=CREDENTIALS).status_code == 200

    def test_it_has_no_end_whatever_the_former_one_had(self, flask, app, alice):
        for state in (AN_HOUR_AGO, IN_AN_HOUR):
            set_states(app, state)
            expected = "alice is suspended and signed out everywhere.\n"
            assert flask("users", "suspend", "alice") == (0, expected)
            with app.app_context():
                user = db.session.get(User, alice.user["id"])
                assert (user.state, user.suspended_until) == ("suspended", None)


HOUR = timedelta(hours=1)
# What differs from a new account, as offsets from now.
SUSPENDED = {"suspended_at": -HOUR}
IN_AN_HOUR = {"suspended_at": -HOUR, "suspended_until": HOUR}
AN_HOUR_AGO = {"suspended_at": -HOUR, "suspended_until": -HOUR / 2}
PENDING = {"pending_since": -HOUR}
INACTIVE = pytest.mark.parametrize(
    "state", [SUSPENDED, IN_AN_HOUR, PENDING], ids=["suspended", "until", "pending"]
)


def set_states(app, offsets):
    """Set the state of all users, without ending their sessions and tokens."""
    values = {name: now() + offset for name, offset in offsets.items()}
    with app.app_context(), transaction() as connection:
        connection.execute(sa.update(User).values(values))
    return values


POST, COMMENT = {"title": "a", "content": "b"}, {"content": "c"}
READS = (("GET", "/users/me"),)
WRITES = (
    ("POST", "/posts", POST),
    ("PATCH", "/posts/{post}", POST),
    ("POST", "/posts/{post}/comments", COMMENT),
    ("PATCH", "/comments/{comment}", COMMENT),
    ("DELETE", "/comments/{comment}"),
    ("POST", "/posts/{post}/images"),
    ("DELETE", "/posts/{post}"),
)
OF_SESSIONS = (
    ("GET", "/sessions"),
    ("GET", "/tokens"),
    ("POST", "/tokens", {"name": "x", "scope": "read"}),
    ("PATCH", "/users/me", {"bio": "x"}),
    ("DELETE", "/users/me"),
)
OF_TOKENS = (("GET", "/posts"), ("GET", "/posts/{post}"))


class TestStateOfTheAccount:
    """Sessions and tokens count only while their account is active, even if they still exist."""

    @pytest.fixture
    def send(self, post, alice):
        comment = alice.add_comment(post, "A comment")

        def send(client, method, path, body=None):
            url = path.format(post=post["id"], comment=comment["id"])
            picture = {"file": (BytesIO(pictures.png()), "picture")}
            content = {"data": picture} if path.endswith("/images") else {"json": body}
            return client.open(url, method=method, **content)

        return send

    @INACTIVE
    @pytest.mark.parametrize("request_", READS + WRITES + OF_SESSIONS)
    def test_a_session_of_an_inactive_account_gets_401(
        self, alice, anonymous, send, request_, state
    ):
        app = alice.application
        set_states(app, state)
        with app.app_context():
            assert db.session.scalar(sa.select(sa.func.count(Session.id))) == 1
        refused = assert_problem(send(alice, *request_), 401)
        signed_out = assert_problem(send(anonymous, *request_), 401)
        assert refused == signed_out | {"request_id": refused["request_id"]}

    @INACTIVE
    @pytest.mark.parametrize("request_", READS + WRITES + OF_TOKENS)
    def test_a_token_of_an_inactive_account_gets_401(self, app, writer, send, request_, state):
        assert send(writer, "GET", "/users/me").status_code == 200
        set_states(app, state)
        with app.app_context():
            assert db.session.scalar(sa.select(sa.func.count(Token.id))) == 1
        assert assert_problem(send(writer, *request_), 401)["code"] == "invalid_token"

    @pytest.fixture(params=["alice", "writer"])
    def client(self, request):
        return request.getfixturevalue(request.param)

    @INACTIVE
    @pytest.mark.parametrize("max_age", [0, 3600])
    def test_nothing_is_saved_if_the_account_becomes_inactive_while_the_body_arrives(
        self, client, send, monkeypatch, max_age, state
    ):
        """The request is refused by the check after the body, or else by the lock."""
        parse_json = request_body.parse_json

        def suspend_and_parse(data):
            set_states(client.application, state)
            return parse_json(data)

        monkeypatch.setattr(endpoint, "MAX_ACCESS_AGE", max_age)
        monkeypatch.setattr(request_body, "parse_json", suspend_and_parse)
        assert_problem(send(client, "POST", "/posts/{post}/comments", COMMENT), 401)

    @pytest.mark.parametrize("method", ["PATCH", "DELETE"])
    def test_an_account_that_is_suspended_before_its_lock_stays(
        self, app, alice, anonymous, monkeypatch, method
    ):
        lock_account = users.lock_verified_account

        def suspend_and_lock(user):
            set_states(app, SUSPENDED)
            return lock_account(user)

        monkeypatch.setattr(users, "lock_verified_account", suspend_and_lock)
        body = {"json": {"bio": "x"}} if method == "PATCH" else {}
        assert_problem(alice.open("/users/me", method=method, **body), 401)
        assert anonymous.get(f"/users/{alice.user['id']}").json == alice.user

    def test_it_is_the_same_condition_in_python_and_in_sql(self, app):
        states = {
            "alice": ({}, "active"),
            "bob": (SUSPENDED, "suspended"),
            "carol": (IN_AN_HOUR, "suspended"),
            "dora": (AN_HOUR_AGO, "active"),
            "eve": (PENDING, "pending"),
            "finn": (PENDING | SUSPENDED, "pending"),
        }
        with app.app_context():
            for name, (offsets, _) in states.items():
                values = {column: now() + offset for column, offset in offsets.items()}
                db.session.add(User(username=name, password_hash="x", **values))
            db.session.commit()
            active = db.session.scalars(sa.select(User.username).where(User.is_active)).all()
            assert sorted(active) == ["alice", "dora"]
            for user in db.session.scalars(sa.select(User)):
                assert user.state == states[user.username][1]
                assert user.is_active == (user.username in active)


class TestCommandsWithoutEffect:
    """A command that changes nothing says so and is not in the log."""

    @pytest.mark.parametrize(
        ("commands", "message"),
        [
            (["suspend", "suspend"], "alice is suspended already.\n"),
            (["restore"], "alice is not suspended.\n"),
            (["suspend", "restore", "restore"], "alice is not suspended.\n"),
            (["promote", "promote"], "alice is a moderator already.\n"),
            (["demote"], "alice is a member already.\n"),
            (["approve"], "alice needs no approval.\n"),
        ],
    )
    def test_it_is_not_logged(self, flask, log, alice, commands, message):
        *effective, command = commands
        for each in effective:
            flask("users", each, "alice")
        assert flask("users", command, "ALICE") == (0, message)
        assert len(log()) == len(effective)

    def test_the_restoration_after_a_suspension_has_ended(self, flask, app, log, alice):
        set_states(app, AN_HOUR_AGO)
        assert flask("users", "restore", "alice") == (0, "alice is not suspended.\n")
        assert log() == []


class TestPending:
    """A pending account is not shown, and its name is taken."""

    @pytest.fixture
    def pending(self, app, alice):
        set_states(app, PENDING)
        return alice.user

    @pytest.mark.parametrize(
        "path", ["/users/{id}", "/users/{id}/comments", "/posts?author={id}", "/@alice",
                 "/@alice/feed.atom", "/@alice/feed.json"]
    )  # fmt: skip
    def test_its_id_and_name_get_404(self, anonymous, pending, path):
        assert anonymous.get(path.format(id=pending["id"])).status_code == 404

    def test_it_is_in_no_list(self, anonymous, pending):
        assert anonymous.get("/users?username=alice").json == []

    def test_its_name_is_taken(self, anonymous, pending):
        response = anonymous.post("/signup", json=CREDENTIALS | {"username": "Alice"})
        assert assert_problem(response, 409)["code"] == "username_taken"

    def test_sign_in_reveals_it_only_with_the_right_password(self, anonymous, pending):
        wrong = anonymous.post("/signin", json=CREDENTIALS | {"password": "not the password"})
        unknown = anonymous.post("/signin", json=CREDENTIALS | {"username": "nobody-here"})
        assert assert_problem(wrong, 401)["detail"] == assert_problem(unknown, 401)["detail"]
        right = anonymous.post("/signin", json=CREDENTIALS)
        assert assert_problem(right, 403)["code"] == "pending_approval"
        assert "Set-Cookie" not in right.headers

    def test_an_operator_approves_it(self, app, flask, anonymous, pending, log):
        assert flask("users", "approve", "ALICE") == (0, "alice may sign in now.\n")
        assert anonymous.post("/signin", json=CREDENTIALS).json == pending
        assert log() == ["operator approved user alice"]

    @pytest.mark.parametrize("command", ["promote", "demote", "suspend", "restore"])
    def test_other_commands_say_that_it_waits_for_approval(self, flask, pending, log, command):
        expected = "Error: alice waits for approval. Run: flask users approve alice"
        expected += ", or: flask users delete alice\n"
        assert flask("users", command, "alice") == (1, expected)
        assert log() == []


class TestSignUp:
    def test_it_can_be_closed(self, make_app, alice):
        client = make_app(SIGNUP="closed").test_client()
        body = {"username": "newcomer", "password": PASSWORD}
        assert "closed" in assert_problem(client.post("/signup", json=body), 403)["detail"]
        assert client.post("/signin", json=CREDENTIALS).status_code == 200


class TestLog:
    def test_it_contains_what_moderators_delete_of_others(self, log, alice, moderator, post):
        comment, image = alice.add_comment(post, "Indeed."), alice.add_image(post)
        paths = (f"/comments/{comment['id']}", f"/images/{image['id']}", f"/posts/{post['id']}")
        for path in paths:
            assert moderator.delete(path).status_code == 204
        assert log() == [
            f"morgan deleted post {post['id']} of alice",
            f"morgan deleted image {image['id']} of alice",
            f"morgan deleted comment {comment['id']} of alice",
        ]
        assert log("--limit", "1") == [f"morgan deleted post {post['id']} of alice"]

    def test_it_omits_what_users_delete_of_their_own(self, log, alice, moderator, post):
        own = moderator.create_post("On mills")
        moderator.delete(f"/posts/{own['id']}")
        alice.delete(f"/posts/{post['id']}")
        assert log() == []

    def test_it_omits_refused_requests(self, log, bob, moderator, post):
        assert_problem(bob.delete(f"/posts/{post['id']}"), 403)
        assert_problem(moderator.delete(f"/posts/{post['id']}", headers={"If-Match": '"9"'}), 412)
        assert log() == []

    def test_it_contains_the_actions_of_operators(self, log, flask, alice):
        for command in ("promote", "suspend", "restore", "demote"):
            flask("users", command, "alice")
        flask("users", "reset-password", "alice", input="quite another one\n")
        actions = ("password reset", "demoted", "restored", "suspended", "promoted")
        assert log() == [f"operator {action} user alice" for action in actions]

    def test_it_shows_the_current_usernames(self, log, flask, alice, moderator, post):
        moderator.delete(f"/posts/{post['id']}")
        flask("users", "suspend", "alice")
        with alice.application.app_context():
            for client, name in ((alice, "alicia"), (moderator, "morgana")):
                db.session.get(User, client.user["id"]).username = name
            db.session.commit()
        assert log() == [
            "operator suspended user alicia",
            f"morgana deleted post {post['id']} of alicia",
        ]

    def test_it_keeps_actions_of_and_on_deleted_accounts(self, log, alice, moderator, post):
        moderator.delete(f"/posts/{post['id']}")
        for client in (alice, moderator):
            assert client.delete(f"/users/{client.user['id']}").status_code == 204
        by = f"morgan ({moderator.user['id']})"
        assert log() == [f"{by} deleted post {post['id']} of {alice.user['id']}"]

    def test_it_still_shows_the_usernames_of_other_accounts(
        self, log, flask, alice, moderator, post
    ):
        flask("users", "promote", "alice")
        moderator.delete(f"/posts/{post['id']}")
        alice.delete(f"/users/{alice.user['id']}")
        assert log() == [
            f"morgan deleted post {post['id']} of {alice.user['id']}",
            f"operator promoted user {alice.user['id']}",
        ]

    def test_an_act_has_what_it_is_about_in_columns(self, app, flask, alice, moderator, post):
        comment = alice.add_comment(post, "Indeed.")
        moderator.delete(f"/comments/{comment['id']}")
        alice.delete(f"/users/{alice.user['id']}")
        moderator.delete(f"/posts/{post['id']}")  # without an author
        flask("users", "demote", "morgan")
        by = ("morgan", moderator.user["id"])
        own_id = moderator.user["id"]
        with app.app_context():
            acts = db.session.scalars(sa.select(Act).order_by(Act.created_at)).all()
            assert [(act.action, act.target_kind, act.target_id, act.user_id) for act in acts] == [
                ("deleted", "comment", comment["id"], alice.user["id"]),
                ("deleted", "post", post["id"], None),
                ("demoted", "user", own_id, own_id),
            ]
            assert [(act.moderator, act.moderator_id) for act in acts] == [
                by, by, ("operator", None)
            ]  # fmt: skip
            assert {act.reason for act in acts} == {None}

    def test_it_omits_the_author_of_what_had_none(self, log, alice, moderator, post):
        alice.delete(f"/users/{alice.user['id']}")
        moderator.delete(f"/posts/{post['id']}")
        assert log() == [f"morgan deleted post {post['id']}"]

    def test_the_names_of_all_lines_are_read_with_the_acts(
        self, log, alice, bob, moderator, statements
    ):
        for client in (alice, bob):
            moderator.delete(f"/posts/{client.create_post('x')['id']}")
        statements.clear()
        assert len(log()) == 2
        assert len([sql for sql in statements if "FROM acts" in sql or "FROM users" in sql]) == 1

    def test_each_line_starts_with_a_timestamp(self, flask, moderator, post):
        moderator.delete(f"/posts/{post['id']}")
        timestamp = flask("moderation", "log")[1].split(" ")[0]
        assert timestamp.startswith("20")
        assert len(timestamp) == len("2026-11-21T09:30:00.125Z")
