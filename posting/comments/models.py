"""The table of comments."""

from datetime import datetime

from sqlalchemy import CheckConstraint, ForeignKey, Index, Text
from sqlalchemy.orm import Mapped, column_property, mapped_column, relationship

from posting.accounts.models import User
from posting.db.base import Identifier, partial_index
from posting.db.types import new_id, now, same_as_created_at, same_as_id
from posting.reactions.models import WithReactions


class Comment(WithReactions):
    """A comment on a post, or a reply to another comment on it.

    A comment without content is a placeholder: deleted, but kept as the parent of its replies. A
    reply's `created_at` is always later than its parent's. A comment on the post begins a thread;
    `thread_id` and `thread_at` are its id and time, in all replies below it too.
    """

    __tablename__ = "comments"

    id: Mapped[str] = mapped_column(Identifier, primary_key=True, default=new_id)
    post_id: Mapped[str] = mapped_column(Identifier, ForeignKey("posts.id", ondelete="CASCADE"))
    parent_id: Mapped[str | None] = mapped_column(Identifier, ForeignKey("comments.id"))
    author_id: Mapped[str | None] = mapped_column(
        Identifier, ForeignKey("users.id", ondelete="SET NULL")
    )
    content: Mapped[str | None] = mapped_column(Text)
    image_count: Mapped[int] = mapped_column(default=0, server_default="0")
    file_count: Mapped[int] = mapped_column(default=0, server_default="0")
    deleted: Mapped[bool] = column_property(content.is_(None))
    version: Mapped[int] = mapped_column(default=1)
    created_at: Mapped[datetime] = mapped_column(default=now)
    updated_at: Mapped[datetime] = mapped_column(default=same_as_created_at)

    thread_id: Mapped[str | None] = mapped_column(Identifier, default=same_as_id)
    thread_at: Mapped[datetime | None] = mapped_column(default=same_as_created_at)

    author: Mapped[User | None] = relationship()

    __table_args__ = (
        # Without placeholders, of which there may be very many in a row.
        partial_index(created_at, id, where=content.is_not(None)),
        # So that SQLite writes a page less for a comment that is not a reply.
        partial_index(parent_id, where=parent_id.is_not(None)),
        Index(None, post_id, created_at, id),
        Index("ix_comments_thread", post_id, thread_at, thread_id, created_at, id),
        Index(None, author_id, created_at, id),
        CheckConstraint("length(content) BETWEEN 1 AND 10000", name="content_length"),
    )
