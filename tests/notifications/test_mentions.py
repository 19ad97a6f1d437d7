"""Notifications of members whose names are in a text."""

import pytest

from posting.accounts.models import User
from posting.db.base import db
from tests.conftest import apply
from tests.helpers.notifications import count_rows, kinds_of, told

pytestmark = pytest.mark.usefixtures("stays_consistent")


class TestMentions:
    def test_a_post_and_a_comment_mention_members(self, alice, bob, eve):
        post = alice.create_post("On engines", content="Ask @BOB or `@eve`.")
        [notification] = told(bob)
        assert notification["kind"] == "mention"
        assert notification["post"] == {"id": post["id"], "title": "On engines"}
        assert notification["comment"] is None
        assert told(eve) == []
        bob.add_comment(post, "Or @eve, @nobody.")
        assert kinds_of(eve) == ["mention"]

    def test_a_title_mentions_nobody(self, alice, bob):
        alice.create_post("@bob")
        assert told(bob) == []

    @pytest.mark.parametrize("kind", ["post", "comment"])
    def test_an_edit_tells_only_those_who_were_not_named_before(self, alice, bob, eve, kind):
        item = post = alice.create_post("On engines", content="Ask @bob.")
        if kind == "comment":
            item = alice.add_comment(post, "Ask @bob.")
        before = len(told(bob))
        path = f"/{kind}s/{item['id']}"
        for content in ("Ask @bob or @eve.", "Ask @eve or @bob!", "Ask `@eve`.", "Ask @eve."):
            assert alice.patch(path, json={"content": content}).status_code == 200
        assert len(told(bob)) == before
        assert kinds_of(eve) == ["mention"]

    def test_an_edit_of_a_comment_tells_nobody_who_was_told_of_it(self, alice, bob, post):
        comment = bob.add_comment(post, "And cloth?")
        bob.patch(f"/comments/{comment['id']}", json={"content": "And cloth, @alice?"})
        assert kinds_of(alice) == ["comment"]

    def test_an_edit_without_a_new_text_tells_nobody(self, alice, bob):
        post = alice.create_post("On engines", content="Ask @bob.")
        for body in ({}, {"title": "On looms"}, {"content": "Ask @bob."}):
            assert alice.patch(f"/posts/{post['id']}", json=body).status_code == 200
        assert kinds_of(bob) == ["mention"]

    def test_only_the_first_twenty_count(self, alice, bob):
        names = " ".join(f"@user-{number}" for number in range(20))
        alice.create_post("On engines", content=f"{names} @bob")
        assert told(bob) == []

    def test_a_pending_account_is_told_of_nothing(self, app, alice, bob):
        id = apply(app)
        with app.app_context():
            name = db.session.get(User, id).username
        alice.create_post("On engines", content=f"@{name} @bob")
        assert count_rows(app) == count_rows(app, user_id=bob.user["id"]) == 1
