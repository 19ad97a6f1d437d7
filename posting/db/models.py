"""Tables with their constraints, and who may change a row."""

from datetime import datetime, timedelta
from typing import Protocol

import sqlalchemy as sa
from sqlalchemy import CheckConstraint, ForeignKey, Index, LargeBinary, String, Text, func
from sqlalchemy.orm import Mapped, column_property, mapped_column, relationship

from posting.db.engine import Base
from posting.db.types import ID_LENGTH, UtcDateTime, new_id, now, same_as_created_at

SESSION_IDLE = timedelta(days=30)
SESSION_LIFETIME = timedelta(days=90)
SESSIONS_PER_USER = 50
TOKENS_PER_USER = 50
MODERATOR = "moderator"
IDEMPOTENCY_LIFETIME = timedelta(hours=24)


class Actor(Protocol):
    """A user who wants to change something."""

    @property
    def id(self) -> str: ...

    @property
    def is_moderator(self) -> bool: ...


def bytewise(length: int) -> String:
    """Return a string type that compares byte by byte on both databases, whatever the locale."""
    return String(length).with_variant(String(length, collation="C"), "postgresql")


Identifier = bytewise(ID_LENGTH)


class User(Base):
    """An account. Usernames are unique without regard to case."""

    PUBLIC = ("id", "username", "display_name", "bio", "role", "created_at")

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

    @property
    def is_moderator(self) -> bool:
        return self.role == MODERATOR


class Session(Base):
    """A sign-in. It ends with sign-out, after 30 idle days or after 90 days."""

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

    PUBLIC = ("id", "name", "scope", "created_at", "expires_at", "last_used_at")

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


class Post(Base):
    """A text with a title. It outlives its author's account unless the author decides otherwise."""

    # Columns of the API's two forms of a post.
    SUMMARY = (
        "id",
        "title",
        "author_id",
        "created_at",
        "updated_at",
        "last_activity_at",
        "comment_count",
    )
    DETAIL = (*SUMMARY, "content")

    __tablename__ = "posts"

    id: Mapped[str] = mapped_column(Identifier, primary_key=True, default=new_id)
    author_id: Mapped[str | None] = mapped_column(
        Identifier, ForeignKey("users.id", ondelete="SET NULL")
    )
    title: Mapped[str] = mapped_column(String(200))
    content: Mapped[str] = mapped_column(Text)
    comment_count: Mapped[int] = mapped_column(default=0)
    version: Mapped[int] = mapped_column(default=1)
    created_at: Mapped[datetime] = mapped_column(default=now)
    updated_at: Mapped[datetime] = mapped_column(default=same_as_created_at, onupdate=now)
    last_comment_at: Mapped[datetime | None] = mapped_column()
    last_activity_at: Mapped[datetime] = column_property(
        func.coalesce(last_comment_at, created_at, type_=UtcDateTime())
    )

    author: Mapped[User | None] = relationship()

    __mapper_args__ = {"version_id_col": version}  # noqa: RUF012 - SQLAlchemy's own form
    __table_args__ = (
        Index(None, created_at, id),
        Index(None, author_id, created_at, id),
        Index("ix_posts_last_activity_at_id", func.coalesce(last_comment_at, created_at), id),
        Index(
            "ix_posts_author_id_last_activity_at_id",
            author_id,
            func.coalesce(last_comment_at, created_at),
            id,
        ),
        CheckConstraint("length(title) BETWEEN 1 AND 200", name="title_length"),
        CheckConstraint("length(content) BETWEEN 1 AND 100000", name="content_length"),
        CheckConstraint("comment_count >= 0", name="comment_count"),
    )

    def is_editable_by(self, user: Actor) -> bool:
        return self.author_id == user.id

    def is_deletable_by(self, user: Actor) -> bool:
        return self.is_editable_by(user) or user.is_moderator


class Comment(Base):
    """A comment on a post, or a reply to another comment on it.

    A comment without content is a placeholder: deleted, but kept as the parent of its replies. A
    reply's `created_at` is always later than its parent's.
    """

    PUBLIC = (
        "id",
        "post_id",
        "parent_id",
        "author_id",
        "content",
        "deleted",
        "created_at",
        "updated_at",
    )

    __tablename__ = "comments"

    id: Mapped[str] = mapped_column(Identifier, primary_key=True, default=new_id)
    post_id: Mapped[str] = mapped_column(Identifier, ForeignKey("posts.id", ondelete="CASCADE"))
    parent_id: Mapped[str | None] = mapped_column(Identifier, ForeignKey("comments.id"), index=True)
    author_id: Mapped[str | None] = mapped_column(
        Identifier, ForeignKey("users.id", ondelete="SET NULL")
    )
    content: Mapped[str | None] = mapped_column(Text)
    deleted: Mapped[bool] = column_property(content.is_(None))
    version: Mapped[int] = mapped_column(default=1)
    created_at: Mapped[datetime] = mapped_column(default=now)
    updated_at: Mapped[datetime] = mapped_column(default=same_as_created_at, onupdate=now)

    __mapper_args__ = {"version_id_col": version}  # noqa: RUF012 - SQLAlchemy's own form
    __table_args__ = (
        Index(None, post_id, created_at, id),
        Index(None, author_id, created_at, id),
        CheckConstraint("length(content) BETWEEN 1 AND 10000", name="content_length"),
    )

    def is_editable_by(self, user: Actor) -> bool:
        return self.author_id == user.id

    def is_deletable_by(self, user: Actor) -> bool:
        return self.is_editable_by(user) or user.is_moderator


class Image(Base):
    """An image of a post. Its bytes are in `ImageData` and never change."""

    PUBLIC = ("id", "media_type", "width", "height", "size", "alt", "created_at")

    __tablename__ = "images"

    id: Mapped[str] = mapped_column(Identifier, primary_key=True, default=new_id)
    post_id: Mapped[str] = mapped_column(Identifier, ForeignKey("posts.id", ondelete="CASCADE"))
    media_type: Mapped[str] = mapped_column(String(16))
    width: Mapped[int] = mapped_column()
    height: Mapped[int] = mapped_column()
    size: Mapped[int] = mapped_column()
    alt: Mapped[str | None] = mapped_column(String(500))
    created_at: Mapped[datetime] = mapped_column(default=now)

    post: Mapped[Post] = relationship()

    __table_args__ = (
        Index(None, post_id, created_at, id),
        CheckConstraint(
            "media_type IN ('image/png', 'image/jpeg', 'image/webp', 'image/gif')",
            name="media_type",
        ),
        CheckConstraint("width > 0 AND height > 0 AND size > 0", name="dimensions"),
        CheckConstraint("length(alt) <= 500", name="alt_length"),
    )

    def is_editable_by(self, user: Actor) -> bool:
        return self.post.is_editable_by(user)

    def is_deletable_by(self, user: Actor) -> bool:
        return self.post.is_deletable_by(user)


class ImageData(Base):
    """The bytes of an image, in a table of their own so that lists do not read them."""

    __tablename__ = "image_data"

    image_id: Mapped[str] = mapped_column(
        Identifier, ForeignKey("images.id", ondelete="CASCADE"), primary_key=True
    )
    data: Mapped[bytes] = mapped_column(LargeBinary)


class IdempotencyKey(Base):
    """A key that a client sent with a request that created something, and the stored response."""

    __tablename__ = "idempotency_keys"

    user_id: Mapped[str] = mapped_column(
        Identifier, ForeignKey("users.id", ondelete="CASCADE"), primary_key=True
    )
    key: Mapped[str] = mapped_column(String(255), primary_key=True)
    fingerprint: Mapped[str] = mapped_column(String(64))
    body: Mapped[str] = mapped_column(Text)
    headers: Mapped[dict[str, str]] = mapped_column(sa.JSON)
    created_at: Mapped[datetime] = mapped_column(default=now, index=True)


class ModerationAction(Base):
    """A moderator's or operator's action on the content or account of another user."""

    __tablename__ = "moderation_acts"

    id: Mapped[str] = mapped_column(Identifier, primary_key=True, default=new_id)
    moderator: Mapped[str] = mapped_column(String(32))
    moderator_id: Mapped[str | None] = mapped_column(Identifier)
    act: Mapped[str] = mapped_column(String(16))
    target: Mapped[str] = mapped_column(String(64))
    created_at: Mapped[datetime] = mapped_column(default=now, index=True)


class RateWindow(Base):
    """The hits of one subject within one window of a limit; the key is a hash of both."""

    __tablename__ = "rate_windows"

    key: Mapped[str] = mapped_column(String(32), primary_key=True)
    hits: Mapped[int] = mapped_column()
    ends_at: Mapped[datetime] = mapped_column(index=True)


# Rows that `posting.db.purge` deletes: the timestamp, and how long after it they expire.
EXPIRING = {
    Session: (Session.created_at, SESSION_LIFETIME),
    IdempotencyKey: (IdempotencyKey.created_at, IDEMPOTENCY_LIFETIME),
    RateWindow: (RateWindow.ends_at, timedelta()),
    Token: (Token.expires_at, timedelta()),
}
