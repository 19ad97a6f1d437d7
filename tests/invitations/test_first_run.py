"""The first run: a link whose bearer becomes the first owner."""

from datetime import timedelta

import pytest
import sqlalchemy as sa

from posting.accounts.models import User
from posting.db.base import db
from posting.db.types import now
from posting.invitations import first_run
from posting.invitations.first_run import COMMAND, MAX_LINKS, describe_first_run
from posting.invitations.models import Invitation
from tests.conftest import PASSWORD, apply
from tests.helpers.assertions import assert_problem, error_locations

URL = "http://127.0.0.1:8000"


def code_of(message):
    return message.rpartition("#")[2]


def sign_up(client, message, username="ada"):
    body = {"username": username, "password": PASSWORD, "invitation": code_of(message)}
    return client.post("/signup", json=body)


def test_the_first_account_is_an_owner(app, anonymous):
    message = describe_first_run(app, URL, with_link=True)
    text, link = message.splitlines()
    assert text.startswith("There is no owner yet. To become the first owner, sign up")
    assert link.startswith(f"{URL}/signup#")
    with app.app_context():
        [invitation] = db.session.scalars(sa.select(Invitation))
        assert timedelta(hours=23) < invitation.expires_at - now() <= timedelta(days=1)
    assert sign_up(anonymous, message).json["role"] == "owner"
    assert sign_up(anonymous, message, "grace").status_code == 422
    assert describe_first_run(app, URL, with_link=True) is None


def test_the_links_of_former_starts_work_until_one_is_used(app, anonymous):
    first, second, third = (describe_first_run(app, URL, with_link=True) for _ in range(3))
    assert sign_up(anonymous, second).json["role"] == "owner"
    for message in (first, second, third):
        assert error_locations(sign_up(anonymous, message, "grace")) == {"/invitation"}
    with app.app_context():
        assert db.session.scalar(sa.select(sa.func.count(Invitation.id))) == 1


def test_many_starts_leave_ten_links(app, anonymous):
    messages = [describe_first_run(app, URL, with_link=True) for _ in range(MAX_LINKS + 1)]
    assert error_locations(sign_up(anonymous, messages[0])) == {"/invitation"}
    assert sign_up(anonymous, messages[1]).json["role"] == "owner"


def test_a_start_deletes_links_that_have_expired_and_no_other_invitation(app, flask):
    flask("invitations", "create")
    describe_first_run(app, URL, with_link=True)
    with app.app_context():
        is_link = Invitation.role == "owner"
        db.session.execute(sa.update(Invitation).where(is_link).values(expires_at=now()))
        db.session.commit()
    describe_first_run(app, URL, with_link=True)
    with app.app_context():
        roles = sorted(db.session.scalars(sa.select(Invitation.role)))
    assert roles == ["member", "owner"]


def test_it_works_after_others_have_signed_up(app, anonymous):
    message = describe_first_run(app, URL, with_link=True)
    others = {"username": "grace", "password": PASSWORD}
    assert anonymous.post("/signup", json=others).json["role"] == "member"
    assert sign_up(anonymous, message).json["role"] == "owner"


@pytest.mark.parametrize("mode", ["approval", "invitation"])
def test_it_needs_no_approval_and_no_other_invitation(make_app, mode):
    app = make_app(SIGNUP=mode)
    created = sign_up(app.test_client(), describe_first_run(app, URL, with_link=True)).json
    assert created["role"] == "owner"
    assert "state" not in created


def test_the_link_ends_when_there_is_a_moderator(app, flask):
    message = describe_first_run(app, URL, with_link=True)
    flask("users", "create", "grace", "--moderator")
    assert error_locations(sign_up(app.test_client(), message)) == {"/invitation"}


def test_it_is_made_until_there_is_an_owner(app, alice):
    apply(app)
    message = describe_first_run(app, URL, with_link=True)
    assert message.startswith("There is no owner yet.")
    assert sign_up(app.test_client(), message).json["role"] == "owner"
    assert describe_first_run(app, URL, with_link=True) is None


@pytest.mark.parametrize("settings", [{"SIGNUP": "closed"}, {"PAGES": "off"}])
def test_without_a_page_to_sign_up_it_is_a_command(make_app, settings):
    app = make_app(**settings)
    assert describe_first_run(app, URL, with_link=True) == COMMAND


def test_logs_that_others_collect_have_no_secret(app):
    assert describe_first_run(app, URL, with_link=False) == COMMAND
    with app.app_context():
        assert db.session.scalar(sa.select(sa.func.count(Invitation.id))) == 0


@pytest.mark.parametrize(
    ("settings", "server", "link"),
    [
        ({"PUBLIC_URL": "https://example.org"}, URL, "https://example.org/signup#"),
        ({"PUBLIC_URL": "https://example.org/a"}, "", "https://example.org/a/signup#"),
        ({}, URL, f"{URL}/signup#"),
    ],
)
def test_the_link_has_the_address_that_is_known(make_app, settings, server, link):
    message = describe_first_run(make_app(**settings), server, with_link=True)
    assert message.splitlines()[1].startswith(link)


def test_without_an_address_of_the_server_it_is_a_command(app):
    assert describe_first_run(app, "", with_link=True) == COMMAND


def test_the_server_starts_if_no_link_can_be_stored(app, monkeypatch):
    def fail(*_, **__):
        raise sa.exc.OperationalError("INSERT", {}, Exception("database is locked"))

    monkeypatch.setattr(first_run, "create_invitation", fail)
    expected = "No link for the first owner can be created (database is locked)."
    assert describe_first_run(app, URL, with_link=True) == expected


@pytest.mark.usefixtures("moderator")
def test_with_moderators_it_is_a_command(app):
    """Nobody else can become an owner with a link then."""
    assert describe_first_run(app, URL, with_link=True) == COMMAND


@pytest.mark.usefixtures("owner")
def test_a_suspended_owner_is_an_owner(app):
    assert describe_first_run(app, URL, with_link=True) is None
    with app.app_context():
        db.session.execute(sa.update(User).values(suspended_at=now()))
        db.session.commit()
    assert describe_first_run(app, URL, with_link=True) is None


def test_an_owners_link_is_not_made_by_the_api(owner):
    response = owner.post("/invitations", json={"role": "owner"})
    assert_problem(response, 422)
