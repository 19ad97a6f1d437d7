"""The table of devices that get notifications by web push."""

from datetime import datetime

from sqlalchemy import CheckConstraint, ForeignKey, String
from sqlalchemy.orm import Mapped, mapped_column

from posting.db.base import NOT_ARCHIVED, Base, Identifier
from posting.db.types import new_id, now
from posting.outbound import MAX_URL

PUSH = "push"  # the channel of the outbox
DEVICES_PER_MEMBER = 10


class PushSubscription(Base):
    """A browser that gets notifications of a member, at the URL of its push service.

    It ends with the session in which the member has turned notifications on.

    Archives do not contain these rows, since a browser accepts pushes of one key only, which is
    that of the database.
    """

    __tablename__ = "push_subscriptions"

    id: Mapped[str] = mapped_column(Identifier, primary_key=True, default=new_id)
    user_id: Mapped[str] = mapped_column(
        Identifier, ForeignKey("users.id", ondelete="CASCADE"), index=True
    )
    session_id: Mapped[str] = mapped_column(
        Identifier, ForeignKey("sessions.id", ondelete="CASCADE"), index=True
    )
    endpoint: Mapped[str] = mapped_column(String(MAX_URL), unique=True)
    p256dh: Mapped[str] = mapped_column(String(87))  # the public key of the browser
    auth: Mapped[str] = mapped_column(String(22))  # a secret that it shares with this service
    created_at: Mapped[datetime] = mapped_column(default=now)
    failing_since: Mapped[datetime | None] = mapped_column()
    resumes_at: Mapped[datetime | None] = mapped_column()  # nothing is sent before

    __table_args__ = (
        CheckConstraint("length(endpoint) <= 1000", name="endpoint_length"),
        NOT_ARCHIVED,
    )
