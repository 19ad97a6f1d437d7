"""What is stored, the rules that a reader asks of it, and the selects that views page through."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import cache
from typing import Any, Protocol

import sqlalchemy as sa
from sqlalchemy import CheckConstraint, ForeignKey, Index, LargeBinary, String, Text, func
from sqlalchemy.orm import Mapped, mapped_column, relationship

from posting.db.engine import Base
from posting.db.types import ID_LENGTH, Rfc3339Text, new_id, now

SESSION_IDLE = timedelta(days=30)
SESSION_LIFETIME = timedelta(days=90)
SESSIONS_PER_USER = 50
MODERATOR = "moderator"
IDEMPOTENCY_LIFETIME = timedelta(hours=24)

Row = Sequence[Any]


class Asker(Protocol):
    """Who wants to change something."""

    @property
    def id(self) -> str: ...

    @property
    def is_moderator(self) -> bool: ...


def bytewise(length: int) -> String:
    """Return a type of text that compares byte by byte on both engines, whatever the locale."""
    return String(length).with_variant(String(length, collation="C"), "postgresql")


Identifier = bytewise(ID_LENGTH)


def as_created(context: Any) -> datetime:
    """Return the moment of creation, as the default of `updated_at`."""
    moment: datetime = context.get_current_parameters()["created_at"]
    return moment


def as_written(moment: Any) -> sa.Label[str]:
    """Select a moment as it is sent."""
    return sa.type_coerce(moment, Rfc3339Text()).label(moment.key)


def author_of(author_id: str | None, username: str | None, name: str | None) -> Any:
    """Return what lists show of an author; null when that account is gone."""
    return author_id and {"id": author_id, "username": username, "display_name": name}


class User(Base):
    """An account. Its name is unique without regard to case."""

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
        """Return a condition that asks for the time whenever it is executed."""
        return sa.and_(
            Session.last_seen_at > sa.bindparam(None, callable_=lambda: now() - SESSION_IDLE),
            Session.created_at > sa.bindparam(None, callable_=lambda: now() - SESSION_LIFETIME),
        )

    @staticmethod
    @cache
    def of_user() -> sa.Select[*tuple[Any, ...]]:
        """Select what is shown of the sessions of the user `user`, the newest first."""
        table = Session
        shown = sa.select(
            table.id, as_written(table.created_at), as_written(table.last_seen_at), table.user_agent
        )
        own = shown.where(table.user_id == sa.bindparam("user"), table.alive())
        return own.order_by(table.created_at.desc(), table.id)

    @staticmethod
    @cache
    def presented() -> sa.Select[*tuple[Any, ...]]:
        """Select who asks with the session whose token has the hash `token_hash`."""
        who = sa.select(
            User.id, User.username, User.role, Session.id.label("session_id"), Session.last_seen_at
        )
        own = Session.token_hash == sa.bindparam("token_hash")
        return who.join(Session.user).where(own, Session.alive())


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
    version: Mapped[int] = mapped_column(default=1)
    created_at: Mapped[datetime] = mapped_column(default=now)
    updated_at: Mapped[datetime] = mapped_column(default=as_created, onupdate=now)

    author: Mapped[User | None] = relationship()

    __mapper_args__ = {"version_id_col": version}  # noqa: RUF012 - SQLAlchemy's own form
    __table_args__ = (
        Index(None, created_at, id),
        Index(None, author_id, created_at, id),
        CheckConstraint("length(title) BETWEEN 1 AND 200", name="title_length"),
        CheckConstraint("length(content) BETWEEN 1 AND 100000", name="content_length"),
        CheckConstraint("comment_count >= 0", name="comment_count"),
    )

    def editable_by(self, user: Asker) -> bool:
        return self.author_id == user.id

    def deletable_by(self, user: Asker) -> bool:
        return self.editable_by(user) or user.is_moderator

    @staticmethod
    def count_comment(post_id: str) -> sa.Update:
        """Count one more comment, which is no edit of the post."""
        one_more = {"comment_count": Post.comment_count + 1, "updated_at": Post.updated_at}
        return sa.update(Post).where(Post.id == post_id).values(one_more)

    @staticmethod
    @cache
    def briefs(*, of_author: bool = False) -> sa.Select[*tuple[Any, ...]]:
        """Select what lists show: posts with their authors, without content, in no order yet.

        Of all, or of the author who is the parameter `author`.
        """
        statement = sa.select(
            Post.id,
            Post.title,
            Post.comment_count,
            as_written(Post.created_at),
            as_written(Post.updated_at),
            Post.author_id,
            User.username,
            User.display_name,
        ).outerjoin(Post.author)
        return statement.where(Post.author_id == sa.bindparam("author")) if of_author else statement

    @staticmethod
    @cache
    def whole() -> sa.Select[*tuple[Any, ...]]:
        """Select what `briefs` does of the post `id`, its content, version and if it has images."""
        has_images = sa.exists().where(Image.post_id == Post.id)
        whole = Post.briefs().add_columns(Post.content, Post.version, has_images)
        return whole.where(Post.id == sa.bindparam("id"))

    @staticmethod
    def brief(row: Row) -> dict[str, Any]:
        """Turn one row of `briefs` into the plain form that the schema reads fastest."""
        post_id, title, comment_count, created_at, updated_at, *author = row
        return {
            "id": post_id,
            "title": title,
            "author": author_of(*author),
            "created_at": created_at,
            "updated_at": updated_at,
            "comment_count": comment_count,
        }


class Comment(Base):
    """A comment on a post, or a reply to another one there.

    Without content it is a tombstone: deleted, but kept as the place of its replies. A reply is
    always made later than what it replies to.
    """

    __tablename__ = "comments"

    id: Mapped[str] = mapped_column(Identifier, primary_key=True, default=new_id)
    post_id: Mapped[str] = mapped_column(Identifier, ForeignKey("posts.id", ondelete="CASCADE"))
    parent_id: Mapped[str | None] = mapped_column(Identifier, ForeignKey("comments.id"), index=True)
    author_id: Mapped[str | None] = mapped_column(
        Identifier, ForeignKey("users.id", ondelete="SET NULL")
    )
    content: Mapped[str | None] = mapped_column(Text)
    version: Mapped[int] = mapped_column(default=1)
    created_at: Mapped[datetime] = mapped_column(default=now)
    updated_at: Mapped[datetime] = mapped_column(default=as_created, onupdate=now)

    __mapper_args__ = {"version_id_col": version}  # noqa: RUF012 - SQLAlchemy's own form
    __table_args__ = (
        Index(None, post_id, created_at, id),
        Index(None, author_id, created_at, id),
        CheckConstraint("length(content) BETWEEN 1 AND 10000", name="content_length"),
    )

    @property
    def is_deleted(self) -> bool:
        return self.content is None

    @staticmethod
    def moment_of_reply(parent: "Comment | None") -> datetime:
        """Return the `created_at` of a new comment, always later than that of its parent."""
        return max(now(), parent.created_at + timedelta(milliseconds=1)) if parent else now()

    def editable_by(self, user: Asker) -> bool:
        return self.author_id == user.id

    def deletable_by(self, user: Asker) -> bool:
        return self.editable_by(user) or user.is_moderator

    @staticmethod
    @cache
    def on_post() -> sa.Select[*tuple[Any, ...]]:
        """Select what is shown of the comments on the post `post`, in no order yet."""
        return Comment.listed().where(Comment.post_id == sa.bindparam("post"))

    @staticmethod
    @cache
    def one() -> sa.Select[*tuple[Any, ...]]:
        """Select what is shown of the comment `id`."""
        return Comment.listed().where(Comment.id == sa.bindparam("id"))

    @staticmethod
    def listed() -> sa.Select[*tuple[Any, ...]]:
        """Select what is shown of comments: they and their authors."""
        return sa.select(
            Comment.id,
            Comment.post_id,
            Comment.parent_id,
            Comment.content,
            as_written(Comment.created_at),
            as_written(Comment.updated_at),
            Comment.version,
            Comment.author_id,
            User.username,
            User.display_name,
        ).outerjoin(User, User.id == Comment.author_id)

    @staticmethod
    def item(row: Row) -> dict[str, Any]:
        """Turn one row of `listed` into the plain form that the schema reads fastest."""
        comment_id, post_id, parent_id, content, created_at, updated_at, _, *author = row
        return {
            "id": comment_id,
            "post_id": post_id,
            "parent_id": parent_id,
            "author": author_of(*author),
            "content": content,
            "deleted": content is None,
            "created_at": created_at,
            "updated_at": updated_at,
        }


class Image(Base):
    """A picture that belongs to a post; its bytes are in `ImageData`, and never change."""

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

    def editable_by(self, user: Asker) -> bool:
        return self.post.editable_by(user)

    def deletable_by(self, user: Asker) -> bool:
        return self.post.deletable_by(user)

    @staticmethod
    @cache
    def of_post() -> sa.Select[*tuple[Any, ...]]:
        """Select what is shown of the images of the post `post`, in the order of their coming."""
        own = Image.listed().where(Image.post_id == sa.bindparam("post"))
        return own.order_by(Image.created_at, Image.id)

    @staticmethod
    def listed() -> sa.Select[*tuple[Any, ...]]:
        """Select what is shown of images."""
        return sa.select(
            Image.id,
            Image.media_type,
            Image.width,
            Image.height,
            Image.size,
            Image.alt,
            as_written(Image.created_at),
        )


class ImageData(Base):
    """The bytes of an image, apart from what lists read."""

    __tablename__ = "image_data"

    image_id: Mapped[str] = mapped_column(
        Identifier, ForeignKey("images.id", ondelete="CASCADE"), primary_key=True
    )
    data: Mapped[bytes] = mapped_column(LargeBinary)


class IdempotencyKey(Base):
    """A key under which a user has created something, and the answer to be given again."""

    __tablename__ = "idempotency_keys"

    user_id: Mapped[str] = mapped_column(
        Identifier, ForeignKey("users.id", ondelete="CASCADE"), primary_key=True
    )
    key: Mapped[str] = mapped_column(String(255), primary_key=True)
    fingerprint: Mapped[str] = mapped_column(String(64))
    body: Mapped[str] = mapped_column(Text)
    headers: Mapped[dict[str, str]] = mapped_column(sa.JSON)
    created_at: Mapped[datetime] = mapped_column(default=now, index=True)


class ModerationAct(Base):
    """What a moderator or the operator did to somebody else; it names them, and outlives them."""

    __tablename__ = "moderation_acts"

    id: Mapped[str] = mapped_column(Identifier, primary_key=True, default=new_id)
    moderator: Mapped[str] = mapped_column(String(32))
    moderator_id: Mapped[str | None] = mapped_column(Identifier)
    act: Mapped[str] = mapped_column(String(16))
    target: Mapped[str] = mapped_column(String(64))
    created_at: Mapped[datetime] = mapped_column(default=now, index=True)

    @staticmethod
    def latest(count: int) -> sa.Select["ModerationAct"]:
        table = ModerationAct
        return sa.select(table).order_by(table.created_at.desc(), table.id).limit(count)


class RateWindow(Base):
    """A stretch of time in which hits are counted; the key is a hash of whose and of which kind."""

    __tablename__ = "rate_windows"

    key: Mapped[str] = mapped_column(String(32), primary_key=True)
    hits: Mapped[int] = mapped_column()
    ends_at: Mapped[datetime] = mapped_column(index=True)

    @staticmethod
    @cache
    def open() -> sa.Select[*tuple[Any, ...]]:
        """Select the window `key` if it is open at `moment`; see `has_ended`."""
        own = RateWindow.key == sa.bindparam("key")
        is_open = ~RateWindow.has_ended(sa.bindparam("moment"), sa.bindparam("latest_end"))
        return sa.select(RateWindow.hits, RateWindow.ends_at).where(own, is_open)

    @staticmethod
    def has_ended(moment: Any, latest_end: Any) -> sa.ColumnElement[bool]:
        """Return the condition that a window has ended by `moment`.

        One that ends after `latest_end`, a whole window from now, was started by a wrong clock.
        """
        return sa.or_(RateWindow.ends_at <= moment, RateWindow.ends_at > latest_end)


# What nobody deletes when its time has passed, by which moment, and how long it lasts.
EXPIRING = (
    (Session.created_at, SESSION_LIFETIME),
    (IdempotencyKey.created_at, IDEMPOTENCY_LIFETIME),
    (RateWindow.ends_at, timedelta()),
)
