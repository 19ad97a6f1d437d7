"""The tables of accounts, with their constraints."""

from datetime import datetime, timedelta

from sqlalchemy import CheckConstraint, ForeignKey, Index, String, func
from sqlalchemy.ext.hybrid import hybrid_property
from sqlalchemy.orm import Mapped, mapped_column, relationship

from posting.db.base import Base, EditedAt, Identifier, bytewise
from posting.db.types import new_id, now

SESSION_IDLE = timedelta(days=30)
SESSION_LIFETIME = timedelta(days=90)
SESSIONS_PER_USER = 50
TOKENS_PER_USER = 50
MODERATOR = "moderator"


class User(EditedAt):
    """An account. Usernames are unique without regard to case."""

    __tablename__ = "users"

    id: Mapped[str] = mapped_column(Identifier, primary_key=True, default=new_id)
    username: Mapped[str] = mapped_column(bytewise(32))
    display_name: Mapped[str | None] = mapped_column(String(64))
    bio: Mapped[str | None] = mapped_column(String(500))
    role: Mapped[str] = mapped_column(String(16), default="member")
    password_hash: Mapped[str] = mapped_column(String(256))
    created_at: Mapped[datetime] = mapped_column(default=now)
    suspended_at: Mapped[datetime | None] = mapped_column()

    __table_args__ = (
        Index("uq_users_username", func.lower(username), unique=True),
        CheckConstraint("length(username) BETWEEN 3 AND 32", name="username_length"),
        CheckConstraint("length(display_name) <= 64", name="display_name_length"),
        CheckConstraint("length(bio) <= 500", name="bio_length"),
        CheckConstraint("role IN ('member', 'moderator')", name="role"),
    )

    @hybrid_property
    def is_active(self) -> bool:
        """Return whether the account may be used: by sign-in, and by its sessions and tokens.

        In a query, this is the SQL condition. No other code reads `suspended_at`.
        """
        return self.suspended_at == None  # noqa: E711 - SQL has no `is`


class Session(Base):
    """A sign-in. It ends with sign-out, after 30 idle days or after 90 days."""

    EXPIRES = ("created_at", SESSION_LIFETIME)

    __tablename__ = "sessions"

    id: Mapped[str] = mapped_column(Identifier, primary_key=True, default=new_id)
    token_hash: Mapped[str] = mapped_column(String(64), unique=True)
    user_id: Mapped[str] = mapped_column(
        Identifier, ForeignKey("users.id", ondelete="CASCADE"), index=True
    )
    user_agent: Mapped[str] = mapped_column(String(256))
    created_at: Mapped[datetime] = mapped_column(default=now, index=True)
    last_seen_at: Mapped[datetime] = mapped_column(default=now)

    user: Mapped[User] = relationship()


class Token(Base):
    """A personal access token, which ends when it expires or is deleted."""

    EXPIRES = ("expires_at", timedelta())

    __tablename__ = "tokens"

    id: Mapped[str] = mapped_column(Identifier, primary_key=True, default=new_id)
    user_id: Mapped[str] = mapped_column(
        Identifier, ForeignKey("users.id", ondelete="CASCADE"), index=True
    )
    token_hash: Mapped[str] = mapped_column(String(64), unique=True)
    name: Mapped[str] = mapped_column(String(64))
    scope: Mapped[str] = mapped_column(String(8))
    created_at: Mapped[datetime] = mapped_column(default=now)
    expires_at: Mapped[datetime] = mapped_column(index=True)
    last_used_at: Mapped[datetime | None] = mapped_column()

    user: Mapped[User] = relationship()

    __table_args__ = (CheckConstraint("scope IN ('read', 'write')", name="scope"),)


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
    created_at: Mapped[datetime] = mapped_column(default=now, index=True)

    __table_args__ = (CheckConstraint("length(reason) <= 500", name="reason_length"),)
