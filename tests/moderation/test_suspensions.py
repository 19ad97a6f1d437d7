"""Suspensions of accounts, by moderators and by operators."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Event
from time import sleep

import pytest

from posting.accounts.models import User
from posting.comments import views as comment_views
from posting.db.base import db
from posting.db.types import now, to_rfc3339
from tests.conftest import PASSWORD, apply
from tests.helpers.assertions import assert_problem, error_locations
from tests.helpers.moderation import log, suspend

pytestmark = pytest.mark.usefixtures("stays_consistent")

HOUR = timedelta(hours=1)
CREDENTIALS = {"username": "alice", "password": PASSWORD}


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

    def test_a_second_one_replaces_only_the_one_that_was_read(
        self, alice, moderator, other_moderator
    ):
        url = f"/users/{alice.user['id']}/suspension"
        assert assert_problem(moderator.get(url), 404)["code"] == "no_such_suspension"
        suspend(moderator, alice, until=to_rfc3339(now() + HOUR))
        problem = assert_problem(suspend(other_moderator, alice, reason="Again."), 428)
        assert problem["code"] == "already_suspended"
        read = other_moderator.get(url)
        assert read.json["reason"] == "Advertising."
        body, headers = {"reason": "Again."}, {"If-Match": read.headers["ETag"]}
        assert other_moderator.put(url, json=body, headers=headers).status_code == 200
        suspension = moderator.get(f"/moderation/users/{alice.user['id']}").json["suspension"]
        assert (suspension["reason"], suspension["until"]) == ("Again.", None)
        assert suspension == moderator.get(url).json
        assert_problem(moderator.put(url, json={"reason": "Mine."}, headers=headers), 412)
        assert_problem(moderator.delete(url, headers=headers), 412)
        assert moderator.get(url).json["reason"] == "Again."

    def test_the_same_request_again_changes_nothing(self, alice, moderator):
        fields = {"until": to_rfc3339(now() + HOUR)}
        first = suspend(moderator, alice, **fields)
        again = suspend(moderator, alice, **fields)
        assert (again.status_code, again.json) == (200, first.json)
        assert [act[0] for act in log(moderator)] == ["suspended"]

    def test_of_two_moderators_at_once_one_suspends(self, alice, moderator, other_moderator):
        clients = [moderator.copy(), other_moderator.copy()] * 3
        with ThreadPoolExecutor(6) as pool:
            tries = [
                pool.submit(suspend, client, alice, reason=f"Reason {number}.")
                for number, client in enumerate(clients)
            ]
        statuses = sorted(each.result().status_code for each in tries)
        assert statuses == [200, 428, 428, 428, 428, 428]
        assert [act[0] for act in log(moderator)] == ["suspended"]

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

    def test_one_by_an_operator_may_have_an_end(self, app, flask, alice, moderator):
        url = f"/moderation/users/{alice.user['id']}"
        command = ("users", "suspend", "alice", "--reason", "Rest.", "--until")
        expected = "alice is suspended until 2999-12-31T00:00:00.000Z and signed out everywhere.\n"
        assert flask(*command, "2999-12-31") == (0, expected)
        assert_problem(alice.get("/users/me"), 401)
        suspension = moderator.get(url).json["suspension"]
        assert (suspension["reason"], suspension["until"]) == ("Rest.", "2999-12-31T00:00:00.000Z")
        assert flask(*command, "2999-12-31") == (0, "alice is suspended already.\n")
        assert flask(*command, "2999-12-31T18:00:00.1239+01:00")[0] == 0
        assert moderator.get(url).json["suspension"]["until"] == "2999-12-31T17:00:00.123Z"
        assert flask("users", "suspend", "alice")[0] == 0
        suspension = moderator.get(url).json["suspension"]
        assert (suspension["reason"], suspension["until"]) == (None, None)

    def test_an_operator_replaces_the_reason_alone(self, flask, alice, moderator):
        for reason in ("Rest.", "Sleep."):
            assert flask("users", "suspend", "alice", "--reason", reason)[0] == 0
            member = moderator.get(f"/moderation/users/{alice.user['id']}").json
            assert member["suspension"]["reason"] == reason

    @pytest.mark.parametrize(
        ("until", "message"),
        [
            ("2001-01-01", "2001-01-01 is not in the future."),
            ("tomorrow", "'tomorrow' is not a date such as 2026-12-31, or a time with its offset"),
            ("2999-02-30", "'2999-02-30' is not a date"),
            ("2999-12-31T18:00:00", "is not a date such as"),
            ("", "'' is not a date"),
        ],
    )
    def test_an_operator_must_name_an_end_in_the_future(self, flask, alice, until, message):
        code, output = flask("users", "suspend", "alice", "--until", until)
        assert code == 2
        assert message in output
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


@pytest.mark.parametrize("reason", ["", " ", "x" * 501, "a\x00b", "a\udce4b"])
def test_an_invalid_reason_of_an_operator_is_an_error(flask, alice, reason):
    code, output = flask("users", "suspend", "alice", "--reason", reason)
    assert (code, output.partition(".")[0]) == (1, "Error: The reason is not accepted")
    assert alice.get("/users/me").status_code == 200
