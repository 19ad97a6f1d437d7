"""The recipients of notifications about comments and applications."""

import pytest
import sqlalchemy as sa

from posting.accounts.models import User
from posting.db.base import db
from posting.db.types import new_id
from posting.notifications import telling
from tests.conftest import PASSWORD
from tests.helpers.notifications import choose, kinds_of, told

pytestmark = pytest.mark.usefixtures("stays_consistent")


class TestComments:
    def test_the_author_of_a_post_is_told_of_a_comment(self, alice, bob, post):
        comment = bob.add_comment(post, "And *cloth*?\n\nOr [wool](/x)?")
        [notification] = told(alice)
        assert notification == {
            "id": notification["id"],
            "kind": "comment",
            "created_at": notification["created_at"],
            "read": False,
            "actor": {
                name: bob.user[name] for name in ("id", "username", "display_name", "avatar_url")
            },
            "post": {"id": post["id"], "title": "On engines"},
            "comment": {"id": comment["id"], "excerpt": "And cloth? Or wool?"},
            "reason": None,
            "excerpt": None,
        }
        assert told(bob) == []

    def test_nobody_is_told_of_their_own_acts(self, alice, post):
        comment = alice.add_comment(post, "@alice")
        alice.add_comment(post, "@alice", parent_id=comment["id"])
        choose(alice, post, "all")
        alice.add_comment(post, "@alice")
        alice.create_post("On looms", content="@alice")
        assert told(alice) == []

    def test_the_author_of_a_comment_is_told_of_a_reply(self, alice, bob, eve, post):
        comment = bob.add_comment(post, "And cloth?")
        reply = eve.add_comment(post, "Cloth too.", parent_id=comment["id"])
        assert kinds_of(alice) == ["comment", "comment"]
        [notification] = told(bob)
        assert notification["kind"] == "reply"
        assert notification["comment"]["id"] == reply["id"]
        assert notification["actor"]["username"] == "eve"

    def test_only_the_author_of_the_parent_gets_a_reply(self, alice, bob, eve, post):
        first = bob.add_comment(post, "And cloth?")
        second = eve.add_comment(post, "Cloth too.", parent_id=first["id"])
        alice.add_comment(post, "Indeed.", parent_id=second["id"])
        assert kinds_of(bob) == ["reply"]
        assert kinds_of(eve) == ["reply"]

    def test_a_comment_tells_nobody_twice(self, alice, bob, post):
        """A reply concerns a recipient most, then a mention, then a comment."""
        choose(alice, post, "all")
        comment = alice.add_comment(post, "And cloth?")
        bob.add_comment(post, "@alice @Alice", parent_id=comment["id"])
        assert kinds_of(alice) == ["reply"]
        bob.add_comment(post, "@alice")
        assert kinds_of(alice) == ["mention", "reply"]

    def test_a_repeated_request_tells_nobody_again(self, alice, bob, post):
        for _ in range(2):
            response = bob.post(
                f"/posts/{post['id']}/comments",
                json={"content": "And cloth?"},
                headers={"Idempotency-Key": "1"},
            )
            assert response.status_code == 201
        assert kinds_of(alice) == ["comment"]

    def test_a_refused_comment_tells_nobody(self, alice, bob, post):
        path = f"/posts/{post['id']}/comments"
        refused = bob.post(path, json={"content": "@alice", "parent_id": new_id()})
        assert refused.status_code == 422
        assert told(alice) == []

    def test_a_post_without_an_author_tells_nobody(self, alice, bob, eve, post):
        comment = alice.add_comment(post, "And cloth?")
        assert alice.delete("/users/me").status_code == 204
        bob.add_comment(post, "Cloth too.", parent_id=comment["id"])
        assert kinds_of(bob) == kinds_of(eve) == []


class TestApplications:
    @pytest.fixture
    def applicants(self, make_app):
        return make_app(SIGNUP="approval").test_client()

    def test_moderators_are_told_of_an_application(self, applicants, alice, moderator):
        newcomer = sign_up(applicants, "newcomer")
        [notification] = told(moderator)
        assert notification["kind"] == "application"
        assert notification["actor"]["id"] == newcomer["id"]
        assert notification["post"] is notification["comment"] is None
        assert told(alice) == []

    @pytest.mark.parametrize("decision", ["approve", "refuse"])
    def test_a_decision_deletes_it(self, applicants, moderator, decision):
        path = f"/applications/{sign_up(applicants, 'newcomer')['id']}"
        sign_up(applicants, "another")
        if decision == "approve":
            assert moderator.post(f"{path}/approval").status_code == 201
        else:
            assert moderator.delete(path).status_code == 204
        assert [each["actor"]["username"] for each in told(moderator)] == ["another"]

    def test_a_former_moderator_does_not_see_who_it_is(self, app, applicants, moderator):
        sign_up(applicants, "newcomer")
        with app.app_context():
            db.session.execute(sa.update(User).values(role="member"))
            db.session.commit()
        [notification] = told(moderator)
        assert notification["actor"] is None

    def test_an_open_sign_up_tells_nobody(self, anonymous, moderator):
        anonymous.post("/signup", json={"username": "newcomer", "password": PASSWORD})
        assert told(moderator) == []


def sign_up(client, username):
    body = {"username": username, "password": PASSWORD, "application": "I weave too."}
    response = client.post("/signup", json=body)
    assert response.status_code == 201, response.text
    return response.json


class TestStatements:
    """One statement finds and inserts all recipients."""

    @pytest.fixture
    def about_notifications(self, statements, monkeypatch):
        """Return a function that returns the statements about notifications so far."""
        monkeypatch.setattr(telling, "delete_surplus", lambda _: None)
        return lambda: [sql for sql in statements if "notifications" in sql]

    def test_a_comment_costs_one(self, alice, bob, eve, post, about_notifications):
        own = alice.add_comment(post, "And cloth?")
        choose(eve, post, "all")
        before = len(about_notifications())
        bob.add_comment(post, "@eve", parent_id=own["id"])
        [statement] = about_notifications()[before:]
        assert statement.startswith("INSERT")
        assert kinds_of(alice) == ["reply"]
        assert kinds_of(eve) == ["mention"]

    def test_a_post_without_mentions_costs_none(self, alice, about_notifications):
        alice.create_post("On engines", content="Ask ada@example.org.")
        assert about_notifications() == []
