"""Decisions on reports, and removals and suspensions that close reports."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa

from posting.db.base import db
from posting.db.types import now
from posting.moderation.models import Report
from tests.helpers.assertions import assert_problem, error_locations
from tests.helpers.moderation import REASON, author_of, decide, open_reports, report

pytestmark = pytest.mark.usefixtures("stays_consistent")


def told(client, kind):
    response = client.get("/notifications")
    return [told for told in response.json if told["kind"] == kind]


class TestDecisions:
    def test_the_reporter_is_told(self, bob, moderator, post):
        first = report(bob, "post", post)
        response = decide(moderator, first, note="It is a joke.")
        assert response.status_code == 200
        assert response.json == first | {
            "state": "closed",
            "outcome": "dismissed",
            "note": "It is a joke.",
            "closed_at": response.json["closed_at"],
            "closed_by": author_of(moderator),
        }
        [notification] = told(bob, "report_closed")
        assert notification["reason"] == "It is a joke."
        assert notification["excerpt"] == "On engines: Some text."
        assert (notification["actor"], notification["post"]) == (None, None)

    def test_a_moderator_is_not_told_of_the_own_decision(self, moderator, post):
        decide(moderator, report(moderator, "post", post))
        assert told(moderator, "report_closed") == []
        assert told(moderator, "report") == []

    def test_moderators_are_told_of_a_report(self, alice, bob, moderator, post, comment):
        report(bob, "post", post)
        report(bob, "comment", comment)
        report(bob, "user", alice.user)
        of_user, of_comment, of_post = told(moderator, "report")
        assert of_post["post"] == {"id": post["id"], "title": "On engines"}
        assert of_comment["comment"] == {"id": comment["id"], "excerpt": "Buy cloth!"}
        assert (of_user["post"], of_user["excerpt"]) == (None, "alice · Alice")
        assert {item["actor"]["username"] for item in (of_user, of_comment, of_post)} == {"bob"}
        assert of_post["reason"] == "This is advertising."
        assert told(alice, "report") == []

    def test_a_moderator_is_not_told_who_reports_them(self, bob, moderator):
        report(bob, "post", moderator.create_post("Mine"))
        on_user = report(bob, "user", moderator.user)
        assert told(moderator, "report") == []
        assert [each["reporter"] for each in open_reports(moderator)] == [None, None]
        assert moderator.get(f"/reports/{on_user['id']}").json["reporter"] is None

    def test_a_moderator_decides_on_reports_on_others(self, bob, moderator, sign_in):
        on_post = report(bob, "post", moderator.create_post("Mine"))
        on_user = report(bob, "user", moderator.user)
        closed = decide(moderator, on_post)  # because there is no other moderator
        assert (closed.status_code, closed.json["reporter"]) == (200, None)
        other = sign_in("mel", role="moderator")
        problem = assert_problem(decide(moderator, on_user), 403)
        assert problem["code"] == "report_on_yourself"
        assert decide(other, on_user).json["reporter"] == author_of(bob)

    def test_decisions_at_the_same_time_notify_each_reporter_once(
        self, bob, eve, moderator, post, monkeypatch
    ):
        time = now()
        monkeypatch.setattr("posting.moderation.store.now", lambda: time)
        for client in (bob, eve):
            note = f"To {client.user['username']}"
            decide(moderator, report(client, "post", post), note=note)
        for client in (bob, eve):
            [closed] = told(client, "report_closed")
            assert closed["reason"] == f"To {client.user['username']}"

    def test_one_who_is_demoted_loses_what_is_for_moderators(self, bob, moderator, post, flask):
        report(bob, "post", post)
        bob.add_comment(moderator.create_post("Mine"), "An answer")
        flask("users", "demote", moderator.user["username"])
        kinds = [item["kind"] for item in moderator.get("/notifications").json]
        assert kinds == ["role", "comment"]

    def test_the_second_decision_says_that_there_was_one(self, bob, moderator, post):
        first = report(bob, "post", post)
        assert decide(moderator, first, "removed").status_code == 200
        again = assert_problem(decide(moderator, first), 409)
        assert again["code"] == "report_closed"
        assert moderator.get(f"/reports/{first['id']}").json["outcome"] == "removed"
        assert len(told(bob, "report_closed")) == 1

    def test_at_once_one_of_many_decides(self, bob, moderator, post):
        first = report(bob, "post", post)
        with ThreadPoolExecutor(8) as pool:
            responses = pool.map(lambda _: decide(moderator.copy(), first), range(8))
        assert sorted(response.status_code for response in responses) == [200] + [409] * 7
        assert len(told(bob, "report_closed")) == 1

    @pytest.mark.parametrize(
        ("body", "location"),
        [
            ({}, "/outcome"),
            ({"outcome": "ignored"}, "/outcome"),
            ({"outcome": "removed", "note": ""}, "/note"),
            ({"outcome": "removed", "note": "x" * 501}, "/note"),
        ],
    )
    def test_an_invalid_decision_gets_422(self, bob, moderator, post, body, location):
        url = f"/reports/{report(bob, 'post', post)['id']}"
        assert error_locations(moderator.patch(url, json=body)) == {location}

    def test_an_unknown_report_gets_404(self, moderator):
        assert_problem(decide(moderator, {"id": "x" * 21}), 404)

    def test_it_is_in_the_log(self, alice, bob, moderator, post):
        first = report(bob, "post", post)
        decide(moderator, first, note="It is a joke.")
        [act] = moderator.get("/moderation/log").json
        assert (act["action"], act["target"], act["reason"]) == (
            "closed",
            {"kind": "report", "id": first["id"]},
            "It is a joke.",
        )
        assert act["user"] == author_of(alice)


class TestRemovals:
    def test_many_reports_are_closed_by_a_few_statements(
        self, app, bob, moderator, post, statements
    ):
        """However many there are, since the post is locked meanwhile."""
        time = now()
        values = {
            "target_kind": "comment",
            "post_id": post["id"],
            "target_updated_at": time,
            "reason": "x",
            "created_at": time,
        }
        rows = [
            values
            | {
                "id": f"report-{number}".ljust(21, "x"),
                "reporter_id": bob.user["id"],
                "target_id": f"comment-{number}".ljust(21, "x"),
                "excerpt": f"A text, number {number}",
            }
            for number in range(3000)
        ]
        with app.app_context():
            db.session.execute(sa.insert(Report), rows)
            db.session.commit()
        statements.clear()
        assert moderator.delete(f"/posts/{post['id']}").status_code == 204
        assert len(statements) < 30
        assert open_reports(moderator) == []
        [notification] = told(bob, "report_closed")
        assert notification["excerpt"].startswith("A text, number ")

    def test_reports_on_the_own_post_of_a_moderator_stay_open(self, bob, moderator):
        post = moderator.create_post("Mine")
        on_post = report(bob, "post", post)
        moderator.delete(f"/posts/{post['id']}")
        assert [each["id"] for each in open_reports(moderator)] == [on_post["id"]]

    def test_an_operator_closes_the_reports_too(self, alice, bob, moderator, post, flask):
        on_post = report(bob, "post", post)
        flask("users", "delete", "alice", "--content", "delete", "--yes")
        closed = moderator.get(f"/reports/{on_post['id']}").json
        assert (closed["outcome"], closed["closed_by"]) == ("removed", None)
        assert len(told(bob, "report_closed")) == 1

    def test_reports_on_what_a_moderator_deletes_are_closed(self, alice, bob, eve, moderator):
        post = alice.create_post("On engines")
        comment = alice.add_comment(post, "Buy *cloth*!")
        on_post, on_comment = report(bob, "post", post), report(eve, "comment", comment)
        on_user = report(bob, "user", alice.user)
        moderator.delete(f"/posts/{post['id']}?reason=Advertising.")
        assert open_reports(moderator) == [on_user]
        for client, closed in ((bob, on_post), (eve, on_comment)):
            item = moderator.get(f"/reports/{closed['id']}").json
            assert (item["state"], item["outcome"]) == ("closed", "removed")
            assert item["closed_by"] == author_of(moderator)
            assert client.get(f"/reports/{closed['id']}").json == item | {"closed_by": None}
            [notification] = told(client, "report_closed")
            assert notification["excerpt"] == closed["target"]["excerpt"]

    def test_a_deleted_comment_closes_its_own_reports_only(self, bob, moderator, post, comment):
        on_post = report(bob, "post", post)
        report(bob, "comment", comment)
        moderator.delete(f"/comments/{comment['id']}")
        assert open_reports(moderator) == [on_post]

    def test_a_report_and_a_removal_at_once_leave_no_open_report(self, alice, bob, moderator):
        for round_ in range(6):
            post = alice.create_post(f"Round {round_}")
            calls = (
                lambda post=post: bob.copy().post(f"/posts/{post['id']}/reports", json=REASON),
                lambda post=post: moderator.copy().delete(f"/posts/{post['id']}"),
            )
            with ThreadPoolExecutor(2) as pool:
                reported, deleted = [call.result() for call in [pool.submit(c) for c in calls]]
            assert deleted.status_code == 204
            assert reported.status_code in {201, 404}
            assert open_reports(moderator) == []

    def test_those_on_a_suspended_account_are_closed(self, alice, bob, moderator, post):
        on_post = report(bob, "post", post)
        on_user = report(bob, "user", alice.user)
        url = f"/users/{alice.user['id']}/suspension"
        assert moderator.put(url, json={"reason": "Advertising."}).status_code == 200
        assert open_reports(moderator) == [on_post]
        assert bob.get(f"/reports/{on_user['id']}").json["outcome"] == "suspended"
