"""The tables of webhooks, and of what is delivered to them."""

from datetime import datetime, timedelta

from sqlalchemy import CheckConstraint, ForeignKey, Index, SmallInteger, String
from sqlalchemy.orm import Mapped, mapped_column

from posting.db.base import NOT_ARCHIVED, Base, Identifier
from posting.db.types import new_id, now
from posting.outbound import MAX_URL

WEBHOOK = "webhook"  # the channel of the outbox
CREATED = "webhook.created"  # the first event of each webhook, by which it can be tried
COMMENT_EDITED, COMMENT_DELETED = "comment.edited", "comment.deleted"
REPORT_CREATED, APPLICATION_CREATED = "report.created", "application.created"
EVENTS = (
    *("post.created", "post.edited", "post.deleted"),
    *("comment.created", COMMENT_EDITED, COMMENT_DELETED),
    *(REPORT_CREATED, APPLICATION_CREATED),
)
WEBHOOKS_PER_OWNER = 10


class Webhook(Base):
    """A URL to which events are sent.

    It ends with the account of the owner who has created it. While that account is suspended or is
    not an owner, nothing is sent.
    """

    __tablename__ = "webhooks"

    id: Mapped[str] = mapped_column(Identifier, primary_key=True, default=new_id)
    creator_id: Mapped[str] = mapped_column(
        Identifier, ForeignKey("users.id", ondelete="CASCADE"), index=True
    )
    url: Mapped[str] = mapped_column(String(MAX_URL))
    events: Mapped[str] = mapped_column(String(200))  # separated by spaces
    secret: Mapped[str] = mapped_column(String(64))  # not a hash, since it signs
    cursor: Mapped[str] = mapped_column(String(64))  # how far it has followed the changes
    created_at: Mapped[datetime] = mapped_column(default=now)
    failing_since: Mapped[datetime | None] = mapped_column()
    resumes_at: Mapped[datetime | None] = mapped_column()  # nothing is sent before
    ended_at: Mapped[datetime | None] = mapped_column()  # nothing is sent any more

    __table_args__ = (
        Index(None, created_at, id),
        CheckConstraint("length(url) <= 1000", name="url_length"),
        CheckConstraint("length(events) <= 200", name="events_length"),
        CheckConstraint("length(secret) <= 64", name="secret_length"),
        CheckConstraint("length(cursor) <= 64", name="cursor_length"),
    )


class Delivery(Base):
    """An event for a webhook, and what became of it. The outbox has a row for it until it is sent.

    Archives do not contain these rows, as they do not contain the outbox.
    """

    EXPIRES = ("created_at", timedelta(days=30))

    __tablename__ = "deliveries"

    id: Mapped[str] = mapped_column(Identifier, primary_key=True, default=new_id)
    webhook_id: Mapped[str] = mapped_column(
        Identifier, ForeignKey("webhooks.id", ondelete="CASCADE")
    )
    event: Mapped[str] = mapped_column(String(32))
    object_id: Mapped[str] = mapped_column(Identifier)
    post_id: Mapped[str | None] = mapped_column(Identifier)
    happened_at: Mapped[datetime] = mapped_column()
    created_at: Mapped[datetime] = mapped_column(default=now)
    attempts: Mapped[int] = mapped_column(default=0)
    delivered_at: Mapped[datetime | None] = mapped_column()
    status: Mapped[int | None] = mapped_column(SmallInteger)  # of the last response
    error: Mapped[str | None] = mapped_column(String(300))  # why the last attempt failed

    __table_args__ = (
        Index(None, webhook_id, created_at, id),
        Index(None, created_at),
        CheckConstraint("length(error) <= 300", name="error_length"),
        NOT_ARCHIVED,
    )
