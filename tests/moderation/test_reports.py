"""Reports: who may write them, what they keep, and how moderators decide."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
import sqlalchemy as sa

from posting.config import Rate
from posting.db.base import db
from posting.db.types import now
from posting.moderation.models import Report
from posting.moderation.store import JUDGED, LOWER_LIMIT
from tests.helpers.assertions import assert_problem, error_locations, follow_list

pytestmark = pytest.mark.usefixtures("stays_consistent")

REASON = {"reason": "This is advertising."}


@pytest.fixture
def eve(sign_in):
    return sign_in("eve")


@pytest.fixture
def comment(alice, post):
    return alice.add_comment(post, "Buy *cloth*!")


def report(client, kind, target, reason="This is advertising."):
    response = client.post(f"/{kind}s/{target['id']}/reports", json={"reason": reason})
    assert response.status_code == 201, response.text
    return response.json


def decide(client, report, outcome="dismissed", **fields):
    return client.patch(f"/reports/{report['id']}", json={"outcome": outcome} | fields)


def open_reports(moderator):
    response = moderator.get("/reports")
    assert response.status_code == 200, response.text
    return response.json


def told(client, kind):
    response = client.get("/notifications")
    return [told for told in response.json if told["kind"] == kind]


def author_of(client):
    return {name: client.user[name] for name in ("id", "username", "display_name")}


class TestWriting:
    def test_a_post_is_reported(self, alice, bob, post):
        response = bob.post(f"/posts/{post['id']}/reports", json=REASON)
        assert response.status_code == 201
        assert response.json == {
            "id": response.json["id"],
            "reporter": author_of(bob),
            "target": {
                "kind": "post",
                "id": post["id"],
                "post_id": post["id"],
                "author": author_of(alice),
                "excerpt": "On engines: Some text.",
                "exists": True,
                "edited": False,
            },
            "reason": "This is advertising.",
            "state": "open",
            "outcome": None,
            "note": None,
            "created_at": response.json["created_at"],
            "closed_at": None,
            "closed_by": None,
        }
        assert bob.get(response.headers["Location"]).json == response.json

    def test_a_comment_is_reported(self, alice, bob, post, comment):
        target = report(bob, "comment", comment)["target"]
        assert (target["kind"], target["id"], target["post_id"]) == (
            "comment",
            comment["id"],
            post["id"],
        )
        assert (target["author"], target["excerpt"]) == (author_of(alice), "Buy cloth!")

    def test_a_member_is_reported(self, alice, bob):
        alice.patch("/users/me", json={"bio": "Cheap\n\ncloth."})
        target = report(bob, "user", alice.user)["target"]
        assert (target["kind"], target["id"], target["post_id"]) == ("user", alice.user["id"], None)
        assert target["author"] == author_of(alice)
        assert target["excerpt"] == "alice · Alice · Cheap cloth."
        assert (target["exists"], target["edited"]) == (True, False)

    def test_long_texts_are_shortened(self, alice, bob):
        post = alice.create_post("T" * 200, content="word " * 20_000)
        comment = alice.add_comment(post, "x" * 10_000)
        for kind, target in (("post", post), ("comment", comment)):
            assert 190 <= len(report(bob, kind, target)["target"]["excerpt"]) <= 300

    @pytest.mark.parametrize("kind", ["post", "comment", "user"])
    def test_what_does_not_exist_is_not_reported(self, bob, kind):
        assert_problem(bob.post(f"/{kind}s/{'x' * 21}/reports", json=REASON), 404)

    def test_a_deleted_comment_with_replies_is_not_reported(self, alice, bob, post, comment):
        bob.add_comment(post, "No.", parent_id=comment["id"])
        alice.delete(f"/comments/{comment['id']}")
        assert_problem(bob.post(f"/comments/{comment['id']}/reports", json=REASON), 404)

    @pytest.mark.parametrize("reason", ["", " ", "x" * 1001, None, 1])
    def test_an_invalid_reason_gets_422(self, bob, post, reason):
        response = bob.post(f"/posts/{post['id']}/reports", json={"reason": reason})
        assert error_locations(response) == {"/reason"}

    def test_a_reason_is_required(self, bob, post):
        assert error_locations(bob.post(f"/posts/{post['id']}/reports", json={})) == {"/reason"}

    def test_the_same_target_is_reported_once_until_it_is_decided(
        self, bob, eve, moderator, post, comment
    ):
        first = report(bob, "post", post)
        again = bob.post(f"/posts/{post['id']}/reports", json=REASON)
        assert assert_problem(again, 409)["code"] == "already_reported"
        report(eve, "post", post)
        report(bob, "comment", comment)
        assert decide(moderator, first).status_code == 200
        report(bob, "post", post)

    def test_a_repeated_request_with_the_same_key_gets_the_same_report(self, bob, moderator, post):
        key = {"Idempotency-Key": "a-report-of-bob"}
        url = f"/posts/{post['id']}/reports"
        first, second = (bob.post(url, json=REASON, headers=key) for _ in range(2))
        assert first.json == second.json
        assert len(open_reports(moderator)) == 1

    def test_at_once_one_of_many_succeeds(self, app, bob, post):
        def send(_):
            response = bob.copy().post(f"/posts/{post['id']}/reports", json=REASON)
            return response.status_code

        with ThreadPoolExecutor(8) as pool:
            statuses = sorted(pool.map(send, range(8)))
        assert statuses == [201] + [409] * 7

    def test_they_are_limited(self, app, bob, alice, monkeypatch):
        monkeypatch.setitem(app.config, "RATE_LIMITS", True)
        monkeypatch.setitem(app.config, "LIMIT_REPORTS", Rate(2, "hour"))
        posts = [alice.create_post(f"Post {number}") for number in range(3)]
        for post in posts[:2]:
            report(bob, "post", post)
        assert_problem(bob.post(f"/posts/{posts[2]['id']}/reports", json=REASON), 429)


class TestManyDismissed:
    @pytest.fixture
    def dismissed(self, app, bob):
        """Return a function that adds closed reports of Bob from some hours ago."""

        def add(number, outcome="dismissed", hours=2):
            time = now() - timedelta(hours=hours)
            values = {
                "reporter_id": bob.user["id"],
                "target_kind": "post",
                "excerpt": "…",
                "target_updated_at": time,
                "reason": "x",
                "outcome": outcome,
                "created_at": time,
                "closed_at": now(),
            }
            with app.app_context():
                for index in range(number):
                    target = f"{outcome}-{hours}-{index}".ljust(21, "x")
                    db.session.add(Report(**values, target_id=target))
                db.session.commit()

        return add

    def posts(self, alice):
        return [alice.create_post(f"Post {number}") for number in range(LOWER_LIMIT.amount + 1)]

    @pytest.fixture(autouse=True)
    def with_limits(self, app, monkeypatch):
        monkeypatch.setitem(app.config, "RATE_LIMITS", True)

    def test_five_an_hour_are_left(self, alice, bob, dismissed):
        dismissed(JUDGED)
        *posts, last = self.posts(alice)
        for post in posts:
            report(bob, "post", post)
        response = bob.post(f"/posts/{last['id']}/reports", json=REASON)
        assert assert_problem(response, 429)["detail"].startswith("No more than 5 an hour")
        assert 3500 < int(response.headers["Retry-After"]) <= 3600

    def test_one_that_was_right_is_enough(self, alice, bob, dismissed):
        dismissed(JUDGED - 1, hours=3)
        dismissed(1, "removed")
        for post in self.posts(alice):
            report(bob, "post", post)

    def test_five_an_hour_are_left_also_at_once(self, alice, bob, dismissed):
        dismissed(JUDGED)

        def send(post):
            url = f"/posts/{post['id']}/reports"
            return bob.copy().post(url, json=REASON).status_code

        with ThreadPoolExecutor(6) as pool:
            statuses = sorted(pool.map(send, self.posts(alice)))
        assert statuses == [201] * LOWER_LIMIT.amount + [429]

    def test_without_limits_there_is_no_lower_one(self, app, alice, bob, dismissed, monkeypatch):
        monkeypatch.setitem(app.config, "RATE_LIMITS", False)
        dismissed(JUDGED)
        for post in self.posts(alice):
            report(bob, "post", post)

    def test_fewer_do_not_count(self, alice, bob, dismissed):
        dismissed(JUDGED - 1)
        for post in self.posts(alice):
            report(bob, "post", post)


class TestReading:
    def test_open_ones_are_listed_oldest_first(self, bob, moderator, post, comment):
        first, second = report(bob, "post", post), report(bob, "comment", comment)
        assert open_reports(moderator) == [first, second]
        assert follow_list(moderator, "/reports?limit=1") == [first, second]
        assert moderator.get("/reports?state=closed").json == []

    def test_closed_ones_are_listed_with_the_last_closed_first(self, bob, moderator, post, comment):
        first, second = report(bob, "post", post), report(bob, "comment", comment)
        for closed in (second, first):
            assert decide(moderator, closed).status_code == 200
        listed = follow_list(moderator, "/reports?state=closed&limit=1")
        assert [closed["id"] for closed in listed] == [first["id"], second["id"]]
        assert open_reports(moderator) == []

    def test_a_cursor_of_the_other_list_gets_422(self, bob, moderator, post, comment):
        report(bob, "post", post)
        report(bob, "comment", comment)
        link = moderator.get("/reports?limit=1").headers["Link"]
        cursor = link.partition("cursor=")[2].partition(">")[0]
        response = moderator.get(f"/reports?state=closed&cursor={cursor}")
        assert error_locations(response) == {"cursor"}

    def test_only_the_reporter_and_moderators_read_one(self, alice, bob, moderator, post):
        url = f"/reports/{report(bob, 'post', post)['id']}"
        assert bob.get(url).json == moderator.get(url).json
        assert_problem(alice.get(url), 404)

    def test_an_edit_shows(self, alice, bob, moderator, post, comment):
        report(bob, "post", post)
        report(bob, "comment", comment)
        report(bob, "user", alice.user)
        alice.patch(f"/posts/{post['id']}", json={"content": "Harmless."})
        alice.patch(f"/comments/{comment['id']}", json={"content": "Harmless."})
        alice.patch("/users/me", json={"bio": "Harmless."})
        targets = [item["target"] for item in open_reports(moderator)]
        assert [(target["exists"], target["edited"]) for target in targets] == [(True, True)] * 3
        assert targets[0]["excerpt"] == "On engines: Some text."

    def test_a_lock_is_no_edit(self, bob, moderator, post):
        report(bob, "post", post)
        moderator.put(f"/posts/{post['id']}/lock")
        assert open_reports(moderator)[0]["target"]["edited"] is False

    def test_it_outlives_its_target_that_the_author_deletes(self, alice, bob, moderator, post):
        comment = alice.add_comment(post, "First")
        bob.add_comment(post, "Second", parent_id=comment["id"])
        report(bob, "comment", comment)
        report(bob, "post", alice.create_post("Gone"))
        alice.delete(f"/comments/{comment['id']}")
        alice.delete(f"/posts/{alice.get('/posts').json[0]['id']}")
        for item in open_reports(moderator):
            assert item["state"] == "open"
            assert (item["target"]["exists"], item["target"]["edited"]) == (False, False)
            assert item["target"]["author"] == author_of(alice)

    def test_it_outlives_the_accounts(self, alice, bob, moderator, post):
        report(bob, "post", post)
        report(bob, "user", alice.user)
        for client in (alice, bob):
            assert client.delete("/users/me?content=delete").status_code == 204
        for item in open_reports(moderator):
            assert (item["reporter"], item["target"]["author"]) == (None, None)
            assert item["target"]["exists"] is False
            assert item["target"]["excerpt"]


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
        assert [item["kind"] for item in moderator.get("/notifications").json] == ["comment"]

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


def test_old_closed_reports_are_deleted(app, bob, moderator, post, comment):
    closed = report(bob, "post", post)
    decide(moderator, closed)
    with app.app_context():
        past = now() - timedelta(days=366)
        db.session.execute(sa.update(Report).values(closed_at=past))
        db.session.commit()
    report(bob, "comment", comment)
    assert_problem(bob.get(f"/reports/{closed['id']}"), 404)
