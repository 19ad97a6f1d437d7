"""Approval: accounts that wait until a moderator decides."""

from datetime import timedelta

import pytest
import sqlalchemy as sa

from posting.accounts.models import APPLICATION_LIFETIME, User
from posting.db.base import db
from posting.db.purge import MAX_STEP
from posting.db.types import now
from posting.moderation.models import Act
from tests.conftest import PASSWORD
from tests.helpers.assertions import assert_problem, error_locations, follow_pages

APPLICATION = "I weave too."
CREDENTIALS = {"username": "newcomer", "password": PASSWORD}


@pytest.fixture
def approving(make_app):
    """An app in which moderators approve new accounts."""
    return make_app(SIGNUP="approval")


@pytest.fixture
def client(approving):
    return approving.test_client()


@pytest.fixture
def morgan(moderator, approving):
    """A moderator of this app."""
    return moderator.copy(approving)


@pytest.fixture
def apply(client):
    """Return a function that applies for an account, and returns the account."""

    def apply(username, application=APPLICATION):
        body = CREDENTIALS | {"username": username, "application": application}
        response = client.post("/signup", json=body)
        assert response.status_code == 201, response.text
        return response.json

    return apply


def acts(app):
    with app.app_context():
        return [
            (act.moderator, act.action, act.target_kind, act.target_id, act.user_id)
            for act in db.session.scalars(sa.select(Act).order_by(Act.created_at))
        ]


def age_applications(app, by):
    with app.app_context():
        for user in db.session.scalars(sa.select(User).where(User.pending_since.is_not(None))):
            user.pending_since -= by
        db.session.commit()


class TestSignUp:
    def test_an_account_is_pending_and_the_response_says_so(self, client):
        body = CREDENTIALS | {"application": APPLICATION}
        response = client.post("/signup", json=body)
        assert response.status_code == 201
        assert response.json["state"] == "pending"
        assert client.get(response.headers["Location"]).status_code == 404
        signed_in = client.post("/signin", json=CREDENTIALS)
        assert assert_problem(signed_in, 403)["code"] == "pending_approval"

    def test_an_application_is_required(self, client):
        response = client.post("/signup", json=CREDENTIALS)
        assert error_locations(response) == {"/application"}
        assert response.json["errors"][0]["code"] == "required"
        assert error_locations(client.post("/signup", json={})) == {
            "/username", "/password", "/application"
        }  # fmt: skip

    @pytest.mark.parametrize("text", ["", " ", "x" * 1001, None, 1])
    def test_an_invalid_application_gets_422(self, client, text):
        response = client.post("/signup", json=CREDENTIALS | {"application": text})
        assert [error["pointer"] for error in response.json["errors"]] == ["/application"]

    @pytest.mark.parametrize("body", [[], "x", 1])
    def test_a_body_that_is_no_object_gets_422(self, client, body):
        assert "" in error_locations(client.post("/signup", json=body))

    def test_while_sign_up_is_open_an_application_is_ignored(self, app, anonymous):
        body = CREDENTIALS | {"application": APPLICATION}
        created = anonymous.post("/signup", json=body).json
        assert created == anonymous.get(f"/users/{created['id']}").json
        with app.app_context():
            assert db.session.get(User, created["id"]).application is None

    def test_an_application_that_nobody_decided_on_ends_after_30_days(self, app, apply, morgan):
        newcomer = apply("newcomer")
        age_applications(app, APPLICATION_LIFETIME - timedelta(minutes=1))
        apply("another")
        assert len(morgan.get("/applications").json) == 2
        age_applications(app, timedelta(minutes=2))
        [listed] = morgan.get("/applications").json
        assert listed["username"] == "another"
        assert_problem(morgan.post(f"/applications/{newcomer['id']}/approval"), 404)
        age_applications(app, MAX_STEP)
        apply("Newcomer")  # the account was deleted, so the name is free again
        names = [each["username"] for each in morgan.get("/applications").json]
        assert sorted(names) == ["Newcomer", "another"]


class TestList:
    def test_moderators_see_who_waits_oldest_first(self, apply, morgan):
        users = [apply(f"user-{number}", f"Reason {number}") for number in range(5)]
        pages = [*follow_pages(morgan, "/applications?limit=2")]
        assert [len(page) for page in pages] == [2, 2, 1]
        assert [row for page in pages for row in page] == [
            {
                "id": user["id"],
                "username": user["username"],
                "display_name": None,
                "avatar_url": None,
                "bio": None,
                "application": f"Reason {number}",
                "created_at": user["created_at"],
            }
            for number, user in enumerate(users)
        ]

    def test_others_are_not_in_it(self, alice, moderator):
        assert moderator.get("/applications").json == []
        assert assert_problem(alice.get("/applications"), 403)["code"] == "not_moderator"


class TestDecision:
    def test_an_approved_account_is_a_member(self, app, apply, morgan, client):
        id = apply("newcomer")["id"]
        response = morgan.post(f"/applications/{id}/approval")
        assert response.status_code == 201
        assert response.json == client.get(response.headers["Location"]).json
        assert client.post("/signin", json=CREDENTIALS).status_code == 200
        assert morgan.get("/applications").json == []
        assert acts(app) == [("morgan", "approved", "user", id, id)]
        with app.app_context():  # for moderators to look up later
            assert db.session.get(User, id).application == APPLICATION

    def test_a_refused_account_is_deleted(self, app, apply, morgan, client):
        id = apply("newcomer")["id"]
        assert morgan.delete(f"/applications/{id}").status_code == 204
        assert_problem(client.post("/signin", json=CREDENTIALS), 401)
        assert acts(app) == [("morgan", "refused", "user", id, id)]
        apply("newcomer")

    @pytest.mark.parametrize("first", ["approval", "refusal"])
    def test_it_is_made_once(self, app, apply, morgan, first):
        id = apply("newcomer")["id"]

        def decide(decision):
            if decision == "approval":
                return morgan.post(f"/applications/{id}/approval")
            return morgan.delete(f"/applications/{id}")

        assert decide(first).status_code < 300
        for decision in ("approval", "refusal"):
            assert assert_problem(decide(decision), 404)["code"] == "no_such_application"
        assert len(acts(app)) == 1

    def test_a_member_has_no_application(self, alice, moderator):
        path = f"/applications/{alice.user['id']}"
        assert_problem(moderator.delete(path), 404)
        assert_problem(moderator.post(f"{path}/approval"), 404)
        assert alice.get("/users/me").status_code == 200

    def test_pages_of_an_approved_member_are_not_served_from_the_cache(self, apply, morgan, client):
        user = apply("newcomer")
        path = f"/users/{user['id']}"
        assert [client.get(path).status_code for _ in range(2)] == [404, 404]
        morgan.post(f"/applications/{user['id']}/approval")
        assert client.get(path).status_code == 200

    def test_an_application_that_cannot_be_logged_is_not_decided(
        self, app, apply, morgan, monkeypatch
    ):
        def fail(**_):
            raise RuntimeError

        id = apply("newcomer")["id"]
        monkeypatch.setattr("posting.moderation.log._insert_act", fail)
        with pytest.raises(RuntimeError):
            morgan.post(f"/applications/{id}/approval")
        assert [each["id"] for each in morgan.get("/applications").json] == [id]


def test_the_time_of_an_application_is_that_of_the_account(app, apply):
    apply("newcomer")
    with app.app_context():
        user = db.session.scalars(sa.select(User).where(User.username == "newcomer")).one()
        assert user.pending_since == user.created_at <= now()
