"""The statements that read reports and the log."""

import sqlalchemy as sa
from sqlalchemy.orm import aliased

from posting.accounts.models import SUSPENDED, Act, User
from posting.accounts.queries import find_details
from posting.accounts.schemas import Author
from posting.comments.models import Comment
from posting.db.transactions import fetch_one, fetch_value
from posting.db.types import Rfc3339Text, UtcDateTime
from posting.moderation import schemas
from posting.moderation.models import COMMENT, POST, USER, Report
from posting.posts.models import DELETED_POSTS, Post
from posting.web.problems import NoSuch
from posting.web.rows import Item, columns, nested_columns, to_item

TARGET = tuple(schemas.Target._declared_fields)


class NoSuchReport(NoSuch, thing="report"):
    pass


_reporter, _author_of, _closer, _member = (aliased(User) for _ in range(4))
# When the target was last changed. Null if it was deleted, also if its place is kept for replies.
_changed_at = sa.func.coalesce(
    Post.updated_at, Comment.updated_at, _member.updated_at, type_=UtcDateTime()
)
REPORTS = (
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
OPEN_REPORTS = REPORTS.where(Report.closed_at.is_(None))
CLOSED_REPORTS = REPORTS.where(Report.closed_at.is_not(None))
_REPORT = REPORTS.where(Report.id == sa.bindparam("id"))

_moderator, _user = aliased(User), aliased(User)
ACTS = (
    sa.select(
        Act.id,
        sa.type_coerce(Act.created_at, Rfc3339Text()).label("created_at"),
        Act.action,
        Act.moderator.label("by"),
        *nested_columns("moderator", Author, _moderator),
        Act.target_id.label("target"),
        Act.target_kind.label("target.kind"),
        *nested_columns("user", Author, _user),
        Act.reason,
    )
    .select_from(Act)
    .outerjoin(_moderator, _moderator.id == Act.moderator_id)
    .outerjoin(_user, _user.id == Act.user_id)
)
ACTS_ON_USER = ACTS.where(Act.user_id == sa.bindparam("user"))


def find_suspension(id: str) -> Item | None:
    """Return the suspension of an account, if it is suspended."""
    account = find_details(id)
    return account and suspension_of(account)


def suspension_of(account: Item) -> Item | None:
    """Return the suspension of an account, of which the details are given."""
    if account["state"] != SUSPENDED:
        return None
    return {
        "reason": account["suspension_reason"],
        "since": account["suspended_at"],
        "until": account["suspended_until"],
    }


def get_report(id: str) -> Item:
    """Return a report. Raise NoSuchReport."""
    row = fetch_one(_REPORT, id=id)
    if row is None:
        raise NoSuchReport
    return nest_target(to_item(row))


def nest_target(report: Item) -> Item:
    """Move the columns of a report's target into the object `target`."""
    report["kind"] = report.pop("target_kind")
    own_id, report["id"] = report["id"], report.pop("target_id")
    target = {name: report.pop(name) for name in TARGET}
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
    """Return whether there is an active moderator besides the one with this id."""
    others = sa.select(User.id).where(User.is_moderator, User.is_active, User.id != id)
    return fetch_one(others.limit(1)) is not None


def count_open_reports() -> int:
    """Return how many reports are open."""
    count: int = fetch_value(sa.select(sa.func.count()).where(Report.closed_at.is_(None)))
    return count
