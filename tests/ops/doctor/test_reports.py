"""Open reports that have waited too long for a decision."""

from datetime import timedelta

import sqlalchemy as sa

from posting.db.base import db
from posting.db.types import now
from posting.moderation.models import Report
from tests.conftest import report
from tests.helpers.doctor import GOOD, only_problem, problems


def age(app, **changes):
    with app.app_context():
        db.session.execute(sa.update(Report).values(created_at=now() - timedelta(**changes)))
        db.session.commit()


def test_one_that_has_been_open_for_a_week_is_a_warning(make_app, alice, moderator, post):
    app, comment = make_app(**GOOD), alice.add_comment(post, "Buy cloth!")
    id = report(alice, comment)
    age(app, days=6, hours=23)
    assert problems(app) == []
    age(app, days=7, minutes=1)
    fix = only_problem(app, "warning", "1 report of members: open for more than a week")
    assert "/moderation" in fix
    assert moderator.patch(f"/reports/{id}", json={"outcome": "dismissed"}).status_code == 200
    assert problems(app) == []
