"""The tables of invitations."""

from datetime import datetime, timedelta

from sqlalchemy import CheckConstraint, ForeignKey, Index, String
from sqlalchemy.orm import Mapped, mapped_column, relationship

from posting.accounts.models import MEMBER, User
from posting.db.base import Base, Identifier
from posting.db.types import new_id, now

OPEN_PER_USER = 50
MAX_USES = 100
MAX_LIFETIME = timedelta(days=90)
LIFETIME = timedelta(days=14)  # unless the request has another


class Invitation(Base):
    """An invitation by which some people may sign up until it expires.

    One of an operator has no creator. It stays in lists for a while after it has expired.
    """

    EXPIRES = ("expires_at", timedelta(days=30))

    __tablename__ = "invitations"

    id: Mapped[str] = mapped_column(Identifier, primary_key=True, default=new_id)
    created_by_id: Mapped[str | None] = mapped_column(
        Identifier, ForeignKey("users.id", ondelete="CASCADE")
    )
    secret_hash: Mapped[str] = mapped_column(String(64))
    note: Mapped[str | None] = mapped_column(String(100))
    role: Mapped[str] = mapped_column(String(16), default=MEMBER)  # of the new account
    uses: Mapped[int] = mapped_column()
    uses_left: Mapped[int] = mapped_column()
    created_at: Mapped[datetime] = mapped_column(default=now)
    expires_at: Mapped[datetime] = mapped_column(index=True)

    created_by: Mapped[User | None] = relationship()

    __table_args__ = (
        Index(None, created_at, id),
        Index(None, created_by_id, created_at, id),
        CheckConstraint("length(note) <= 100", name="note_length"),
        CheckConstraint("role IN ('member', 'owner')", name="role"),
        CheckConstraint("uses BETWEEN 1 AND 100", name="uses"),
        CheckConstraint("uses_left BETWEEN 0 AND uses", name="uses_left"),
    )


class InvitationUse(Base):
    """The use of an invitation: the new account, and the member who invited it.

    The row outlives the invitation, so it has no foreign key to it.
    """

    __tablename__ = "invitation_uses"

    user_id: Mapped[str] = mapped_column(
        Identifier, ForeignKey("users.id", ondelete="CASCADE"), primary_key=True
    )
    invitation_id: Mapped[str] = mapped_column(Identifier, index=True)
    invited_by_id: Mapped[str | None] = mapped_column(
        Identifier, ForeignKey("users.id", ondelete="SET NULL"), index=True
    )
