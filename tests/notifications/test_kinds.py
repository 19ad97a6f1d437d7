"""The kinds of notifications."""

import pytest

from posting.db.transactions import unit_of_work
from posting.notifications.sentences import sentence_of
from posting.notifications.telling import MODERATORS, notify
from tests.helpers.notifications import told

pytestmark = pytest.mark.usefixtures("stays_consistent")


def test_a_notification_may_be_of_nobody_and_have_a_text_that_is_gone(app, moderator, post):
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


def test_the_document_lists_the_kinds_of_all_features(make_app):
    document = make_app().test_client().get("/openapi.json").json
    field = document["components"]["schemas"]["Notification"]["properties"]["kind"]
    assert field["x-extensible-enum"] == [
        *("comment", "reply", "mention", "application"),
        *("removal", "report_closed", "report"),
        *("role", "reset_link", "backup", "reaction"),
    ]


def test_a_mail_has_a_general_sentence_for_a_kind_that_only_a_newer_version_knows(app):
    item = {"kind": "new", "actor": {"display_name": None, "username": "ada"}, "post": None}
    with app.app_context():
        assert sentence_of(item | {"excerpt": None, "reason": None}) == "ada has news for you."
