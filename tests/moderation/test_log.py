"""The log of moderation: its entries, and who reads it."""

import pytest

from posting.db.transactions import unit_of_work
from posting.moderation import log
from tests.conftest import apply
from tests.helpers.assertions import assert_problem, follow_list
from tests.helpers.moderation import suspend

pytestmark = pytest.mark.usefixtures("stays_consistent")


class TestLog:
    def test_it_is_listed_newest_first(self, alice, bob, moderator, post):
        moderator.put(f"/posts/{post['id']}/lock")
        suspend(moderator, bob)
        first, second = moderator.get("/moderation/log").json
        assert first == {
            "id": first["id"],
            "created_at": first["created_at"],
            "action": "suspended",
            "by": moderator.user["username"],
            "moderator": {
                n: moderator.user[n] for n in ("id", "username", "display_name", "avatar_url")
            },
            "target": {"kind": "user", "id": bob.user["id"]},
            "user": {n: bob.user[n] for n in ("id", "username", "display_name", "avatar_url")},
            "reason": "Advertising.",
        }
        assert second["action"] == "locked"
        assert follow_list(moderator, "/moderation/log?limit=1") == [first, second]
        of_bob = moderator.get(f"/moderation/log?user={bob.user['id']}").json
        assert of_bob == [first]

    def test_acts_of_an_operator_are_listed(self, alice, moderator, flask):
        flask("users", "suspend", "alice")
        [act] = moderator.get("/moderation/log").json
        assert (act["by"], act["moderator"]) == ("operator", None)

    def test_nobody_else_reads_it(self, alice, anonymous):
        assert_problem(anonymous.get("/moderation/log"), 401)
        assert_problem(alice.get("/moderation/log"), 403)

    @pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
    def test_it_cannot_be_changed(self, moderator, method):
        assert_problem(moderator.open("/moderation/log", method=method, json={}), 405)

    @pytest.mark.posting_settings(MODERATION_LOG="public")
    def test_a_public_one_names_no_member(self, alice, bob, anonymous, moderator, post):
        moderator.put(f"/posts/{post['id']}/lock")
        suspend(moderator, bob)
        assert moderator.get("/moderation/log").json[0]["user"]["username"] == "bob"
        for client, status in ((anonymous, 401), (alice, 403)):
            first, second = client.get("/moderation/log").json
            assert (first["user"], first["target"]) == (None, {"kind": "user", "id": None})
            assert (second["user"], second["target"]["id"]) == (None, post["id"])
            assert first["by"] == moderator.user["username"]
            filtered = client.get(f"/moderation/log?user={bob.user['id']}")  # it would tell whom
            assert_problem(filtered, status)

    @pytest.mark.posting_settings(MODERATION_LOG="public")
    def test_a_public_one_has_no_note_and_no_id_that_leads_to_a_member(
        self, app, alice, anonymous, moderator, post
    ):
        report = alice.post(f"/posts/{post['id']}/reports", json={"reason": "No."}).json
        decision = {"outcome": "dismissed", "note": "Dear Alice, it is a joke."}
        assert moderator.patch(f"/reports/{report['id']}", json=decision).status_code == 200
        with app.app_context(), unit_of_work():
            log.record_act_by_operator("ended", "invitation", "i" * 21, alice.user["id"])
        moderator.post(f"/applications/{apply(app)}/approval")
        moderator.post(f"/moderation/users/{alice.user['id']}/removal", json={"reason": "No."})
        listed = anonymous.get("/moderation/log")
        assert len(listed.json) == 4
        assert {act["target"]["id"] for act in listed.json} == {None}
        assert alice.user["id"] not in listed.text
        assert "Dear Alice" not in listed.text

    @pytest.mark.posting_settings(MODERATION_LOG="public", READING="members")
    def test_a_public_one_is_for_those_who_may_read(self, alice, anonymous, moderator):
        assert_problem(anonymous.get("/moderation/log"), 401)
        assert alice.get("/moderation/log").json == []
