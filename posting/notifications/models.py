"""The tables of notifications, of subscriptions to posts, and of the comments that were seen."""

from datetime import datetime, timedelta

from sqlalchemy import CheckConstraint, ForeignKey, Index, String
from sqlalchemy.orm import Mapped, column_property, mapped_column

from posting.db.base import Base, Identifier, partial_index

MAX_KEPT = 1000  # notifications of a member
READ_LIFETIME = timedelta(days=90)
SEEN_LIFETIME = timedelta(days=365)
ALL, MUTED = LEVELS = ("all", "muted")
# The kinds of notifications. Apps and pages may get others later.
KINDS = (
    *("comment", "reply", "mention", "application", "removal", "report_closed", "report"),
    *("role", "reset_link", "backup", "reaction"),
)
COMMENT, REPLY, MENTION, APPLICATION, REMOVAL, REPORT_CLOSED, REPORT = KINDS[:7]
ROLE, RESET_LINK, BACKUP, REACTION = KINDS[7:]
CONVERSATION = (COMMENT, REPLY, MENTION)
FOR_MODERATORS = (APPLICATION, REPORT)  # a moderator who is demoted loses these


class Notification(Base):
    """A notification tells a member about an event, such as a comment on the member's post.

    It is about a comment, about a post, or about neither. `id` is the same for all recipients.
    `excerpt` is the beginning of a text that no longer exists.

    The recipient and the actor are not foreign keys, because Postgres would lock their accounts: a
    new comment would wait for recipients who sign in, and would fail if a recipient was just
    deleted. `posting.notifications.deletion` deletes the notifications of a deleted account.

    On SQLite, the rows are stored in their primary key, without a table beside it. A list reads
    them one after the other, and a new row writes fewer pages.
    """

    EXPIRES = ("read_at", READ_LIFETIME)

    __tablename__ = "notifications"

    user_id: Mapped[str] = mapped_column(Identifier, primary_key=True)
    created_at: Mapped[datetime] = mapped_column(primary_key=True)
    id: Mapped[str] = mapped_column(Identifier, primary_key=True)
    kind: Mapped[str] = mapped_column(String(32))
    actor_id: Mapped[str | None] = mapped_column(Identifier)
    post_id: Mapped[str | None] = mapped_column(
        Identifier, ForeignKey("posts.id", ondelete="CASCADE")
    )
    comment_id: Mapped[str | None] = mapped_column(
        Identifier, ForeignKey("comments.id", ondelete="CASCADE")
    )
    reason: Mapped[str | None] = mapped_column(String(500))
    excerpt: Mapped[str | None] = mapped_column(String(300))
    read_at: Mapped[datetime | None] = mapped_column()

    read: Mapped[bool] = column_property(read_at.is_not(None))

    __table_args__ = (
        # With `read_at`, because SQLite would read the table for it, although it is always null.
        partial_index(
            *(user_id, created_at, id, read_at),
            where=read_at.is_(None),
            name="ix_notifications_unread",
        ),
        partial_index(read_at, where=read_at.is_not(None)),
        partial_index(actor_id, where=actor_id.is_not(None)),
        partial_index(post_id, user_id, where=post_id.is_not(None)),
        partial_index(comment_id, user_id, where=comment_id.is_not(None)),
        CheckConstraint("length(kind) BETWEEN 1 AND 32", name="kind_length"),
        CheckConstraint("post_id IS NULL OR comment_id IS NULL", name="subject"),
        CheckConstraint("length(reason) <= 500", name="reason_length"),
        CheckConstraint("length(excerpt) <= 300", name="excerpt_length"),
        {"sqlite_with_rowid": False},
    )


class Subscription(Base):
    """The choice of a member about a post: notifications of all comments, or of none.

    Without a row, a member is notified of comments on their own posts, of replies and of mentions.
    """

    __tablename__ = "subscriptions"

    post_id: Mapped[str] = mapped_column(
        Identifier, ForeignKey("posts.id", ondelete="CASCADE"), primary_key=True
    )
    user_id: Mapped[str] = mapped_column(
        Identifier, ForeignKey("users.id", ondelete="CASCADE"), primary_key=True
    )
    level: Mapped[str] = mapped_column(String(8))

    __table_args__ = (
        Index(None, user_id),
        CheckConstraint("level IN ('all', 'muted')", name="level"),
        {"sqlite_with_rowid": False},
    )


class Seen(Base):
    """The comments on a post that a member has seen.

    All comments up to `until` count as seen: it is the time of the comment `up_to`, or of the post
    if `up_to` is null. The comment may have been deleted since.
    """

    EXPIRES = ("seen_at", SEEN_LIFETIME)

    __tablename__ = "seen"

    post_id: Mapped[str] = mapped_column(
        Identifier, ForeignKey("posts.id", ondelete="CASCADE"), primary_key=True
    )
    user_id: Mapped[str] = mapped_column(
        Identifier, ForeignKey("users.id", ondelete="CASCADE"), primary_key=True
    )
    up_to: Mapped[str | None] = mapped_column(Identifier)
    until: Mapped[datetime] = mapped_column()
    seen_at: Mapped[datetime] = mapped_column()

    __table_args__ = (Index(None, user_id), Index(None, seen_at), {"sqlite_with_rowid": False})
