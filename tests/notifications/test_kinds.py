"""The kinds of notifications, to which other features add."""

import pytest

from posting.db.transactions import unit_of_work
from posting.notifications import kinds
from posting.notifications.queries import MODERATORS
from posting.notifications.store import notify
from tests.helpers.notifications import told

pytestmark = pytest.mark.usefixtures("stays_consistent")


class TestKinds:
    def test_another_feature_adds_its_own(self, app, moderator, post):
        """Without a change of the table, and without an import from here."""
        with app.app_context(), unit_of_work():
            notify(
                MODERATORS,
                actor_id=None,
                post_id=post["id"],
                reason="Off topic.",
                excerpt="They weave",
                kind="removal",
            )
        [notification] = told(moderator)
        assert notification["kind"] == "removal"
        assert notification["actor"] is None
        assert notification["post"]["id"] == post["id"]
        assert (notification["reason"], notification["excerpt"]) == ("Off topic.", "They weave")

    def test_the_document_lists_the_kinds_of_all_features(self, make_app, monkeypatch):
        monkeypatch.setattr(kinds, "_known", [*kinds.known_kinds()])
        assert kinds.new_kind("greeting") == "greeting"
        document = make_app().test_client().get("/openapi.json").json
        field = document["components"]["schemas"]["Notification"]["properties"]["kind"]
        assert field["x-extensible-enum"] == [
            *("comment", "reply", "mention", "application"),
            *("removal", "report_closed", "report", "greeting"),
        ]
