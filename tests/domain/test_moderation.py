"""Suspension, closed sign-up, and the moderation log."""

import pytest

from posting.db.engine import db
from posting.db.models import User
from tests.conftest import PASSWORD
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

    def test_each_line_starts_with_a_timestamp(self, flask, moderator, post):
        moderator.delete(f"/posts/{post['id']}")
        timestamp = flask("moderation", "log")[1].split(" ")[0]
        assert timestamp.startswith("20")
        assert len(timestamp) == len("2026-11-21T09:30:00.125Z")
