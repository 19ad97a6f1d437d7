"""The facts about a member that moderators see."""

from datetime import timedelta

import pytest

from posting.db.types import now, to_rfc3339
from tests.conftest import apply
from tests.helpers.assertions import assert_problem
from tests.helpers.moderation import suspend

pytestmark = pytest.mark.usefixtures("stays_consistent")

HOUR = timedelta(hours=1)


class TestMember:
    def test_moderators_see_the_facts(self, alice, bob, moderator, post):
        bob.add_comment(post, "A comment")
        bob.post(f"/posts/{post['id']}/reports", json={"reason": "No."})
        member = moderator.get(f"/moderation/users/{alice.user['id']}").json
        assert member == {
            "id": alice.user["id"],
            "username": "alice",
            "display_name": "Alice",
            "avatar_url": None,
            "role": "member",
            "state": "active",
            "created_at": alice.user["created_at"],
            "last_seen_at": member["last_seen_at"],
            "suspension": None,
            "application": None,
            "invited_by": None,
            "invited": [],
            "posts": 1,
            "comments": 0,
            "images": 0,
            "files": 0,
            "open_reports": 1,
            "closed_reports": 0,
        }

    def test_a_suspension_shows(self, alice, moderator):
        suspension = suspend(moderator, alice, until=to_rfc3339(now() + HOUR)).json
        member = moderator.get(f"/moderation/users/{alice.user['id']}").json
        assert (member["state"], member["suspension"]) == ("suspended", suspension)

    def test_an_application_shows(self, app, moderator):
        member = moderator.get(f"/moderation/users/{apply(app)}").json
        assert (member["state"], member["application"]) == ("pending", "I weave too.")

    def test_an_unknown_one_gets_404(self, moderator):
        assert_problem(moderator.get(f"/moderation/users/{'x' * 21}"), 404)
