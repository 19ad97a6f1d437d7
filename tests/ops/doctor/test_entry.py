"""A community without a moderator."""

import pytest
import sqlalchemy as sa

from posting.accounts.models import User
from posting.db.base import db
from posting.db.types import now
from tests.helpers.doctor import GOOD, only_problem, problems


@pytest.fixture(params=["approval", "invitation"])
def settings(request):
    """Settings by which only moderators let people in."""
    return GOOD | {"SIGNUP": request.param}


def test_without_a_moderator_nobody_lets_people_in(make_app, alice, settings):
    fix = only_problem(make_app(**settings), "warning", "of a moderator, but there is none who")
    assert fix.startswith("Run: flask users promote NAME, or: flask users create NAME --moderator")
    assert ("flask invitations create" in fix) == (settings["SIGNUP"] == "invitation")


@pytest.mark.parametrize("state", [{"suspended_at": now()}, {"pending_since": now()}])
def test_only_an_active_moderator_counts(make_app, moderator, settings, state):
    app = make_app(**settings)
    assert problems(app) == []
    with app.app_context():
        db.session.execute(sa.update(User).values(**state))
        db.session.commit()
    only_problem(app, "warning", "there is none who is active")


@pytest.mark.parametrize(
    "others",
    [{"SIGNUP": "open"}, {"SIGNUP": "closed"}, {"SIGNUP": "invitation", "INVITATIONS": "members"}],
)
def test_without_a_moderator_no_reports_are_looked_at(make_app, sign_in, others):
    app = make_app(**GOOD | others)
    assert problems(app) == []  # there is no account yet
    sign_in("alice")
    fix = only_problem(app, "warning", "No active account is that of a moderator")
    assert fix.startswith("Run: flask users promote NAME")
    sign_in("alice", role="moderator")
    assert problems(app) == []
