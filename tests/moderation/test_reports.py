"""Reports: who writes and reads them, how many they may write, and what a report keeps."""

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
from tests.helpers.moderation import REASON, author_of, decide, open_reports, report

pytestmark = pytest.mark.usefixtures("stays_consistent")


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
                "images": [],
                "files": [],
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

    def test_the_hour_of_a_clock_that_was_ahead_does_not_count(self, alice, bob, dismissed):
        dismissed(JUDGED, hours=-24 * 40)
        for post in self.posts(alice)[:-1]:
            report(bob, "post", post)

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


def test_old_closed_reports_are_deleted(app, bob, moderator, post, comment):
    closed = report(bob, "post", post)
    decide(moderator, closed)
    with app.app_context():
        past = now() - timedelta(days=366)
        db.session.execute(sa.update(Report).values(closed_at=past))
        db.session.commit()
    report(bob, "comment", comment)
    assert_problem(bob.get(f"/reports/{closed['id']}"), 404)
