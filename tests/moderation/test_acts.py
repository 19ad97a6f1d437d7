"""The acts of moderators: suspensions, locked and pinned posts, removals, and their log."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Event
from time import sleep

import pytest
import sqlalchemy as sa

from posting.accounts import acts
from posting.accounts.models import User
from posting.comments import views as comment_views
from posting.db.base import db
from posting.db.transactions import commit
from posting.db.types import now, to_rfc3339
from posting.moderation.views.acts import MAX_PINNED
from posting.web.gauges import Gauge
from tests.conftest import PASSWORD, apply
from tests.helpers.assertions import assert_problem, error_locations, follow_list

pytestmark = pytest.mark.usefixtures("stays_consistent")

HOUR = timedelta(hours=1)
CREDENTIALS = {"username": "alice", "password": PASSWORD}


def suspend(moderator, client, **fields):
    body = {"reason": "Advertising."} | fields
    return moderator.put(f"/users/{client.user['id']}/suspension", json=body)


def log(client):
    """Return the actions in the log with their targets, newest first."""
    return [
        (act["action"], act["target"]["kind"], act["target"]["id"], act["reason"])
        for act in client.get("/moderation/log").json
    ]


def removals(client):
    response = client.get("/notifications")
    return [told for told in response.json if told["kind"] == "removal"]


@pytest.fixture
def other_moderator(posting_sign_in, app):
    client = posting_sign_in("olga")
    with app.app_context():
        db.session.get(User, client.user["id"]).role = "moderator"
        db.session.commit()
    return client


class TestSuspension:
    def test_it_ends_all_sessions_and_says_why(self, app, alice, writer, moderator):
        until = to_rfc3339(now() + HOUR)
        response = suspend(moderator, alice, until=until)
        assert response.status_code == 200
        assert response.json == {
            "reason": "Advertising.",
            "since": response.json["since"],
            "until": until,
        }
        for client in (alice, writer):
            assert_problem(client.get("/users/me"), 401)
        problem = assert_problem(app.test_client().post("/signin", json=CREDENTIALS), 403)
        assert problem["code"] == "suspended"
        assert problem["detail"] == f"This account is suspended until {until}. Advertising."
        assert (problem["reason"], problem["until"]) == ("Advertising.", until)

    def test_without_an_end_it_lasts_until_it_is_lifted(self, app, alice, moderator):
        assert suspend(moderator, alice).json["until"] is None
        problem = assert_problem(app.test_client().post("/signin", json=CREDENTIALS), 403)
        assert (problem["reason"], problem["until"]) == ("Advertising.", None)
        url = f"/users/{alice.user['id']}/suspension"
        for _ in range(2):
            assert moderator.delete(url).status_code == 204
        assert app.test_client().post("/signin", json=CREDENTIALS).status_code == 200
        member = moderator.get(f"/moderation/users/{alice.user['id']}").json
        assert (member["state"], member["suspension"]) == ("active", None)
        assert [act[0] for act in log(moderator)] == ["restored", "suspended"]

    def test_it_ends_by_itself(self, app, alice, moderator):
        suspend(moderator, alice, until=to_rfc3339(now() + HOUR))
        with app.app_context():
            db.session.get(User, alice.user["id"]).suspended_until = now() - HOUR / 2
            db.session.commit()
        assert app.test_client().post("/signin", json=CREDENTIALS).status_code == 200
        member = moderator.get(f"/moderation/users/{alice.user['id']}").json
        assert (member["state"], member["suspension"]) == ("active", None)

    def test_a_second_one_replaces_the_first(self, alice, moderator, other_moderator):
        suspend(moderator, alice, until=to_rfc3339(now() + HOUR))
        assert suspend(other_moderator, alice, reason="Again.").status_code == 200
        suspension = moderator.get(f"/moderation/users/{alice.user['id']}").json["suspension"]
        assert (suspension["reason"], suspension["until"]) == ("Again.", None)

    @pytest.mark.parametrize(
        ("body", "location"),
        [
            ({"reason": None}, "/reason"),
            ({"reason": " "}, "/reason"),
            ({"reason": "x" * 501}, "/reason"),
            ({"until": "2001-01-01T00:00:00Z"}, "/until"),
            ({"until": "tomorrow"}, "/until"),
        ],
    )
    def test_an_invalid_one_gets_422(self, alice, moderator, body, location):
        assert error_locations(suspend(moderator, alice, **body)) == {location}
        assert alice.get("/users/me").status_code == 200

    def test_on_moderators_only_an_operator_acts(self, moderator, other_moderator, flask):
        user_id = other_moderator.user["id"]
        suspension = f"/users/{user_id}/suspension"
        for response in (
            suspend(moderator, other_moderator),
            suspend(moderator, moderator),
            moderator.delete(suspension),
            moderator.post(f"/moderation/users/{user_id}/removal", json={}),
            moderator.delete(f"/moderation/users/{user_id}"),
        ):
            assert assert_problem(response, 403)["code"] == "target_is_moderator"
        assert flask("users", "suspend", "olga", "--reason", "Rest.")[0] == 0
        assert log(moderator) == [("suspended", "user", user_id, "Rest.")]
        printed = flask("moderation", "log")[1]
        assert printed.partition(" ")[2] == "operator suspended user olga: Rest.\n"

    def test_accounts_that_wait_for_approval_are_not_found(self, app, moderator):
        url = f"/users/{apply(app)}/suspension"
        assert_problem(moderator.put(url, json={"reason": "No."}), 404)
        assert_problem(moderator.delete(url), 404)

    def test_one_who_is_demoted_may_not_act_any_more(self, alice, moderator, flask):
        flask("users", "demote", moderator.user["username"])
        assert assert_problem(suspend(moderator, alice), 403)["code"] == "not_moderator"

    def test_a_write_meanwhile_is_complete_or_refused(self, alice, moderator):
        def write(number):
            body = {"title": f"{number}", "content": "Some text."}
            return alice.copy().post("/posts", json=body).status_code

        with ThreadPoolExecutor(5) as pool:
            writes = [pool.submit(write, number) for number in range(12)]
            assert suspend(moderator.copy(), alice).status_code == 200
            statuses = [future.result() for future in writes]
        assert set(statuses) <= {201, 401}
        posts = moderator.get(f"/posts?author={alice.user['id']}").json
        assert len(posts) == statuses.count(201)

    def test_it_waits_for_a_comment_that_is_being_written(
        self, alice, moderator, post, monkeypatch
    ):
        is_held, may_go_on = Event(), Event()
        lock_post = comment_views.lock_post

        def hold(id):
            is_held.set()
            assert may_go_on.wait(20)
            return lock_post(id)

        monkeypatch.setattr(comment_views, "lock_post", hold)
        with ThreadPoolExecutor(2) as pool:
            url = f"/posts/{post['id']}/comments"
            comment = pool.submit(alice.copy().post, url, json={"content": "Cloth"})
            assert is_held.wait(20)
            suspension = pool.submit(suspend, moderator.copy(), alice)
            sleep(0.2)
            assert not suspension.done()
            may_go_on.set()
            assert comment.result().status_code == 201
            assert suspension.result().status_code == 200


class TestLock:
    def test_members_can_no_longer_comment(self, alice, bob, moderator, post):
        comment = bob.add_comment(post, "Before")
        assert moderator.put(f"/posts/{post['id']}/lock").status_code == 204
        assert bob.get(f"/posts/{post['id']}").json["locked"] is True
        for client in (alice, bob):
            for body in ({"content": "x"}, {"content": "x", "parent_id": comment["id"]}):
                response = client.post(f"/posts/{post['id']}/comments", json=body)
                assert assert_problem(response, 403)["code"] == "post_locked"
        moderator.add_comment(post, "The last word")
        edited = bob.patch(f"/comments/{comment['id']}", json={"content": "After"})
        assert edited.status_code == 200
        assert moderator.delete(f"/posts/{post['id']}/lock").status_code == 204
        bob.add_comment(post, "Again")

    def test_only_what_changes_is_in_the_log(self, moderator, post):
        for _ in range(2):
            moderator.put(f"/posts/{post['id']}/lock")
        for _ in range(2):
            moderator.delete(f"/posts/{post['id']}/lock")
        assert log(moderator) == [
            ("unlocked", "post", post["id"], None),
            ("locked", "post", post["id"], None),
        ]

    def test_an_unknown_post_gets_404(self, moderator):
        for method in ("PUT", "DELETE"):
            for mark in ("lock", "pin"):
                response = moderator.open(f"/posts/{'x' * 21}/{mark}", method=method)
                assert_problem(response, 404)


@pytest.mark.parametrize("mark", ["lock", "pin"])
def test_it_is_no_edit(alice, moderator, post, mark):
    url = f"/posts/{post['id']}"
    before = alice.get(url)
    assert moderator.put(f"{url}/{mark}").status_code == 204
    after = alice.get(url)
    assert after.json["updated_at"] == before.json["updated_at"]
    assert after.headers["ETag"] != before.headers["ETag"]  # it has another content
    etag = {"If-Match": before.headers["ETag"]}
    edited = alice.patch(url, json={"title": "Mine"}, headers=etag)
    assert (edited.status_code, edited.json["title"]) == (200, "Mine")
    assert edited.json["locked" if mark == "lock" else "pinned"] is True


class TestPin:
    def test_pinned_posts_are_listed(self, alice, bob, moderator):
        posts = [alice.create_post(f"Post {number}") for number in range(3)]
        for post in posts[:2]:
            assert moderator.put(f"/posts/{post['id']}/pin").status_code == 204
        listed = bob.get("/posts?pinned=true").json
        assert [post["id"] for post in listed] == [posts[1]["id"], posts[0]["id"]]
        assert all(post["pinned"] for post in listed)
        assert follow_list(bob, "/posts?pinned=true&limit=1") == listed
        assert [post["title"] for post in bob.get("/posts").json] == ["Post 2", "Post 1", "Post 0"]
        moderator.delete(f"/posts/{posts[0]['id']}/pin")
        assert [post["id"] for post in bob.get("/posts?pinned=true").json] == [posts[1]["id"]]

    def test_five_at_most(self, alice, moderator):
        *posts, last = [alice.create_post(f"Post {number}") for number in range(MAX_PINNED + 1)]
        for post in posts:
            assert moderator.put(f"/posts/{post['id']}/pin").status_code == 204
        problem = assert_problem(moderator.put(f"/posts/{last['id']}/pin"), 409)
        assert problem["code"] == "too_many_pinned"
        assert moderator.put(f"/posts/{posts[0]['id']}/pin").status_code == 204  # it is pinned
        assert_problem(moderator.put(f"/posts/{'x' * 21}/pin"), 404)
        moderator.delete(f"/posts/{posts[0]['id']}/pin")
        assert moderator.put(f"/posts/{last['id']}/pin").status_code == 204

    def test_five_at_most_also_at_once(self, alice, bob, moderator):
        posts = [alice.create_post(f"Post {number}") for number in range(10)]

        def pin(post):
            return moderator.copy().put(f"/posts/{post['id']}/pin").status_code

        with ThreadPoolExecutor(10) as pool:
            statuses = sorted(pool.map(pin, posts))
        assert statuses == [204] * MAX_PINNED + [409] * 5
        assert len(bob.get("/posts?pinned=true").json) == MAX_PINNED

    @pytest.mark.parametrize("query", ["pinned=false", "pinned=", "pinned=true&q=engines"])
    def test_an_invalid_query_gets_422(self, bob, query):
        assert error_locations(bob.get(f"/posts?{query}")) == {"pinned"}


class TestRemoval:
    def test_the_author_of_a_post_is_told_why(self, alice, moderator, post):
        reason = "This is advertising."
        url = f"/posts/{post['id']}"
        assert moderator.delete(url, query_string={"reason": reason}).status_code == 204
        [told] = removals(alice)
        assert (told["reason"], told["excerpt"]) == (reason, "On engines: Some text.")
        assert (told["actor"], told["post"], told["comment"]) == (None, None, None)
        assert log(moderator) == [("deleted", "post", post["id"], reason)]

    def test_the_author_of_a_comment_is_told_why(self, alice, bob, moderator, post):
        comment = bob.add_comment(post, "Buy *cloth*!")
        alice.add_comment(post, "No.", parent_id=comment["id"])
        moderator.delete(f"/comments/{comment['id']}?reason=Advertising.")
        [told] = removals(bob)
        assert (told["reason"], told["excerpt"]) == ("Advertising.", "Buy cloth!")
        moderator.delete(f"/posts/{post['id']}")
        assert removals(bob) == [told]

    def test_the_author_of_an_image_is_told_why(self, alice, moderator, post):
        image = alice.add_image(post, alt="An engine")
        moderator.delete(f"/images/{image['id']}?reason=Not+yours.")
        [told] = removals(alice)
        assert (told["reason"], told["excerpt"]) == ("Not yours.", "An engine")
        assert told["post"] == {"id": post["id"], "title": "On engines"}

    def test_a_reason_is_optional(self, alice, moderator, post):
        moderator.delete(f"/posts/{post['id']}")
        [told] = removals(alice)
        assert told["reason"] is None

    @pytest.mark.parametrize("reason", ["", " ", "x" * 501, "a\x00b"])
    def test_an_invalid_reason_gets_422(self, moderator, post, reason):
        response = moderator.delete(f"/posts/{post['id']}", query_string={"reason": reason})
        assert error_locations(response) == {"reason"}
        assert moderator.get(f"/posts/{post['id']}").status_code == 200

    def test_who_deletes_the_own_text_is_not_told(self, moderator, alice, post):
        alice.delete(f"/posts/{post['id']}?reason=Mine.")
        assert removals(alice) == []
        assert log(moderator) == []

    def test_a_post_without_an_author_is_deleted(self, alice, moderator, post):
        alice.delete("/users/me")
        assert moderator.delete(f"/posts/{post['id']}?reason=Old.").status_code == 204
        assert log(moderator) == [("deleted", "post", post["id"], "Old.")]

    def test_the_second_moderator_learns_that_it_is_gone(self, moderator, other_moderator, post):
        assert moderator.delete(f"/posts/{post['id']}").status_code == 204
        assert_problem(other_moderator.delete(f"/posts/{post['id']}"), 404)


class TestRemovalOfEverything:
    @pytest.fixture
    def written(self, alice, bob):
        """Posts and comments of Alice, one of them with a reply of Bob."""
        posts = [alice.create_post(f"Post {number}") for number in range(3)]
        other = bob.create_post("By Bob")
        comment = alice.add_comment(other, "With a reply")
        bob.add_comment(other, "The reply", parent_id=comment["id"])
        alice.add_comment(other, "Without")
        return [*posts, comment]

    def remove(self, moderator, client, **body):
        url = f"/moderation/users/{client.user['id']}/removal"
        response = moderator.post(url, json=body)
        assert response.status_code == 200, response.text
        return response.json

    def test_it_takes_steps_until_nothing_is_left(
        self, alice, bob, moderator, written, monkeypatch
    ):
        monkeypatch.setattr("posting.comments.store.COMMENTS_PER_STEP", 1)
        monkeypatch.setattr("posting.posts.store.POSTS_PER_STEP", 2)
        steps = []
        while not steps or steps[-1]["left"]:
            steps.append(self.remove(moderator, alice, reason="Advertising."))
            assert len(removals(alice)) == 1
        assert [step["removed"] for step in steps] == [1, 1, 2, 1]
        assert [step["left"] for step in steps] == [4, 3, 1, 0]
        assert self.remove(moderator, alice) == {"removed": 0, "left": 0}
        [told] = removals(alice)
        assert (told["reason"], told["excerpt"]) == ("Advertising.", None)
        assert [post["title"] for post in bob.get("/posts").json] == ["By Bob"]
        assert bob.get(f"/users/{alice.user['id']}/comments").json == []
        found = [
            (act["action"], act["target"]["kind"]) for act in moderator.get("/moderation/log").json
        ]
        assert found == [("deleted", "content")]

    def test_a_step_commits_in_no_group(self, alice, moderator, written, monkeypatch):
        """It takes long, so requests of the group would wait."""
        begun = []
        monkeypatch.setattr("posting.moderation.views.acts.begin", lambda **how: begun.append(how))
        self.remove(moderator, alice)
        assert begun == [{"alone": True}]

    def test_a_second_removal_is_in_the_log_with_its_reason(self, alice, moderator, written):
        for number in range(2):
            while self.remove(moderator, alice, reason=f"Reason {number}")["left"]:
                pass
            alice.create_post("Again")
        found = [act["reason"] for act in moderator.get("/moderation/log").json]
        assert found == ["Reason 1", "Reason 0"]
        assert [told["reason"] for told in removals(alice)] == found

    def test_a_step_has_few_comments_of_others(self, alice, bob, moderator, monkeypatch):
        monkeypatch.setattr("posting.posts.store.COMMENTS_PER_STEP", 3)
        for count in (1, 2, 1, 7, 0):
            post = alice.create_post("On engines")
            for _ in range(count):
                bob.add_comment(post, "Below")
        steps = []
        while not steps or steps[-1]["left"]:
            steps.append(self.remove(moderator, alice))
        assert len(steps) > 2
        assert sum(step["removed"] for step in steps) == 5
        assert bob.get(f"/users/{bob.user['id']}/comments").json == []

    def test_others_delete_their_comments_meanwhile(self, alice, bob, moderator):
        """Neither waits for the other in another order of locks."""
        for _ in range(3):
            posts = [alice.create_post(f"Post {number}") for number in range(8)]
            comments = [bob.add_comment(post, "Below") for post in posts]

            def delete(comment):
                return bob.copy().delete(f"/comments/{comment['id']}").status_code

            with ThreadPoolExecutor(5) as pool:
                deletions = [pool.submit(delete, comment) for comment in comments]
                while self.remove(moderator.copy(), alice)["left"]:
                    pass
                assert {future.result() for future in deletions} <= {204, 404}

    def test_the_account_and_its_notifications_stay(self, alice, bob, moderator, written):
        bob.add_comment(written[0], "An answer")
        before = len(alice.get("/notifications").json)
        assert before == 2
        self.remove(moderator, alice)
        assert alice.get("/users/me").status_code == 200
        assert [told["kind"] for told in alice.get("/notifications").json].count("reply") == 1

    def test_reports_on_it_are_closed(self, alice, bob, moderator, written):
        url = f"/posts/{written[0]['id']}/reports"
        closed = bob.post(url, json={"reason": "Advertising."}).json
        on_user = bob.post(f"/users/{alice.user['id']}/reports", json={"reason": "A robot."}).json
        while self.remove(moderator, alice)["left"]:
            pass
        assert bob.get(f"/reports/{closed['id']}").json["outcome"] == "removed"
        assert moderator.get("/reports").json == [on_user]

    def test_reports_on_comments_of_others_below_it_are_closed(self, alice, bob, moderator):
        post = alice.create_post("On engines")
        comment = bob.add_comment(post, "Below")
        closed = alice.post(f"/comments/{comment['id']}/reports", json={"reason": "No."}).json
        self.remove(moderator, alice)
        assert moderator.get(f"/reports/{closed['id']}").json["outcome"] == "removed"

    def test_an_account_is_deleted_when_nothing_is_left(self, alice, bob, moderator, written):
        on_user = bob.post(f"/users/{alice.user['id']}/reports", json={"reason": "A robot."}).json
        url = f"/moderation/users/{alice.user['id']}?reason=A+robot."
        assert assert_problem(moderator.delete(url), 409)["code"] == "has_content"
        while self.remove(moderator, alice)["left"]:
            pass
        assert moderator.delete(url).status_code == 204
        assert_problem(moderator.get(f"/users/{alice.user['id']}"), 404)
        assert_problem(alice.get("/users/me"), 401)
        assert [post["title"] for post in moderator.get("/posts").json] == ["By Bob"]
        assert log(moderator)[0] == ("deleted", "user", alice.user["id"], "A robot.")
        assert moderator.get(f"/reports/{on_user['id']}").json["outcome"] == "removed"
        assert_problem(moderator.delete(url), 404)


class TestMember:
    def test_moderators_see_the_facts(self, alice, bob, moderator, post):
        bob.add_comment(post, "A comment")
        bob.post(f"/posts/{post['id']}/reports", json={"reason": "No."})
        member = moderator.get(f"/moderation/users/{alice.user['id']}").json
        assert member == {
            "id": alice.user["id"],
            "username": "alice",
            "display_name": "Alice",
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
            "moderator": {n: moderator.user[n] for n in ("id", "username", "display_name")},
            "target": {"kind": "user", "id": bob.user["id"]},
            "user": {n: bob.user[n] for n in ("id", "username", "display_name")},
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
        with app.app_context():
            acts.record_by_operator("ended", "invitation", "i" * 21, alice.user["id"])
            commit()
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


@pytest.mark.parametrize("reason", ["", " ", "x" * 501, "a\x00b", "a\udce4b"])
def test_an_invalid_reason_of_an_operator_is_an_error(flask, alice, reason):
    code, output = flask("users", "suspend", "alice", "--reason", reason)
    assert (code, output.partition(".")[0]) == (1, "Error: The reason is not accepted")
    assert alice.get("/users/me").status_code == 200


def test_metrics_are_served_without_the_database(make_app, monkeypatch):
    def fail():
        raise sa.exc.OperationalError("SELECT 1", {}, Exception("it is gone"))

    app = make_app(METRICS="on")
    monkeypatch.setitem(app.extensions["posting.gauges"], "posting_open_reports", Gauge("x", fail))
    response = app.test_client().get("/metrics")
    assert response.status_code == 200
    assert "posting_requests_total" in response.text


def test_open_reports_and_applications_are_metrics(make_app, app, bob, post):
    apply(app)
    bob.post(f"/posts/{post['id']}/reports", json={"reason": "No."})
    text = make_app(METRICS="on").test_client().get("/metrics").text
    assert "posting_open_reports 1.0" in text
    assert "posting_pending_applications 1.0" in text
