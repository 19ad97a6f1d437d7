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

    def test_a_reply_that_mentions_its_reader_is_a_reply(self, alice, bob, eve, post):
        """And a comment that mentions the author of the post is a mention."""
        first = eve.add_comment(post, "And cloth?")
        bob.add_comment(post, "Ask @eve and @alice.", parent_id=first["id"])
        assert kinds_of(eve) == ["reply"]
        assert kinds_of(alice) == ["mention", "comment"]

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


class TestLimit:
    """The members whom a member notifies by mentions in a day are limited."""

    @pytest.fixture
    def client(self, make_app, alice):
        return alice.copy(make_app(RATE_LIMITS="on", LIMIT_MENTIONS="3/day"))

    def test_posts_comments_and_edits_count_together(self, client, bob, eve, post):
        created = client.create_post("On engines", content="Ask @bob.")
        client.add_comment(post, "Ask @eve.")
        comment = client.add_comment(post, "Ask them.")
        edited = f"/comments/{comment['id']}"
        assert client.patch(edited, json={"content": "Ask @bob."}).status_code == 200
        assert (len(told(bob)), len(told(eve))) == (2, 1)
        for path in (edited, f"/posts/{created['id']}"):
            text = "Ask @bob or @eve."
            assert client.patch(path, json={"content": text}).json["content"] == text
        client.create_post("On engines", content="Ask @eve.")
        client.add_comment(post, "Ask @bob.")
        assert (len(told(bob)), len(told(eve))) == (2, 1)

    def test_a_text_notifies_as_many_as_are_left(self, client, sign_in):
        members = [sign_in(f"member-{number}") for number in range(5)]
        client.create_post("x", content=" ".join(f"@member-{number}" for number in range(5)))
        assert [len(told(member)) for member in members] == [1, 1, 1, 0, 0]

    def test_only_names_that_notify_a_member_count(self, client, bob, post):
        created = client.create_post("x", content="Ask @alice, @nobody-1 or @nobody-2.")
        bob.put(f"/posts/{post['id']}/subscription", json={"level": "muted"})
        for _ in range(4):
            client.add_comment(post, "Ask @bob.")
        for content in ("@bob", "Ask them.", "@bob", "Ask them.", "@bob", "them", "@bob", "them"):
            client.patch(f"/posts/{created['id']}", json={"content": content})
        client.create_post("x", content="Ask @bob.")
        client.create_post("x", content="Ask @bob.")
        client.create_post("x", content="Ask @bob.")
        assert kinds_of(bob) == ["mention"] * 3

    def test_replies_and_comments_on_own_posts_are_not_limited(self, client, bob):
        created = bob.create_post("On looms")
        for _ in range(5):
            client.add_comment(created, "@bob")
        assert sorted(kinds_of(bob)) == ["comment"] * 2 + ["mention"] * 3

    def test_each_member_has_a_limit_and_it_can_be_off(self, client, make_app, alice, bob, eve):
        client.create_post("x", content="@bob @eve")
        client.create_post("x", content="@bob @eve")
        eve.copy(client.application).create_post("x", content="@bob")
        alice.copy(make_app(RATE_LIMITS="on", LIMIT_MENTIONS="off")).create_post(
            "x", content="@eve"
        )
        assert (len(told(bob)), len(told(eve))) == (3, 2)
