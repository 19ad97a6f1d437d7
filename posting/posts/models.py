"""The table of posts."""

from datetime import datetime

import sqlalchemy as sa
from sqlalchemy import CheckConstraint, ForeignKey, Index, String, Text, func
from sqlalchemy.orm import Mapped, column_property, mapped_column, relationship

from posting.accounts.models import User
from posting.db.base import Identifier, partial_index
from posting.db.types import UtcDateTime, new_id, now, same_as_created_at
from posting.reactions.models import WithReactions


class Post(WithReactions):
    """A text with a title. It outlives its author's account unless the author decides otherwise.

    A moderator may lock it, so that only moderators can comment, or pin it to the front page. This
    is not an edit.

    With `deleted_at`, it is deleted for all readers, and only the rows that belong to it are left.
    They are deleted in steps, and the post after them.
    """

    __tablename__ = "posts"

    id: Mapped[str] = mapped_column(Identifier, primary_key=True, default=new_id)
    author_id: Mapped[str | None] = mapped_column(
        Identifier, ForeignKey("users.id", ondelete="SET NULL")
    )
    title: Mapped[str] = mapped_column(String(200))
    content: Mapped[str] = mapped_column(Text)
    comment_count: Mapped[int] = mapped_column(default=0)
    image_count: Mapped[int] = mapped_column(default=0, server_default="0")
    file_count: Mapped[int] = mapped_column(default=0, server_default="0")
    # False if it certainly has no topics.
    has_topics: Mapped[bool] = mapped_column(default=False, server_default=sa.false(), sort_order=2)
    version: Mapped[int] = mapped_column(default=1)
    created_at: Mapped[datetime] = mapped_column(default=now)
    updated_at: Mapped[datetime] = mapped_column(default=same_as_created_at)
    last_comment_at: Mapped[datetime | None] = mapped_column()
    locked_at: Mapped[datetime | None] = mapped_column()
    pinned_at: Mapped[datetime | None] = mapped_column()
    deleted_at: Mapped[datetime | None] = mapped_column()
    locked: Mapped[bool] = column_property(locked_at.is_not(None))
    pinned: Mapped[bool] = column_property(pinned_at.is_not(None))
    last_activity_at: Mapped[datetime] = column_property(
        func.coalesce(last_comment_at, created_at, type_=UtcDateTime())
    )

    author: Mapped[User | None] = relationship()

    __table_args__ = (
        Index(None, created_at, id),
        Index(None, author_id, created_at, id),
        partial_index(pinned_at, id, where=pinned_at.is_not(None)),
        partial_index(deleted_at, id, where=deleted_at.is_not(None)),
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


# The posts of which only rows that belong to them are left: usually none.
DELETED_POSTS = sa.select(Post.id).where(Post.deleted_at.is_not(None))
