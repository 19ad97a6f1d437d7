"""Check that moderators look at reports."""

from datetime import timedelta

import sqlalchemy as sa

from posting.db.types import now
from posting.moderation.models import Report
from posting.ops.doctor.findings import Finding, ok, warning
from posting.plurals import count

MAX_AGE = timedelta(days=7)


def check(connection: sa.Connection) -> Finding:
    """Check that no report has been open for a week."""
    is_open = Report.closed_at.is_(None)
    is_late = sa.and_(is_open, Report.created_at < now() - MAX_AGE)
    late = connection.scalar(sa.select(sa.func.count()).where(is_late)) or 0
    if not late:
        return ok("No report has been open for a week")
    return warning(
        f"{count(late, 'report')} of members: open for more than a week",
        "Ask your moderators to look at /moderation, or appoint another moderator: "
        "flask users promote NAME",
    )
