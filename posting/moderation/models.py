"""The tables of reports, and of the acts of moderators."""

from datetime import datetime, timedelta

from sqlalchemy import CheckConstraint, Index, String, case
from sqlalchemy.orm import Mapped, column_property, mapped_column

from posting.db.base import Base, Identifier, partial_index
from posting.db.types import new_id, now

POST, COMMENT, USER = "post", "comment", "user"
DISMISSED, REMOVED, SUSPENDED = OUTCOMES = ("dismissed", "removed", "suspended")
OPEN, CLOSED = STATES = ("open", "closed")


class Report(Base):
    """A report of a post, a comment or an account to the moderators.

    A report outlives its target, so it keeps a copy of what was reported, and has no foreign keys.
    """

    EXPIRES = ("closed_at", timedelta(days=365))

    __tablename__ = "reports"

    id: Mapped[str] = mapped_column(Identifier, primary_key=True, default=new_id)
    reporter_id: Mapped[str] = mapped_column(Identifier)
    target_kind: Mapped[str] = mapped_column(String(8))
    target_id: Mapped[str] = mapped_column(Identifier)
    post_id: Mapped[str | None] = mapped_column(Identifier)  # the post itself, or of the comment
    author_id: Mapped[str | None] = mapped_column(Identifier)  # or the account itself
    excerpt: Mapped[str] = mapped_column(String(300))
    target_updated_at: Mapped[datetime] = mapped_column()
    reason: Mapped[str] = mapped_column(String(1000))
    outcome: Mapped[str | None] = mapped_column(String(16))  # null while the report is open
    note: Mapped[str | None] = mapped_column(String(500))
    created_at: Mapped[datetime] = mapped_column(default=now)
    closed_at: Mapped[datetime | None] = mapped_column()
    closed_by_id: Mapped[str | None] = mapped_column(Identifier)

    state: Mapped[str] = column_property(case((closed_at.is_(None), OPEN), else_=CLOSED))

    __table_args__ = (
        partial_index(created_at, id, where=closed_at.is_(None)),
        partial_index(closed_at, id, where=closed_at.is_not(None)),
        Index(
            "uq_reports_open",
            reporter_id,
            target_kind,
            target_id,
            unique=True,
            sqlite_where=closed_at.is_(None),
            postgresql_where=closed_at.is_(None),
        ),
        partial_index(target_id, where=closed_at.is_(None)),
        partial_index(post_id, where=closed_at.is_(None)),
        Index(None, reporter_id, created_at),
        Index(None, author_id, closed_at),
        CheckConstraint("target_kind IN ('post', 'comment', 'user')", name="target_kind"),
        CheckConstraint("length(excerpt) <= 300", name="excerpt_length"),
        CheckConstraint("length(reason) BETWEEN 1 AND 1000", name="reason_length"),
        CheckConstraint("outcome IN ('dismissed', 'removed', 'suspended')", name="outcome"),
        CheckConstraint("(closed_at IS NULL) = (outcome IS NULL)", name="closed"),
        CheckConstraint("length(note) <= 500", name="note_length"),
    )


class Act(Base):
    """An entry of the moderation log: what a moderator or operator did to another user.

    It outlives the content and the accounts that it names, so it has no foreign keys.
    """

    __tablename__ = "acts"

    id: Mapped[str] = mapped_column(Identifier, primary_key=True, default=new_id)
    moderator: Mapped[str] = mapped_column(String(32))  # the name at that time, or "operator"
    moderator_id: Mapped[str | None] = mapped_column(Identifier)  # null for an operator
    action: Mapped[str] = mapped_column(String(16))
    target_kind: Mapped[str] = mapped_column(String(16))
    target_id: Mapped[str] = mapped_column(Identifier)
    user_id: Mapped[str | None] = mapped_column(Identifier)  # the author, or the account itself
    reason: Mapped[str | None] = mapped_column(String(500))
    created_at: Mapped[datetime] = mapped_column(default=now)

    __table_args__ = (
        Index(None, created_at, id),
        Index(None, user_id, created_at, id),
        CheckConstraint("length(reason) <= 500", name="reason_length"),
    )
