"""The SQL of reports: lists, creation and closing, and the notifications about removals."""

from collections.abc import Collection
from datetime import datetime, timedelta
from functools import cache
from typing import Any

import sqlalchemy as sa
from flask import current_app, has_request_context
from sqlalchemy.orm import aliased
from werkzeug.exceptions import Conflict

from posting.accounts.current_user import current_user
from posting.accounts.models import User
from posting.accounts.schemas import Author
from posting.comments.models import Comment
from posting.config import Rate
from posting.db.base import Identifier, db, upsert
from posting.db.purge import purge_expired
from posting.db.transactions import execute, fetch_all, fetch_one, fetch_value
from posting.db.types import UtcDateTime, new_id, now
from posting.moderation import schemas
from posting.moderation.models import COMMENT, DISMISSED, OPEN, POST, REMOVED, USER, Report
from posting.notifications.models import REMOVAL, REPORT, REPORT_CLOSED
from posting.notifications.telling import MODERATORS, notify
from posting.posts.models import DELETED_POSTS, Post
from posting.web.errors import Coded, NoSuch
from posting.web.limits import LimitReached
from posting.web.pagination import Page, paginate
from posting.web.schemas import Item, columns, nested_columns, to_item
from posting.webhooks.models import REPORT_CREATED
from posting.webhooks.store import announce

JUDGED = 20  # reports: if the last twenty of a member were all dismissed, the limit is lower
LOWER_LIMIT = Rate(5, "hour")
CLOSED_AT_ONCE = 10_000  # reports in one statement, because databases limit its parameters
_TARGET = [name for name in schemas.Target._declared_fields if name not in schemas.Target.computed]

_reporter, _author_of, _closer, _member = (aliased(User) for _ in range(4))
# When the target was last changed. Null if it was deleted, even if its place is kept for replies.
_changed_at = sa.func.coalesce(
    Post.updated_at, Comment.updated_at, _member.updated_at, type_=UtcDateTime()
)
_REPORTS = (
    sa.select(
        *columns(schemas.Report, Report, without=["reporter", "closed_by"]),
        *nested_columns("reporter", Author, _reporter),
        *nested_columns("closed_by", Author, _closer),
        Report.target_kind.label("target_kind"),
        Report.target_id.label("target_id"),
        Report.post_id,
        *nested_columns("author", Author, _author_of),
        Report.excerpt,
        _changed_at.is_not(None).label("exists"),
        sa.func.coalesce(_changed_at != Report.target_updated_at, sa.false()).label("edited"),
    )
    .outerjoin(_reporter, _reporter.id == Report.reporter_id)
    .outerjoin(_closer, _closer.id == Report.closed_by_id)
    .outerjoin(_author_of, _author_of.id == Report.author_id)
    .outerjoin(
        Post,
        sa.and_(Report.target_kind == POST, Post.id == Report.target_id, Post.deleted_at.is_(None)),
    )
    .outerjoin(
        Comment,
        sa.and_(
            Report.target_kind == COMMENT,
            Comment.id == Report.target_id,
            Comment.content.is_not(None),
            Comment.post_id.not_in(DELETED_POSTS),
        ),
    )
    .outerjoin(_member, sa.and_(Report.target_kind == USER, _member.id == Report.target_id))
)
_OPEN = _REPORTS.where(Report.closed_at.is_(None))
_CLOSED = _REPORTS.where(Report.closed_at.is_not(None))
_REPORT = _REPORTS.where(Report.id == sa.bindparam("id"))
# The moderators, except one who is reported.
_JUDGES = MODERATORS.where(User.id.is_distinct_from(sa.bindparam("author", type_=Identifier)))
_AUTHOR = sa.select(User.id, sa.literal(REMOVAL).label("kind")).where(
    User.id == sa.bindparam("author")
)
# Each reporter once, with one of the texts, if several of their reports are closed together.
_REPORTERS = (
    sa.select(
        User.id,
        sa.literal(REPORT_CLOSED).label("kind"),
        sa.func.min(Report.excerpt).label("excerpt"),
    )
    .join(Report, Report.reporter_id == User.id)
    .where(
        Report.id.in_(sa.bindparam("closed", expanding=True)),
        User.id.is_distinct_from(sa.bindparam("closer", type_=Identifier)),
    )
    .group_by(User.id)
)


class NoSuchReport(NoSuch, thing="report"):
    pass


class AlreadyReported(Coded, Conflict):
    error_code = "already_reported"
    description = "You have reported this already, and moderators have not decided yet."


def list_reports(state: str, *, limit: int, cursor: str | None) -> Page:
    """Return a page of the reports that are open, oldest first, or of those that are closed."""
    are_open = state == OPEN
    page = paginate(
        _OPEN if are_open else _CLOSED,
        limit=limit,
        cursor=cursor,
        name=f"{state}_reports",
        time="created_at" if are_open else "closed_at",
        newest_first=not are_open,
    )
    return Page([_nest_target(report) for report in page.items], page.next_cursor)


def get_report(id: str) -> Item:
    """Return a report. Raise NoSuchReport."""
    row = fetch_one(_REPORT, id=id)
    if row is None:
        raise NoSuchReport
    return _nest_target(to_item(row))


def _nest_target(report: Item) -> Item:
    """Move the columns of a report's target into the object `target`."""
    report["kind"] = report.pop("target_kind")
    own_id, report["id"] = report["id"], report.pop("target_id")
    target = {name: report.pop(name) for name in _TARGET}
    return {"id": own_id, **report, "target": target}


def count_reports_on(user_id: str, *, are_open: bool) -> int:
    """Return how many reports there are on a user or on what the user wrote."""
    is_open = Report.closed_at.is_(None)
    count: int = fetch_value(
        sa.select(sa.func.count()).where(
            Report.author_id == user_id, is_open if are_open else ~is_open
        )
    )
    return count


def has_other_moderator(id: str) -> bool:
    """Return whether there is another active moderator than the one with this id."""
    others = sa.select(User.id).where(User.is_moderator, User.is_active, User.id != id)
    return fetch_one(others.limit(1)) is not None


def count_open_reports(most: int | None = None) -> int:
    """Return how many reports are open, or `most` if there are more."""
    reports = sa.select(Report.id).where(Report.closed_at.is_(None)).limit(most)
    count: int = fetch_value(sa.select(sa.func.count()).select_from(reports.subquery()))
    return count


def insert_report(
    reporter_id: str,
    kind: str,
    id: str,
    *,
    post_id: str | None,
    author_id: str | None,
    excerpt: str,
    updated_at: datetime,
    reason: str,
) -> str:
    """Insert a report of an exclusively locked account on a locked target, and return its id.

    Raise 409 if the member has an open report on it, and 429 if the member has reached the lower
    limit.
    """
    _refuse_many_dismissed(reporter_id)
    report_id = new_id()
    inserted = execute(
        _insert(db.engine.dialect.name),
        id=report_id,
        reporter_id=reporter_id,
        target_kind=kind,
        target_id=id,
        post_id=post_id,
        author_id=author_id,
        excerpt=excerpt,
        target_updated_at=updated_at,
        reason=reason,
        created_at=now(),
    )
    if not inserted.all():
        raise AlreadyReported
    notify(
        _JUDGES,
        actor_id=reporter_id,
        kind=REPORT,
        author=author_id,
        post_id=id if kind == POST else None,
        comment_id=id if kind == COMMENT else None,
        reason=reason[:500],
        excerpt=excerpt,
    )
    announce(REPORT_CREATED, report_id)
    purge_expired(Report)
    return report_id


@cache
def _insert(dialect: str) -> Any:
    """Return the INSERT of a report, which does nothing if the same report is open."""
    return upsert(Report, dialect).on_conflict_do_nothing().returning(Report.id)


def _refuse_many_dismissed(reporter_id: str) -> None:
    """Raise 429 if a member's last twenty reports were dismissed, and five are of this hour."""
    if not current_app.config["RATE_LIMITS"]:
        return
    own = sa.select(Report.outcome, Report.created_at).where(Report.reporter_id == reporter_id)
    latest = own.order_by(Report.created_at.desc())
    closed = fetch_all(latest.where(Report.closed_at.is_not(None)).limit(JUDGED))
    if len(closed) < JUDGED or any(report.outcome != DISMISSED for report in closed):
        return
    time = now()
    # Not those from the future, when the clock was wrong: the limit would last until then.
    is_recent = Report.created_at.between(time - LOWER_LIMIT.window, time)
    recent = fetch_all(latest.where(is_recent).limit(LOWER_LIMIT.amount))
    if len(recent) == LOWER_LIMIT.amount:
        left = recent[-1].created_at + LOWER_LIMIT.window - time
        raise LimitReached(LOWER_LIMIT, seconds=max(1, left // timedelta(seconds=1)))


def close_reports(
    condition: sa.ColumnElement[bool], outcome: str, *, note: str | None, closer_id: str | None
) -> int:
    """Close the open reports that match a condition, and notify their reporters.

    Return how many reports these were. Moderators are not notified of their own decisions. An
    operator has no `closer_id`.
    """
    is_open = sa.select(Report.id).where(Report.closed_at.is_(None), condition)
    update = (
        sa.update(Report)
        .where(Report.id.in_(is_open.order_by(Report.id).with_for_update()))
        .values(outcome=outcome, note=note, closed_at=now(), closed_by_id=closer_id)
    )
    closed = execute(update.returning(Report.id)).scalars().all()
    for start in range(0, len(closed), CLOSED_AT_ONCE):
        ids = closed[start : start + CLOSED_AT_ONCE]
        notify(_REPORTERS, actor_id=None, reason=note, closed=ids, closer=closer_id)
    return len(closed)


def close_report(id: str, outcome: str, *, note: str | None, closer_id: str) -> bool:
    """Close a report as `close_reports` does, and return whether it was open."""
    return bool(close_reports(Report.id == id, outcome, note=note, closer_id=closer_id))


def close_reports_on_account(id: str, outcome: str, closer_id: str) -> None:
    """Close the reports on an account itself."""
    is_on_account = sa.and_(Report.target_kind == USER, Report.target_id == id)
    close_reports(is_on_account, outcome, note=None, closer_id=closer_id)


def close_reports_on_posts(ids: Collection[str]) -> None:
    """Close the reports on posts that are deleted, and on their comments."""
    _close_as_removed(Report.post_id.in_(ids))


def close_reports_on_comments(ids: Collection[str]) -> None:
    """Close the reports on comments that are deleted."""
    _close_as_removed(sa.and_(Report.target_kind == COMMENT, Report.target_id.in_(ids)))


def _close_as_removed(condition: sa.ColumnElement[bool]) -> None:
    """Close reports unless an author deletes their own text: moderators should still see these."""
    if not has_request_context():
        close_reports(condition, REMOVED, note=None, closer_id=None)
    elif current_user.is_moderator:
        is_others = Report.author_id.is_distinct_from(current_user.id)
        condition = sa.and_(condition, is_others)
        close_reports(condition, REMOVED, note=None, closer_id=current_user.id)


def notify_of_removal(
    author_id: str | None,
    reason: str | None,
    *,
    excerpt: str | None = None,
    post_id: str | None = None,
) -> None:
    """Notify the author of a text, or of everything they have written, that it is removed."""
    if author_id:
        notify(
            _AUTHOR,
            actor_id=None,
            post_id=post_id,
            reason=reason,
            excerpt=excerpt,
            author=author_id,
        )
