"""The table of the outbox."""

from datetime import datetime, timedelta

from sqlalchemy import CheckConstraint, SmallInteger, String
from sqlalchemy.orm import Mapped, mapped_column

from posting.db.base import NOT_ARCHIVED, Base, Identifier, partial_index
from posting.db.types import new_id, now

URGENT, ORDINARY = 0, 1  # for what is urgent, somebody waits


class Outgoing(Base):
    """Something that a channel sends, such as a mail to a member.

    It has neither texts nor addresses. The channel makes the message when it sends it, of what
    holds then, so nothing is sent of what has been deleted or read meanwhile.

    Whoever delivers it sets `due_at` to the end of a lease. If that process is killed, another one
    delivers it after the lease. `turn` never goes back, so a process whose lease has ended is known
    by it. Archives do not contain these rows, since whoever imports one would send everything a
    second time.
    """

    EXPIRES = ("failed_at", timedelta(days=30))

    __tablename__ = "outbox"

    id: Mapped[str] = mapped_column(Identifier, primary_key=True, default=new_id)
    channel: Mapped[str] = mapped_column(String(16))
    kind: Mapped[str] = mapped_column(String(32))  # what it says; the channel knows how to make it
    user_id: Mapped[str | None] = mapped_column(Identifier)  # who receives it
    about: Mapped[str | None] = mapped_column(Identifier)  # such as the id of a notification
    about_at: Mapped[datetime | None] = mapped_column()  # a time that belongs to it
    rank: Mapped[int] = mapped_column(SmallInteger)  # URGENT or ORDINARY
    queued_at: Mapped[datetime] = mapped_column(default=now)
    due_at: Mapped[datetime] = mapped_column(default=now)  # when it is tried next
    is_taken: Mapped[bool] = mapped_column(default=False)  # by a process, until `due_at`
    turn: Mapped[int] = mapped_column(default=0)  # how often it was taken
    attempts: Mapped[int] = mapped_column(default=0)
    tried_since: Mapped[datetime | None] = mapped_column()  # if an operator has let it be retried
    failed_at: Mapped[datetime | None] = mapped_column()  # when it was given up
    error: Mapped[str | None] = mapped_column(String(300))  # why the last attempt failed

    __table_args__ = (
        partial_index(channel, rank, due_at, id, where=failed_at.is_(None)),
        partial_index(failed_at, where=failed_at.is_not(None)),
        partial_index(user_id, where=user_id.is_not(None)),
        CheckConstraint("length(error) <= 300", name="error_length"),
        NOT_ARCHIVED,
    )
