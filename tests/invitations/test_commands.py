"""`flask invitations`: invitations of the operator, and the end of any."""

import json
from datetime import timedelta

import pytest
import sqlalchemy as sa

from posting.db.base import db
from posting.db.types import now
from posting.invitations import store
from posting.invitations.models import Invitation
from posting.moderation.models import Act
from tests.conftest import PASSWORD, invite
from tests.helpers.assertions import assert_problem

DAY = timedelta(days=1)


@pytest.fixture
def create(flask):
    """Return a function that creates an invitation, and returns the lines that are printed."""

    def create(*options, **settings):
        code, output = flask("invitations", "create", *options, **settings)
        assert code == 0
        return output.splitlines()

    return create


@pytest.fixture
def listed(flask):
    """Return a function that returns the invitations that `flask invitations list` prints."""

    def listed():
        code, output = flask("invitations", "list", "--json")
        assert code == 0
        return [json.loads(line) for line in output.splitlines()]

    return listed


def sign_up(client, link, username):
    body = {"username": username, "password": PASSWORD, "invitation": link.partition("#")[2]}
    return client.post("/signup", json=body)


class TestCreate:
    def test_it_prints_a_link_by_which_somebody_signs_up(self, create, listed, make_app):
        app = make_app(SIGNUP="invitation", PUBLIC_URL="https://example.org")
        text, link = create(on=app)
        [invitation] = listed()
        assert text == f"With this link, one person can sign up until {invitation['expires_at']}:"
        assert link.startswith("https://example.org/signup#")
        client, elsewhere = app.test_client(), {"base_url": "https://example.org"}
        body = {"username": "ada", "password": PASSWORD, "invitation": link.partition("#")[2]}
        assert client.post("/signup", json=body, **elsewhere).json["role"] == "member"
        body["username"] = "grace"
        assert_problem(client.post("/signup", json=body, **elsewhere), 422)

    def test_its_accounts_need_no_approval(self, create, make_app):
        app = make_app(SIGNUP="approval")
        response = sign_up(app.test_client(), create(on=app)[-1], "ada")
        assert response.status_code == 201
        assert "state" not in response.json

    def test_the_options_are_those_of_the_invitation(self, create, app, listed):
        text, _ = create("--note", "For the choir", "--uses", "30", "--days", "90")
        assert text.startswith("With this link, 30 people can sign up until ")
        [invitation] = listed()
        assert invitation["note"] == "For the choir"
        assert (invitation["uses"], invitation["uses_left"]) == (30, 30)
        assert invitation["created_by"] is None
        with app.app_context():
            expires_at = db.session.scalar(sa.select(Invitation.expires_at))
            assert 89 * DAY < expires_at - now() <= 90 * DAY

    @pytest.mark.parametrize(
        ("option", "value", "code"),
        [
            ("--note", "x" * 101, 1), ("--note", "a\nb", 1), ("--note", " ", 1),
            ("--uses", "0", 2), ("--uses", "101", 2), ("--uses", "x", 2),
            ("--days", "0", 2), ("--days", "91", 2),
        ],
    )  # fmt: skip
    def test_invalid_options_are_errors(self, flask, listed, option, value, code):
        found, output = flask("invitations", "create", option, value)
        assert found == code
        if code == 1:
            assert output.startswith("Error: The note is not accepted. ")
        assert listed() == []

    def test_while_sign_up_is_closed_it_names_another_command(self, flask, make_app, listed):
        code, output = flask("invitations", "create", on=make_app(SIGNUP="closed"))
        assert code == 1
        assert output.startswith("Error: Sign-up is closed, so invitations do not work.")
        assert "flask users create NAME" in output
        assert listed() == []

    def test_it_is_in_the_log_of_security_events(self, create, listed, caplog):
        caplog.set_level("INFO")
        create()
        [invitation] = listed()
        assert f"event=invitation-created invitation={invitation['id']}" in caplog.text


class TestList:
    def test_it_has_those_of_everyone_as_the_api(self, create, app, alice, moderator, listed):
        create("--note", "For the choir", "--uses", "2")
        invite(app, alice.user["id"])
        assert listed() == moderator.get("/invitations").json
        assert [each["note"] for each in listed()] == [None, "For the choir"]

    def test_it_has_who_signed_up_by_them(self, create, anonymous, listed):
        link = create("--uses", "2")[-1]
        sign_up(anonymous, link, "ada")
        [invitation] = listed()
        assert [user["username"] for user in invitation["used_by"]] == ["ada"]

    def test_people_get_columns(self, create, app, alice, flask, listed):
        link = create("--uses", "10", "--note", "For\u202e the choir")[-1]
        sign_up(app.test_client(), link, "ada")
        invite(app, alice.user["id"])
        of_alice, of_operator = listed()
        code, output = flask("invitations", "list")
        assert code == 0
        assert output.splitlines() == [
            "ID                       USES EXPIRES    CREATED BY                       NOTE",
            f"{of_alice['id']}     0/1 {of_alice['expires_at'][:10]} alice",
            f"{of_operator['id']}    1/10 {of_operator['expires_at'][:10]} operator"
            "                         For\\u202e the choir",
        ]

    def test_it_is_read_page_by_page(self, create, listed, monkeypatch):
        for _ in range(5):
            create()
        together = listed()
        assert len(together) == 5
        monkeypatch.setattr(store, "MAX_PAGE_SIZE", 2)
        assert listed() == together


class TestEnd:
    def test_nobody_can_use_it_any_more(self, create, flask, anonymous, listed, app):
        link = create("--uses", "2")[-1]
        sign_up(anonymous, link, "ada")
        [invitation] = listed()
        expected = f"The invitation {invitation['id']} has ended.\n"
        assert flask("invitations", "end", invitation["id"]) == (0, expected)
        assert listed() == []
        assert_problem(sign_up(anonymous, link, "grace"), 422)
        assert len(anonymous.get("/users?username=ada").json) == 1
        with app.app_context():
            assert db.session.scalars(sa.select(Act)).all() == []

    def test_that_of_a_member_is_logged(self, flask, app, alice):
        id = invite(app, alice.user["id"])
        assert flask("invitations", "end", id)[0] == 0
        logged = flask("moderation", "log")[1]
        assert logged.endswith(f" operator ended invitation {id} of alice\n")

    @pytest.mark.parametrize("id", ["x" * 21, "-" * 21, "-h" + "x" * 19, "--help-me", "x"])
    def test_an_unknown_one_is_an_error(self, flask, id):
        expected = f"Error: There is no invitation with the ID {id}. Run: flask invitations list\n"
        assert flask("invitations", "end", id) == (1, expected)

    def test_any_id_is_an_argument(self, flask, app, alice):
        id = invite(app, alice.user["id"])
        awkward = "-" + id[1:]
        with app.app_context():
            db.session.execute(sa.update(Invitation).values(id=awkward))
            db.session.commit()
        assert flask("invitations", "end", awkward)[0] == 0
