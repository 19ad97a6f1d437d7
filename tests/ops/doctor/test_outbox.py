"""What could not be sent."""

from datetime import timedelta

import pytest
import sqlalchemy as sa

from posting.db.base import db
from posting.db.transactions import unit_of_work
from posting.db.types import now
from posting.outbox import store
from posting.outbox.models import Outgoing
from tests.helpers.doctor import GOOD, only_problem, problems

FIX = "See why: flask outbox list. To try again: flask outbox retry"


@pytest.fixture
def app_with_one(make_app):
    """An app with something in its outbox."""
    app = make_app(**GOOD)
    with app.app_context(), unit_of_work():
        store.enqueue("mail", "x")
    return app


def test_what_has_just_been_added_is_ok(app_with_one):
    assert problems(app_with_one) == []


def test_what_was_given_up_is_a_warning(app_with_one):
    with app_with_one.app_context():
        db.session.execute(sa.update(Outgoing).values(failed_at=now()))
        db.session.commit()
    assert only_problem(app_with_one, "warning", "1 item to be sent: given up") == FIX


@pytest.mark.parametrize(
    "values",
    [
        {"queued_at": now() - timedelta(hours=2)},
        {"due_at": now() + timedelta(days=40)},  # the clock was wrong
    ],
)
def test_what_is_late_is_a_warning(app_with_one, values):
    with app_with_one.app_context():
        db.session.execute(sa.update(Outgoing).values(**values))
        db.session.commit()
    found = "1 item to be sent: waiting for more than an hour"
    assert only_problem(app_with_one, "warning", found) == FIX
