"""Expired rows are deleted, but not because a clock jumps."""

from datetime import timedelta

import pytest
import sqlalchemy as sa

from posting.accounts.models import APPLICATION_LIFETIME, ResetLink, Session, Token, User
from posting.accounts.recovery import create_link
from posting.accounts.store import create_account, insert_user
from posting.accounts.tokens import create_token
from posting.db.epoch import Epoch
from posting.db.purge import MAX_STEP, purge_expired, trusted_now
from posting.db.transactions import fetch_all, fetch_value, transaction, unit_of_work
from posting.db.types import now
from posting.invitations.models import Invitation
from posting.invitations.store import create_invitation
from posting.moderation.models import Report
from posting.moderation.store import close_reports
from posting.notifications.models import Notification
from tests.conftest import POSTGRES
from tests.helpers.clock import shifted_clock

HALF_A_DAY = timedelta(hours=12)


@pytest.fixture(autouse=True)
def context(app):
    """Let nothing read the clock before it jumps, as after an import."""
    with app.app_context():
        yield


def trusted():
    """Return by how much the time of expiry is ahead of the clock."""
    with unit_of_work():
        time = trusted_now()
    return time - now()


def is_near(duration, **expected):
    return abs(duration - timedelta(**expected)) < timedelta(minutes=5)


def test_rows_expire_by_the_clock_while_the_service_is_used():
    for hours in range(0, 24 * 5, 7):
        with shifted_clock(hours=hours):
            assert is_near(trusted(), hours=0)


@pytest.mark.parametrize("days", [3, 40, 4000])
def test_a_jump_moves_it_by_two_days(days):
    with shifted_clock(days=days):
        assert is_near(trusted(), days=2 - days)
    assert is_near(trusted(), days=0)


def test_many_writes_with_a_wrong_clock_move_it_once():
    for minutes in range(0, 600, 10):
        with shifted_clock(days=40, minutes=minutes):
            assert trusted() < timedelta(days=-37)


def test_many_jumps_do_not_add_up():
    for _ in range(30):
        with shifted_clock(days=40):
            assert is_near(trusted(), days=2 - 40)
        assert is_near(trusted(), days=0)


@pytest.mark.parametrize("days", [-1, -40, -20_000])
def test_a_clock_that_was_behind_changes_nothing(days):
    """As after the start of a machine without a battery."""
    with shifted_clock(days=days):
        assert is_near(trusted(), days=0)
    assert trusted() > -MAX_STEP


def test_it_catches_up_after_a_pause():
    lags = []
    for day in range(40, 90):
        with shifted_clock(days=day, seconds=day - 40):
            lags.append(-trusted())
    for day, lag in enumerate(lags):
        assert is_near(lag, days=max(0, 38 - day))


def pending_names():
    return {row.username for row in fetch_all(sa.select(User.username).where(User.is_pending))}


def add_application(username, age):
    with unit_of_work():
        insert_user(username=username, password_hash="x", pending_since=now() - age)


def sign_up(username):
    with unit_of_work():
        create_account(username=username, password_hash="x")


@pytest.mark.parametrize("age", [timedelta(0), APPLICATION_LIFETIME - HALF_A_DAY])
def test_a_jump_deletes_no_application(age):
    add_application("hopeful", age)
    for minutes in range(5):
        with shifted_clock(days=40, minutes=minutes):
            sign_up(f"member-{minutes}")
    assert pending_names() == {"hopeful"}


def test_an_application_is_deleted_after_its_time():
    add_application("early", APPLICATION_LIFETIME + MAX_STEP - HALF_A_DAY)
    add_application("late", APPLICATION_LIFETIME + MAX_STEP + HALF_A_DAY)
    sign_up("member")
    assert pending_names() == {"early"}


@pytest.mark.usefixtures("moderator")
def test_a_jump_deletes_nothing_else(app, alice, bob):
    """Neither sessions, tokens and invitations that are valid, nor what is kept for a while."""
    post = alice.create_post("On engines")
    bob.add_comment(post, "And cloth?")
    [notification] = alice.get("/notifications").json
    alice.post("/notifications/read", json={"up_to": notification["id"]})
    bob.post(f"/posts/{post['id']}/reports", json={"reason": "Why?"})
    with unit_of_work():
        close_reports(sa.true(), "dismissed", note=None, closer_id=None)
        create_invitation(alice.user["id"])
        create_link(alice.user["id"], timedelta(days=3))
        create_token(alice.user["id"], "A program", "read")
    models = (Invitation, Notification, Report, ResetLink, Session, Token)
    before = [count(model) for model in models]
    assert all(before)
    with shifted_clock(days=400), unit_of_work():
        for model in models:
            purge_expired(model)
    assert [count(model) for model in models] == before


def count(model):
    return fetch_value(sa.select(sa.func.count()).select_from(model))


@pytest.mark.skipif(not POSTGRES, reason="SQLite has one writer at a time")
def test_it_is_not_moved_while_another_transaction_moves_it():
    with transaction() as other:
        other.execute(sa.select(Epoch.id).with_for_update())
        with shifted_clock(days=1, minutes=1):
            assert is_near(trusted(), days=-1)
