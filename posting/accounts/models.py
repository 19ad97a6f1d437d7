"""The tables of accounts, with their constraints."""

from datetime import datetime, timedelta

from flask import has_request_context
from sqlalchemy import (
    CheckConstraint,
    Dialect,
    ForeignKey,
    Index,
    String,
    TypeDecorator,
    bindparam,
    case,
    func,
    literal_column,
    type_coerce,
)
from sqlalchemy.ext.hybrid import hybrid_property
from sqlalchemy.orm import Mapped, column_property, mapped_column, relationship

from posting.db.base import Base, EditedAt, Identifier, bytewise, partial_index
from posting.db.purge import MAX_STEP
from posting.db.types import UtcDateTime, new_id, now
from posting.web.hosts import base_url

SESSION_IDLE = timedelta(days=30)
SESSION_LIFETIME = timedelta(days=90)
SESSIONS_PER_USER = 50
CONFIRMATION_LIFETIME = timedelta(minutes=5)
TOKENS_PER_USER = 50
APPLICATION_LIFETIME = timedelta(days=30)
MEMBER, MODERATOR, OWNER = ROLES = ("member", "moderator", "owner")
ACTIVE, PENDING, SUSPENDED = STATES = ("active", "pending", "suspended")
_NOW = bindparam(None, callable_=now, type_=UtcDateTime())  # when a statement is executed
_APPLICATIONS_SINCE = bindparam(
    None, callable_=lambda: now() - APPLICATION_LIFETIME, type_=UtcDateTime()
)


class AvatarUrl(TypeDecorator[str]):
    """The id of an avatar, which becomes its URL. Outside of a request, this is a path."""

    impl = Identifier
    cache_ok = True

    def process_result_value(self, value: str | None, dialect: Dialect) -> str | None:
        base = base_url() if value and has_request_context() else ""
        return value and f"{base}/avatars/{value}"


class User(EditedAt):
    """An account. Usernames are unique without regard to case.

    Its `state` is decided here and nowhere else: no other code compares these timestamps. A pending
    account waits for approval, and only moderators see it. A suspension without an end lasts until
    it is lifted.
    """

    EXPIRES = ("pending_since", APPLICATION_LIFETIME + MAX_STEP)

    __tablename__ = "users"

    id: Mapped[str] = mapped_column(Identifier, primary_key=True, default=new_id)
    username: Mapped[str] = mapped_column(bytewise(32))
    display_name: Mapped[str | None] = mapped_column(String(64))
    bio: Mapped[str | None] = mapped_column(String(500))
    role: Mapped[str] = mapped_column(String(16), default=MEMBER)
    avatar_id: Mapped[str | None] = mapped_column(Identifier)
    password_hash: Mapped[str] = mapped_column(String(256))
    created_at: Mapped[datetime] = mapped_column(default=now)
    suspended_at: Mapped[datetime | None] = mapped_column()
    suspended_until: Mapped[datetime | None] = mapped_column()
    suspension_reason: Mapped[str | None] = mapped_column(String(500))
    pending_since: Mapped[datetime | None] = mapped_column()
    application: Mapped[str | None] = mapped_column(String(1000))
    last_seen_at: Mapped[datetime | None] = mapped_column()  # null before the first sign-in

    avatar_url: Mapped[str | None] = column_property(type_coerce(avatar_id, AvatarUrl()))
    # Owners are moderators too. Parameters could not be matched with the partial index.
    is_moderator: Mapped[bool] = column_property(role != literal_column(f"'{MEMBER}'"))
    is_owner: Mapped[bool] = column_property(role == literal_column(f"'{OWNER}'"))
    is_pending: Mapped[bool] = column_property(pending_since.is_not(None))
    # The table may still have older applications, which a later sign-up deletes.
    is_applying: Mapped[bool] = column_property(pending_since > _APPLICATIONS_SINCE)
    state: Mapped[str] = column_property(
        case(
            (pending_since.is_not(None), PENDING),
            (suspended_at.is_(None), ACTIVE),
            (suspended_until <= _NOW, ACTIVE),
            else_=SUSPENDED,
        )
    )

    __table_args__ = (
        Index("uq_users_username", func.lower(username), unique=True),
        Index(None, created_at, id),
        partial_index(pending_since, id, where=pending_since.is_not(None)),
        partial_index(id, where=role != MEMBER, name="ix_users_moderators"),
        CheckConstraint("length(username) BETWEEN 3 AND 32", name="username_length"),
        CheckConstraint("length(display_name) <= 64", name="display_name_length"),
        CheckConstraint("length(bio) <= 500", name="bio_length"),
        CheckConstraint("role IN ('member', 'moderator', 'owner')", name="role"),
        CheckConstraint("length(suspension_reason) <= 500", name="suspension_reason_length"),
        CheckConstraint("length(application) BETWEEN 1 AND 1000", name="application_length"),
    )

    @hybrid_property
    def is_active(self) -> bool:
        """Return whether the account may be used: by sign-in, and by its sessions and tokens.

        In a query, this is the SQL condition.
        """
        return self.state == ACTIVE


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
    # When the password was given again, for what a stolen session must not do.
    confirmed_at: Mapped[datetime | None] = mapped_column()

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

    __table_args__ = (CheckConstraint("scope IN ('read', 'write', 'feed')", name="scope"),)


class ResetLink(Base):
    """A link by which somebody may set the password of an account, once. A new one replaces it."""

    EXPIRES = ("expires_at", timedelta())

    __tablename__ = "reset_links"

    user_id: Mapped[str] = mapped_column(
        Identifier, ForeignKey("users.id", ondelete="CASCADE"), primary_key=True
    )
    secret_hash: Mapped[str] = mapped_column(String(64))
    expires_at: Mapped[datetime] = mapped_column(index=True)


class RecoveryCode(Base):
    """A code by which a member may set a new password, once. Its use deletes the row."""

    __tablename__ = "recovery_codes"

    user_id: Mapped[str] = mapped_column(
        Identifier, ForeignKey("users.id", ondelete="CASCADE"), primary_key=True
    )
    code_hash: Mapped[str] = mapped_column(String(64), primary_key=True)
    created_at: Mapped[datetime] = mapped_column(default=now)
