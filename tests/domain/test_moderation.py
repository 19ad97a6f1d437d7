"""What moderators and operators may do to others, and that it is written down."""

import pytest

from posting.db.engine import db
from posting.db.models import User
from tests.conftest import PASSWORD
from tests.helpers.assertions import problem

CREDENTIALS = {"username": "alice", "password": PASSWORD}


@pytest.fixture
def acts(flask):
    """Return what `flask moderation log` prints, without moments."""

    def acts(*arguments):
        code, output = flask("moderation", "log", *arguments)
        assert code == 0
        return [line.partition(" ")[2] for line in output.splitlines()]

    return acts


class TestSuspension:
    def test_sessions_end_at_once(self, flask, alice, bob):
        assert flask("users", "suspend", "ALICE") == (
            0,
            "alice is suspended and signed out everywhere.\n",
        )
        problem(alice.get("/users/me"), 401)
        problem(alice.post("/posts", json={"title": "a", "content": "b"}), 401)
        assert bob.get("/users/me").status_code == 200

    def test_only_the_right_password_is_told(self, flask, app, alice):
        flask("users", "suspend", "alice")
        client = app.test_client()
        wrong = client.post("/signin", json=CREDENTIALS | {"password": "not the password"})
        unknown = client.post("/signin", json=CREDENTIALS | {"username": "nobody-here"})
        assert problem(wrong, 401)["detail"] == problem(unknown, 401)["detail"]
        right = client.post("/signin", json=CREDENTIALS)
        assert "suspended" in problem(right, 403)["detail"]
        assert "Set-Cookie" not in right.headers
        assert client.get_cookie("session") is None

    def test_what_was_written_stays(self, flask, alice, anonymous, post):
        flask("users", "suspend", "alice")
        assert anonymous.get(f"/posts/{post['id']}").json["author"]["username"] == "alice"
        assert anonymous.get(f"/users/{alice.user['id']}").status_code == 200

    def test_a_restored_user_signs_in_again(self, flask, app, alice):
        flask("users", "suspend", "alice")
        assert flask("users", "restore", "alice") == (0, "alice may sign in again.\n")
        problem(alice.get("/users/me"), 401)
        client = app.test_client()
        assert client.post("/signin", json=CREDENTIALS).status_code == 200


class TestSignUp:
    def test_it_may_be_closed(self, make_app, alice):
        client = make_app(SIGNUP="closed").test_client()
        body = {"username": "newcomer", "password": PASSWORD}
        assert "closed" in problem(client.post("/signup", json=body), 403)["detail"]
        assert client.post("/signin", json=CREDENTIALS).status_code == 200


class TestLog:
    def test_it_holds_what_moderators_delete_of_others(self, acts, alice, moderator, post):
        comment, image = alice.add_comment(post, "Indeed."), alice.add_image(post)
        for path in (
            f"/comments/{comment['id']}",
            f"/images/{image['id']}",
            f"/posts/{post['id']}",
        ):
            assert moderator.delete(path).status_code == 204
        assert acts() == [
            f"morgan deleted post {post['id']} of alice",
            f"morgan deleted image {image['id']} of alice",
            f"morgan deleted comment {comment['id']} of alice",
        ]
        assert acts("--limit", "1") == [f"morgan deleted post {post['id']} of alice"]

    def test_it_does_not_hold_what_one_deletes_oneself(self, acts, alice, moderator, post):
        own = moderator.create_post("On mills")
        moderator.delete(f"/posts/{own['id']}")
        alice.delete(f"/posts/{post['id']}")
        assert acts() == []

    def test_it_does_not_hold_what_was_refused(self, acts, bob, moderator, post):
        problem(bob.delete(f"/posts/{post['id']}"), 403)
        problem(moderator.delete(f"/posts/{post['id']}", headers={"If-Match": '"9"'}), 412)
        assert acts() == []

    def test_it_holds_what_operators_do(self, acts, flask, alice):
        for command in ("promote", "suspend", "restore", "demote"):
            flask("users", command, "alice")
        flask("users", "reset-password", "alice", input="quite another one\n")
        done = ("password reset", "demoted", "restored", "suspended", "promoted")
        assert acts() == [f"operator {act} user alice" for act in done]

    def test_names_are_those_of_today(self, acts, flask, alice, moderator, post):
        moderator.delete(f"/posts/{post['id']}")
        flask("users", "suspend", "alice")
        for client, name in ((alice, "alicia"), (moderator, "morgana")):
            with client.application.app_context():
                user = db.session.get(User, client.user["id"])
                user.username = name
                db.session.commit()
        assert acts() == [
            "operator suspended user alicia",
            f"morgana deleted post {post['id']} of alicia",
        ]

    def test_it_outlives_those_whom_it_names(self, acts, alice, moderator, post):
        moderator.delete(f"/posts/{post['id']}")
        for client in (alice, moderator):
            assert client.delete(f"/users/{client.user['id']}").status_code == 204
        by = f"morgan ({moderator.user['id']})"
        assert acts() == [f"{by} deleted post {post['id']} of {alice.user['id']}"]

    def test_who_else_it_names_is_still_named(self, acts, flask, alice, moderator, post):
        flask("users", "promote", "alice")
        moderator.delete(f"/posts/{post['id']}")
        alice.delete(f"/users/{alice.user['id']}")
        assert acts() == [
            f"morgan deleted post {post['id']} of {alice.user['id']}",
            f"operator promoted user {alice.user['id']}",
        ]

    def test_moments_come_first(self, flask, moderator, post):
        moderator.delete(f"/posts/{post['id']}")
        moment = flask("moderation", "log")[1].split(" ")[0]
        assert moment.startswith("20")
        assert len(moment) == len("2026-11-21T09:30:00.125Z")
