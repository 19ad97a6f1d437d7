"""Checks of what moderators and the service do in time, and a list of all quick checks.

Quick checks read no table as a whole, so a worker can run them for an owner.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import sqlalchemy as sa
from flask import current_app

from posting.accounts.models import User
from posting.db.base import db
from posting.db.types import now
from posting.moderation.models import Report
from posting.ops.doctor import installation, postgres, sqlite
from posting.ops.doctor.findings import (
    QUERY_ERRORS,
    Finding,
    Findings,
    describe_error,
    ok,
    run,
    warning,
)
from posting.outbox.models import Outgoing
from posting.plurals import count

Check = Callable[[sa.Connection], Finding]
MAX_REPORT_AGE = timedelta(days=7)
MAX_DELAY = timedelta(hours=1)  # of what is to be sent
MAX_PAUSE = timedelta(days=1)  # between two attempts to send it
PROMOTE = "Run: flask users promote NAME, or: flask users create NAME --moderator"


def check_entry(connection: sa.Connection) -> Finding:
    """Check that there is a moderator, if there are accounts or only moderators let people in."""
    is_moderator = sa.select(User.id).where(User.is_moderator, User.is_active)
    if connection.scalar(sa.select(is_moderator.exists())):
        return ok("There is a moderator")
    signup, inviters = current_app.config["SIGNUP"], current_app.config["INVITATIONS"]
    if signup == "approval":
        return warning(
            "New accounts need the approval of a moderator, but there is none who is active",
            PROMOTE,
        )
    if signup == "invitation" and inviters == "moderators":
        return warning(
            "New accounts need an invitation of a moderator, but there is none who is active",
            f"{PROMOTE}. An operator can invite people, too: flask invitations create",
        )
    if connection.scalar(sa.select(sa.select(User.id).exists())):
        return warning("No active account is that of a moderator, who looks at reports", PROMOTE)
    return ok("There is no account yet")


def check_reports(connection: sa.Connection) -> Finding:
    """Check that no report has been open for a week."""
    is_open = Report.closed_at.is_(None)
    is_late = sa.and_(is_open, Report.created_at < now() - MAX_REPORT_AGE)
    late = connection.scalar(sa.select(sa.func.count()).where(is_late)) or 0
    if not late:
        return ok("No report has been open for a week")
    return warning(
        f"{count(late, 'report')} of members: open for more than a week",
        "Ask your moderators to look at /moderation, or appoint another moderator: "
        "flask users promote NAME",
    )


def check_outbox(connection: sa.Connection) -> Finding:
    """Check that what is to be sent was sent."""
    number = sa.select(sa.func.count())
    fix = "See why: flask outbox list. To try again: flask outbox retry"
    if failed := connection.scalar(number.where(Outgoing.failed_at.is_not(None))):
        return warning(f"{count(failed, 'item')} to be sent: given up", fix)
    is_late = Outgoing.queued_at < now() - MAX_DELAY
    is_far_off = Outgoing.due_at > now() + MAX_PAUSE  # which a wrong clock has set
    if late := connection.scalar(number.where(sa.or_(is_late, is_far_off))):
        return warning(f"{count(late, 'item')} to be sent: waiting for more than an hour", fix)
    return ok("All that was to be sent in time was sent")


CHECKS = (check_entry, check_reports, check_outbox)
QUICK = (
    installation.check_settings,
    installation.check_own_files,
    installation.check_uploads,
    installation.check_backups,
    sqlite.check_file,
)


def find_problems() -> Findings:
    """Yield what the quick checks find wrong, in a worker of the service."""
    for quick in QUICK:
        yield from _without_ok(quick, run(quick))
    of_engine = postgres.CHECKS if db.engine.dialect.name == "postgresql" else sqlite.QUICK
    for check in (*of_engine, *CHECKS):
        yield from _without_ok(check, [_query(check)])


def _query(check: Check) -> Finding:
    """Return what a check finds, with the time limit of a query."""
    try:
        with db.engine.connect() as connection:
            return check(connection)
    except QUERY_ERRORS as error:
        return describe_error(error, "A query failed", "Run: flask doctor")


def _without_ok(check: Callable[..., Any], findings: Iterable[Finding]) -> Findings:
    """Yield what is wrong, with the name of the check."""
    name = check.__name__.removeprefix("check_")
    wrong = (finding for finding in findings if finding.level != "ok")
    return (replace(finding, check=finding.check or name) for finding in wrong)
