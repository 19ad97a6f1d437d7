"""Notifications by post, as the inbox shows them."""

import pytest
import sqlalchemy as sa

from posting.accounts.models import User
from posting.db.base import db
from posting.db.types import now
from posting.notifications import inbox
from posting.notifications.models import Notification
from tests.helpers.assertions import follow_pages
from tests.helpers.notifications import add, read, told

pytestmark = pytest.mark.usefixtures("stays_consistent")


def by_post(client, query=""):
    response = client.get(f"/notifications/posts{query}")
    assert response.status_code == 200, response.text
    return response.json


def names(group):
    return [actor["username"] for actor in group["actors"]]


class TestGroups:
    def test_comments_on_a_post_are_together(self, alice, bob, eve, moderator):
        engines, looms = (alice.create_post(title) for title in ("On engines", "On looms"))
        first = bob.add_comment(engines, "One")
        bob.add_comment(looms, "Two")
        for client, text in ((eve, "Three"), (moderator, "Four"), (bob, "Five")):
            last = client.add_comment(engines, text)
        on_engines, on_looms = by_post(alice)
        assert on_engines["post"] == {"id": engines["id"], "title": "On engines"}
        assert (on_engines["unread"], on_engines["actor_count"]) == (4, 3)
        assert names(on_engines) == ["bob", "morgan", "eve"]
        assert on_engines["first"]["comment"]["id"] == first["id"]
        assert on_engines["latest"]["comment"] == {"id": last["id"], "excerpt": "Five"}
        assert (on_looms["unread"], names(on_looms)) == (1, ["bob"])
        assert on_looms["first"] == on_looms["latest"] == told(alice)[3]

    def test_kinds_of_a_conversation_are_together(self, alice, bob, post):
        comment = alice.add_comment(post, "One")
        bob.add_comment(post, "Two", parent_id=comment["id"])
        bob.add_comment(post, "Three")
        bob.add_comment(post, "Four, @alice")
        assert sorted(each["kind"] for each in told(alice)) == ["comment", "mention", "reply"]
        assert [group["unread"] for group in by_post(alice)] == [3]

    def test_what_is_read_does_not_count(self, alice, bob, eve, post):
        bob.add_comment(post, "One")
        second = eve.add_comment(post, "Two")
        third = bob.add_comment(post, "Three")
        read(alice, told(alice)[2])
        [group] = by_post(alice)
        assert (group["unread"], group["actor_count"], names(group)) == (2, 2, ["bob", "eve"])
        assert group["first"]["comment"]["id"] == second["id"]
        read(alice, told(alice)[0])
        [group] = by_post(alice)
        assert (group["unread"], group["actor_count"], names(group)) == (0, 0, [])
        assert group["first"] == group["latest"] == told(alice)[0]
        assert group["latest"]["comment"]["id"] == third["id"]

    def test_three_actors_are_named_and_all_are_counted(self, alice, post, sign_in):
        for number in range(5):
            sign_in(f"member{number}").add_comment(post, "Hello")
        [group] = by_post(alice)
        assert names(group) == ["member4", "member3", "member2"]
        assert group["actor_count"] == 5

    def test_acts_of_moderators_and_reports_are_alone(self, alice, bob, moderator, post):
        comment = bob.add_comment(post, "One")
        for client, about in ((alice, f"/comments/{comment['id']}"), (bob, f"/posts/{post['id']}")):
            assert client.post(f"{about}/reports", json={"reason": "Why?"}).status_code == 201
        groups = by_post(moderator)
        assert [group["latest"]["kind"] for group in groups] == ["report", "report"]
        assert [group["unread"] for group in groups] == [1, 1]
        assert [names(group) for group in groups] == [["bob"], ["alice"]]

    def test_a_deleted_account_is_an_other_one(self, app, alice, bob, eve, post):
        for client in (bob, eve):
            client.add_comment(post, "x")
        with app.app_context():
            theirs = Notification.actor_id == bob.user["id"]
            db.session.execute(sa.update(Notification).where(theirs).values(actor_id=None))
            db.session.commit()
        [group] = by_post(alice)
        assert (group["unread"], group["actor_count"], names(group)) == (2, 2, ["eve"])

    def test_deleted_posts_are_left_out(self, alice, bob):
        post = bob.create_post("On looms", content="Ask @alice.")
        assert [group["post"]["title"] for group in by_post(alice)] == ["On looms"]
        bob.delete(f"/posts/{post['id']}")
        assert by_post(alice) == []

    def test_a_pending_account_is_seen_by_moderators_only(self, app, alice, bob, post):
        bob.add_comment(post, "One")
        with app.app_context():
            db.session.execute(
                sa.update(User).where(User.id == bob.user["id"]).values(pending_since=now())
            )
            db.session.commit()
        [group] = by_post(alice)
        assert (names(group), group["actor_count"], group["latest"]["actor"]) == ([], 1, None)

    def test_those_who_may_not_be_seen_take_no_place(self, app, alice, post, sign_in):
        members = [sign_in(f"member{number}") for number in range(5)]
        for member in members:
            member.add_comment(post, "x")
        with app.app_context():
            hidden = User.id.in_([member.user["id"] for member in members[2:]])
            db.session.execute(sa.update(User).where(hidden).values(pending_since=now()))
            db.session.commit()
        [group] = by_post(alice)
        assert (names(group), group["actor_count"]) == (["member1", "member0"], 3)

    def test_a_comment_that_is_deleted_meanwhile_hides_no_group(
        self, app, alice, bob, post, monkeypatch
    ):
        for text in ("One", "Two"):
            bob.add_comment(post, text)
        paginate, deleted = inbox.paginate, told(alice)[0]

        def delete_first(*args, **kwargs):
            if deleted:
                latest = Notification.id == deleted.pop("id")
                db.session.execute(sa.delete(Notification).where(latest))
                db.session.commit()
                deleted.clear()
            return paginate(*args, **kwargs)

        monkeypatch.setattr(inbox, "paginate", delete_first)
        [group] = by_post(alice)
        assert (group["unread"], group["latest"]["comment"]["excerpt"]) == (1, "One")


class TestPages:
    def test_pages_have_whole_groups(self, alice, bob):
        posts = [alice.create_post(str(number)) for number in range(5)]
        for _ in range(3):
            for post in posts:
                bob.add_comment(post, "x")
        pages = [*follow_pages(alice, "/notifications/posts?limit=2")]
        assert [len(page) for page in pages] == [2, 2, 1]
        titles = [group["post"]["title"] for page in pages for group in page]
        assert titles == ["4", "3", "2", "1", "0"]
        assert {group["unread"] for page in pages for group in page} == {3}

    def test_a_post_that_moves_up_is_not_listed_twice(self, alice, bob):
        posts = [alice.create_post(str(number)) for number in range(3)]
        for post in posts:
            bob.add_comment(post, "x")
        response = alice.get("/notifications/posts?limit=1")
        bob.add_comment(posts[2], "y")
        link = response.headers["Link"].split(">")[0].strip("<")
        assert [group["post"]["title"] for group in alice.get(link).json] == ["1"]

    def test_it_takes_four_queries_however_many_there_are(self, app, alice, bob, statements):
        for number in range(3):
            post = alice.create_post(str(number))
            bob.add_comment(post, "x")
            bob.add_comment(post, "y")
        add(app, alice, 1000)
        statements.clear()
        assert len(by_post(alice, "?limit=100")) == 100
        assert len([sql for sql in statements if "FROM" in sql]) <= 5  # with that of the session

    def test_others_are_not_seen(self, alice, bob, reader, post):
        bob.add_comment(post, "And cloth?")
        assert by_post(bob) == []
        assert by_post(reader) == by_post(alice) != []
