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


@pytest.mark.parametrize("reason", ["", " ", "x" * 501, "a\x00b", "a\udce4b"])
def test_an_invalid_reason_of_an_operator_is_an_error(flask, alice, reason):
    code, output = flask("users", "suspend", "alice", "--reason", reason)
    assert (code, output.partition(".")[0]) == (1, "Error: The reason is not accepted")
    assert alice.get("/users/me").status_code == 200
