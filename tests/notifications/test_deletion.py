"""Notifications are deleted with what they are about, and when they are old."""

from datetime import timedelta

import pytest

from posting.db.types import new_id, now
from posting.notifications import store, telling
from tests.helpers.notifications import add, count_rows, kinds_of, read, told

pytestmark = pytest.mark.usefixtures("stays_consistent")

DAY = timedelta(days=1)


class TestDeletion:
    def test_a_comment_takes_its_notifications_along(self, app, alice, bob, post):
        comment = bob.add_comment(post, "And cloth?")
        bob.add_comment(post, "And wool?")
        assert bob.delete(f"/comments/{comment['id']}").status_code == 204
        assert [each["comment"]["excerpt"] for each in told(alice)] == ["And wool?"]
        assert count_rows(app) == 1

    def test_so_does_a_comment_that_is_kept_for_its_replies(self, app, alice, bob, post):
        comment = bob.add_comment(post, "And cloth?")
        alice.add_comment(post, "Cloth too.", parent_id=comment["id"])
        assert bob.delete(f"/comments/{comment['id']}").status_code == 204
        assert told(alice) == []
        assert kinds_of(bob) == ["reply"]

    def test_a_post_takes_those_of_its_comments_along(self, app, alice, bob):
        post = alice.create_post("On engines", content="Ask @bob.")
        alice.add_comment(post, "Or @bob.")
        bob.add_comment(post, "Me?")
        assert alice.delete(f"/posts/{post['id']}").status_code == 204
        assert count_rows(app) == 0

    @pytest.mark.parametrize("content", ["keep", "delete"])
    def test_an_account_takes_its_own_along(self, app, alice, bob, post, content):
        bob.add_comment(post, "And cloth?")
        assert alice.delete(f"/users/me?content={content}").status_code == 204
        assert count_rows(app) == 0

    def test_those_of_a_deleted_actor_have_none(self, app, alice, bob, post):
        bob.add_comment(post, "And cloth?")
        assert bob.delete("/users/me").status_code == 204
        [notification] = told(alice)
        assert notification["actor"] is None
        assert notification["comment"]["excerpt"] == "And cloth?"
        assert count_rows(app, actor_id=None) == 1

    def test_an_account_with_its_content_leaves_none(self, alice, bob, post):
        bob.add_comment(post, "And cloth?")
        bob.create_post("On looms", content="@alice")
        assert bob.delete("/users/me?content=delete").status_code == 204
        assert told(alice) == []

    def test_an_account_is_cleared_in_steps(self, app, alice, bob, post, monkeypatch):
        monkeypatch.setattr("posting.notifications.deletion.ROWS_PER_STEP", 2)
        monkeypatch.setattr("posting.accounts.deletion.PAUSE", 0)
        for number in range(5):
            bob.add_comment(post, str(number))
        assert bob.delete("/users/me").status_code == 204
        assert [each["actor"] for each in told(alice)] == [None] * 5
        assert alice.delete("/users/me").status_code == 204
        assert count_rows(app) == 0


class TestRetention:
    def test_read_ones_are_purged_after_90_days(self, app, alice, bob, post):
        bob.add_comment(post, "And cloth?")
        [notification] = told(alice)
        read(alice, notification)
        add(app, bob, 1, read_at=now() - 91 * DAY)
        add(app, bob, 1, read_at=now() - 89 * DAY)
        add(app, bob, 1, created_at=now() - 365 * DAY)
        read(alice, notification)
        assert count_rows(app, user_id=bob.user["id"]) == 2
        assert len(told(bob, "?unread=true")) == 1

    def test_a_member_who_reads_keeps_the_newest(self, app, alice, monkeypatch):
        monkeypatch.setattr(store, "purge_expired", lambda _: None)
        add(app, alice, 1000 + 150, created_at=now() - DAY)
        [newest, *_] = told(alice)
        for left in (1050, 1000, 1000):
            read(alice, newest)
            assert count_rows(app) == left
        assert told(alice)[0]["id"] == newest["id"]

    def test_one_recipient_in_64_keeps_the_newest(self, app, alice, bob, post, monkeypatch):
        first = alice.user["id"][0]
        add(app, alice, 1001, created_at=now() - DAY)
        for letter, left in (("a" if first != "a" else "b", 1002), (first, 1000)):
            monkeypatch.setattr(telling, "new_id", lambda letter=letter: letter + new_id()[1:])
            bob.add_comment(post, "And cloth?")
            assert count_rows(app) == left
