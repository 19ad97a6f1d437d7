"""Invitations: who may make, see and end them, and sign-up by them."""

from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa

from posting.accounts.models import User
from posting.config import cookie_name
from posting.db.base import db
from posting.db.types import new_id, now
from posting.invitations.models import OPEN_PER_USER, Invitation, InvitationUse
from posting.moderation.models import Act
from tests.conftest import PASSWORD
from tests.helpers.assertions import assert_problem, error_locations, follow_pages

DAY = timedelta(days=1)


def in_days(days):
    return (datetime.now(UTC) + timedelta(days=days)).isoformat()


@pytest.fixture
def members_invite(make_app):
    """An app in which people sign up by invitations of members."""
    return make_app(SIGNUP="invitation", INVITATIONS="members")


@pytest.fixture
def client(members_invite):
    return members_invite.test_client()


@pytest.fixture
def ada(sign_in, members_invite):
    """A member who may invite."""
    ada = sign_in("ada", display_name="Ada")
    copy = ada.copy(members_invite)
    copy.user = ada.user
    return copy


@pytest.fixture
def morgan(moderator, members_invite):
    """A moderator of the same app."""
    copy = moderator.copy(members_invite)
    copy.user = moderator.user
    return copy


def invite(client, **fields):
    response = client.post("/invitations", json=fields)
    assert response.status_code == 201, response.text
    return response.json


def code_of(invitation):
    return invitation["url"].partition("#")[2]


def sign_up(client, username, invitation=None, **fields):
    body = {"username": username, "password": PASSWORD} | fields
    if invitation:
        body["invitation"] = code_of(invitation)
    return client.post("/signup", json=body)


def assert_invalid(response):
    [error] = assert_problem(response, 422)["errors"]
    assert (error["pointer"], error["code"]) == ("/invitation", "invalid_invitation")


def change(app, model, **values):
    with app.app_context():
        db.session.execute(sa.update(model).values(**values))
        db.session.commit()


class TestCreation:
    def test_a_whole_number_may_have_a_point(self, ada):
        assert ada.post("/invitations", json={"uses": 2.0}).json["uses"] == 2

    def test_it_has_the_url_only_once(self, ada):
        response = ada.post("/invitations", json={})
        assert response.status_code == 201
        created = response.json
        assert created.keys() == {
            "id", "note", "uses", "uses_left", "created_by", "created_at", "expires_at", "used_by",
            "url",
        }  # fmt: skip
        assert created["created_by"] == {
            name: ada.user[name] for name in ("id", "username", "display_name", "avatar_url")
        }
        assert (created["note"], created["uses"], created["uses_left"]) == (None, 1, 1)
        lifetime = datetime.fromisoformat(created["expires_at"]) - datetime.fromisoformat(
            created["created_at"]
        )
        assert lifetime == 14 * DAY
        url = created.pop("url")
        assert url.startswith(f"http://localhost/signup#{created['id']}")
        assert response.headers["Cache-Control"] == "private, no-store"
        assert response.headers["Location"] == f"http://localhost/invitations/{created['id']}"
        assert ada.get(response.headers["Location"]).json == created
        assert ada.get("/invitations").json == [created]

    def test_the_url_has_the_public_one(self, moderator, make_app):
        app = make_app(PUBLIC_URL="https://example.org/community")
        client = app.test_client()
        token = moderator.session_token
        client.set_cookie(cookie_name(app.config), token, domain="example.org", secure=True)
        base = "https://example.org/community"
        response = client.post("/invitations", json={}, base_url=base)
        assert response.json["url"].startswith(f"{base}/signup#")

    def test_the_secret_is_not_stored(self, app, ada):
        secret = code_of(created := invite(ada)).removeprefix(created["id"])
        assert len(secret) >= 43
        with app.app_context():
            row = db.session.get(Invitation, created["id"])
            assert secret not in str([getattr(row, column.key) for column in row.__table__.c])

    def test_the_fields_are_those_that_are_sent(self, ada):
        created = invite(ada, note="For the choir", uses=100, expires_at=in_days(89))
        assert (created["note"], created["uses"], created["uses_left"]) == (
            "For the choir", 100, 100
        )  # fmt: skip
        assert invite(ada, note="")["note"] is None

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("note", "x" * 101), ("note", " "), ("note", "a\nb"), ("note", 1),
            ("uses", 0), ("uses", 101), ("uses", 1.5), ("uses", "1"), ("uses", True),
            ("uses", None), ("uses", 2**70),
            ("expires_at", "2026-01-01T00:00:00Z"), ("expires_at", "2999-01-01T00:00:00Z"),
            ("expires_at", "tomorrow"),
            ("expires_at", None), ("role", "moderator"), ("created_by", None),
        ],
    )  # fmt: skip
    def test_invalid_fields_get_422(self, ada, field, value):
        response = ada.post("/invitations", json={field: value})
        assert error_locations(response) == {f"/{field}"}

    def test_a_user_has_at_most_fifty_open_ones(self, app, ada, morgan):
        for _ in range(OPEN_PER_USER):
            created = invite(ada)
        refused = assert_problem(ada.post("/invitations", json={}), 409)
        assert refused["code"] == "too_many_invitations"
        invite(morgan)
        assert ada.delete(f"/invitations/{created['id']}").status_code == 204
        invite(ada)
        assert_problem(ada.post("/invitations", json={}), 409)
        change(app, Invitation, uses_left=0)
        invite(ada)

    def test_expired_ones_are_not_open_and_are_purged_after_30_days(self, app, ada):
        for _ in range(OPEN_PER_USER):
            invite(ada)
        change(app, Invitation, expires_at=now() - 29 * DAY)
        invite(ada)
        assert len(ada.get("/invitations?limit=100").json) == OPEN_PER_USER + 1
        change(app, Invitation, expires_at=now() - 31 * DAY)
        left = invite(ada)
        assert [each["id"] for each in ada.get("/invitations").json] == [left["id"]]

    def test_by_default_only_moderators_invite(self, alice, moderator):
        refused = assert_problem(alice.post("/invitations", json={}), 403)
        assert refused["code"] == "not_moderator"
        invite(moderator)

    def test_nobody_invites_while_sign_up_is_closed(self, make_app, moderator):
        closed = moderator.copy(make_app(SIGNUP="closed"))
        refused = assert_problem(closed.post("/invitations", json={}), 403)
        assert refused["code"] == "signup_closed"
        assert closed.get("/invitations").json == []

    def test_a_program_invites_with_a_token_that_may_write(self, members_invite, reader, writer):
        for program, status in ((reader, 403), (writer, 201)):
            client = members_invite.test_client()
            client.environ_base |= program.environ_base
            assert client.post("/invitations", json={}).status_code == status


class TestSignUp:
    def test_an_account_knows_who_invited_it(self, app, ada, client):
        invitation = invite(ada, uses=2)
        created = sign_up(client, "grace", invitation, display_name="Grace")
        assert created.status_code == 201
        assert created.json.keys() == ada.user.keys()
        shown = ada.get(f"/invitations/{invitation['id']}").json
        assert (shown["uses"], shown["uses_left"]) == (2, 1)
        grace = {"id": created.json["id"], "username": "grace", "display_name": "Grace"}
        grace["avatar_url"] = None
        assert shown["used_by"] == [grace]
        with app.app_context():
            use = db.session.get(InvitationUse, grace["id"])
            assert (use.invitation_id, use.invited_by_id) == (invitation["id"], ada.user["id"])
            assert db.session.get(InvitationUse, ada.user["id"]) is None

    def test_it_works_as_often_as_it_says(self, ada, client):
        invitation = invite(ada, uses=3)
        for number in range(3):
            assert sign_up(client, f"user-{number}", invitation).status_code == 201
        assert_invalid(sign_up(client, "user-4", invitation))
        assert sign_up(client, "user-4", invite(ada)).status_code == 201

    def test_it_is_required_while_sign_up_is_by_invitation(self, client):
        response = sign_up(client, "grace")
        assert error_locations(response) == {"/invitation"}
        assert response.json["errors"][0]["code"] == "required"

    @pytest.mark.parametrize("code", ["", "x", "x" * 21, "x" * 64, "\N{SPOOL OF THREAD}" * 30])
    def test_an_unknown_one_gets_422(self, client, code):
        body = {"username": "grace", "password": PASSWORD, "invitation": code}
        assert_invalid(client.post("/signup", json=body))

    def test_a_wrong_secret_gets_422(self, ada, client):
        invitation = invite(ada)
        invitation["url"] = invitation["url"][:-1] + "~"
        assert_invalid(sign_up(client, "grace", invitation))

    def test_one_that_has_expired_or_was_ended_gets_422(self, app, ada, client):
        expired, ended = invite(ada), invite(ada)
        ada.delete(f"/invitations/{ended['id']}")
        change(app, Invitation, expires_at=now())
        for invitation in (expired, ended):
            assert_invalid(sign_up(client, "grace", invitation))

    def test_one_whose_creator_is_suspended_or_gone_gets_422(self, app, ada, morgan, client):
        invitation = invite(ada, uses=9)
        for state in ({"suspended_at": now()}, {"pending_since": now()}):
            change(app, User, **state)
            assert_invalid(sign_up(client, "grace", invitation))
            change(app, User, **dict.fromkeys(state))
        assert sign_up(client, "grace", invitation).status_code == 201
        assert ada.delete("/users/me").status_code == 204
        assert_invalid(sign_up(client, "hedy", invitation))
        assert morgan.get("/invitations").json == []
        with app.app_context():
            grace = db.session.scalars(sa.select(User).where(User.username == "grace")).one()
            assert db.session.get(InvitationUse, grace.id).invited_by_id is None

    def test_one_whose_creator_may_no_longer_invite_gets_422(self, make_app, moderator):
        app = make_app(SIGNUP="invitation")
        invitation, client = invite(moderator.copy(app), uses=9), app.test_client()
        assert sign_up(client, "grace", invitation).status_code == 201
        change(app, User, role="member")
        assert_invalid(sign_up(client, "hedy", invitation))

    def test_a_refused_sign_up_uses_nothing(self, ada, client):
        invitation = invite(ada)
        assert_problem(sign_up(client, "Ada", invitation), 409)
        assert_problem(sign_up(client, "x", invitation), 422)
        assert sign_up(client, "grace", invitation).status_code == 201

    def test_an_invalid_invitation_is_reported_before_a_taken_name(self, ada, client):
        body = {"username": "ada", "password": PASSWORD, "invitation": "x"}
        assert_invalid(client.post("/signup", json=body))

    def test_it_makes_approval_unnecessary(self, ada, make_app):
        client = make_app(SIGNUP="approval", INVITATIONS="members").test_client()
        created = sign_up(client, "grace", invite(ada))
        assert created.status_code == 201
        assert "state" not in created.json
        assert client.post("/signin", json={"username": "grace", "password": PASSWORD}).json == (
            created.json
        )
        invalid = {"username": "hedy", "invitation": "x", "application": "Please."}
        assert_invalid(client.post("/signup", json=invalid | {"password": PASSWORD}))

    def test_it_may_be_used_while_sign_up_is_open(self, ada, make_app):
        invitation, client = invite(ada), make_app(INVITATIONS="members").test_client()
        assert sign_up(client, "grace", invitation).status_code == 201
        assert ada.get(f"/invitations/{invitation['id']}").json["uses_left"] == 0
        assert_invalid(sign_up(client, "hedy", invitation))

    def test_it_does_not_open_a_closed_sign_up(self, ada, make_app):
        closed = make_app(SIGNUP="closed").test_client()
        refused = assert_problem(sign_up(closed, "grace", invite(ada)), 403)
        assert refused["code"] == "signup_closed"


class TestList:
    def test_members_see_their_own_and_moderators_all(self, ada, morgan, sign_in, members_invite):
        own, other = invite(ada), invite(morgan)
        for invitation in (own, other):
            del invitation["url"]
        assert ada.get("/invitations").json == [own]
        assert morgan.get("/invitations").json == [other, own]
        assert sign_in("grace").copy(members_invite).get("/invitations").json == []

    def test_it_has_pages(self, ada, client):
        ids = [invite(ada)["id"] for _ in range(5)]
        pages = [*follow_pages(ada, "/invitations?limit=2")]
        assert [len(page) for page in pages] == [2, 2, 1]
        assert [row["id"] for page in pages for row in page] == ids[::-1]

    def test_who_came_by_which_takes_one_query(self, ada, client, statements):
        for number in range(4):
            sign_up(client, f"user-{number}", invite(ada))
        statements.clear()
        rows = ada.get("/invitations").json
        assert [row["used_by"][0]["username"] for row in rows] == [
            "user-3", "user-2", "user-1", "user-0"
        ]  # fmt: skip
        assert len([sql for sql in statements if "FROM invitation" in sql]) == 2

    def test_a_member_reads_and_ends_only_their_own(self, ada, morgan, client):
        paths = {
            f"/invitations/{invite(morgan)['id']}": "morgan's", f"/invitations/{new_id()}": "none"
        }  # fmt: skip
        for path in paths:
            assert assert_problem(ada.get(path), 404)["code"] == "no_such_invitation"
            assert_problem(ada.delete(path), 404)
        assert len(morgan.get("/invitations").json) == 1

    def test_a_moderator_ends_any_and_this_is_logged(self, app, ada, morgan):
        own, other = invite(morgan), invite(ada)
        for invitation in (own, other):
            path = f"/invitations/{invitation['id']}"
            assert morgan.get(path).status_code == 200
            assert morgan.delete(path).status_code == 204
            assert_problem(morgan.delete(path), 404)
        with app.app_context():
            [act] = db.session.scalars(sa.select(Act))
            assert (act.moderator, act.action) == ("morgan", "ended")
            assert (act.target_kind, act.target_id) == ("invitation", other["id"])
            assert act.user_id == ada.user["id"]

    def test_accounts_outlive_the_invitation(self, app, ada, client):
        invitation = invite(ada)
        id = sign_up(client, "grace", invitation).json["id"]
        ada.delete(f"/invitations/{invitation['id']}")
        assert client.get(f"/users/{id}").status_code == 200
        with app.app_context():
            assert db.session.get(InvitationUse, id).invited_by_id == ada.user["id"]
