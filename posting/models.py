"""What is stored, the rules that a reader asks of it, and the selects that views page through."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy import CheckConstraint, ForeignKey, Index, String, Text, func
from sqlalchemy.orm import Mapped, mapped_column, relationship

from posting.database import ID_LENGTH, Base, new_id, now

SESSION_IDLE = timedelta(days=30)
SESSION_LIFETIME = timedelta(days=90)
SESSIONS_PER_USER = 50


# Compared byte by byte on both engines, so that lists are in the same order on both.
Identifier = String(ID_LENGTH).with_variant(String(ID_LENGTH, collation="C"), "postgresql")


class User(Base):
    """An account. Its name is unique without regard to case."""

    __tablename__ = "users"

    id: Mapped[str] = mapped_column(Identifier, primary_key=True, default=new_id)
    username: Mapped[str] = mapped_column(String(32))
    display_name: Mapped[str | None] = mapped_column(String(64))
    bio: Mapped[str | None] = mapped_column(String(500))
    role: Mapped[str] = mapped_column(String(16), default="member")
    password_hash: Mapped[str] = mapped_column(String(256))
    created_at: Mapped[datetime] = mapped_column(default=now)

    __table_args__ = (
        Index("uq_users_username", func.lower(username), unique=True),
        CheckConstraint("length(username) BETWEEN 3 AND 32", name="username_length"),
        CheckConstraint("length(display_name) <= 64", name="display_name_length"),
        CheckConstraint("length(bio) <= 500", name="bio_length"),
        CheckConstraint("role IN ('member', 'moderator')", name="role"),
    )

    @property
    def is_moderator(self) -> bool:
        return self.role == "moderator"

    @staticmethod
    def named(username: str) -> sa.Select["User"]:
        return sa.select(User).where(func.lower(User.username) == username.lower())


class Session(Base):
    """A sign-in that lasts until sign-out, 30 idle days or 90 days; its token is kept hashed."""

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

    @staticmethod
    def alive() -> sa.ColumnElement[bool]:
        return sa.and_(
            Session.last_seen_at > now() - SESSION_IDLE,
            Session.created_at > now() - SESSION_LIFETIME,
        )


class Post(Base):
    """A titled text. It outlives its author's account unless the author decides otherwise."""

    __tablename__ = "posts"

    id: Mapped[str] = mapped_column(Identifier, primary_key=True, default=new_id)
    author_id: Mapped[str | None] = mapped_column(
        Identifier, ForeignKey("users.id", ondelete="SET NULL")
    )
    title: Mapped[str] = mapped_column(String(200))
    content: Mapped[str] = mapped_column(Text)
    comment_count: Mapped[int] = mapped_column(default=0)
    version: Mapped[int] = mapped_column()
    created_at: Mapped[datetime] = mapped_column(default=now)
    updated_at: Mapped[datetime] = mapped_column(default=now, onupdate=now)

    author: Mapped[User | None] = relationship()

    __mapper_args__ = {"version_id_col": version}  # noqa: RUF012 - SQLAlchemy's own form
    __table_args__ = (
        Index(None, created_at, id),
        Index(None, author_id, created_at, id),
        CheckConstraint("length(title) BETWEEN 1 AND 200", name="title_length"),
        CheckConstraint("length(content) BETWEEN 1 AND 100000", name="content_length"),
        CheckConstraint("comment_count >= 0", name="comment_count"),
    )

    def editable_by(self, user: User) -> bool:
        return self.author_id == user.id

    def deletable_by(self, user: User) -> bool:
        return self.editable_by(user) or user.is_moderator

    @staticmethod
    def briefs(author_id: str | None = None) -> sa.Select[*tuple[Any, ...]]:
        """Select what lists show: posts with their authors, without content, in no order yet."""
        statement = sa.select(
            Post.id,
            Post.title,
            Post.comment_count,
            Post.created_at,
            Post.updated_at,
            Post.author_id,
            User.username,
            User.display_name,
        ).outerjoin(Post.author)
        return statement if author_id is None else statement.where(Post.author_id == author_id)

    @staticmethod
    def whole(post_id: str) -> sa.Select[*tuple[Any, ...]]:
        """Select what `briefs` does of one post, and its content and version behind that."""
        return Post.briefs().add_columns(Post.content, Post.version).where(Post.id == post_id)

    @staticmethod
    def brief(row: Sequence[Any]) -> dict[str, Any]:
        """Turn one row of `briefs` into the plain form that the schema reads fastest."""
        post_id, title, comment_count, created_at, updated_at, author_id, username, name = row
        return {
            "id": post_id,
            "title": title,
            "author": author_id and {"id": author_id, "username": username, "display_name": name},
            "created_at": created_at,
            "updated_at": updated_at,
            "comment_count": comment_count,
        }
