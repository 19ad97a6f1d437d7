"""The tables of topics, and of the posts that have them."""

from datetime import datetime

from sqlalchemy import CheckConstraint, ForeignKey, Index, String
from sqlalchemy.orm import Mapped, mapped_column

from posting.db.base import Base, Editable, Identifier
from posting.db.types import new_id, now, same_as_created_at

MAX_TOPICS, TOPICS_PER_POST = 30, 3
MAX_NAME = 40
# By hue, in steps of 30 degrees, as the style sheet of the pages has them.
COLORS = (
    *("red", "orange", "yellow", "lime", "green", "mint"),
    *("cyan", "azure", "blue", "purple", "magenta", "pink"),
)


class Topic(Editable):
    """A topic that owners have named."""

    __tablename__ = "topics"

    id: Mapped[str] = mapped_column(Identifier, primary_key=True, default=new_id)
    name: Mapped[str] = mapped_column(String(MAX_NAME))
    color: Mapped[str] = mapped_column(String(8))
    created_at: Mapped[datetime] = mapped_column(default=now)
    updated_at: Mapped[datetime] = mapped_column(default=same_as_created_at)

    __table_args__ = (
        CheckConstraint(f"length(name) BETWEEN 1 AND {MAX_NAME}", name="name_length"),
        CheckConstraint(f"color IN {COLORS}", name="color"),
    )


class PostTopic(Base):
    """A topic of a post, with the times by which the lists of the topic are in order.

    They are `created_at` and `last_activity_at` of the post. The holder of the lock of the post
    changes them. If the topic is deleted, its rows follow.
    """

    __tablename__ = "post_topics"

    post_id: Mapped[str] = mapped_column(
        Identifier, ForeignKey("posts.id", ondelete="CASCADE"), primary_key=True
    )
    topic_id: Mapped[str] = mapped_column(
        Identifier, ForeignKey("topics.id", ondelete="CASCADE"), primary_key=True
    )
    created_at: Mapped[datetime] = mapped_column()
    last_activity_at: Mapped[datetime] = mapped_column()

    __table_args__ = (
        Index(None, topic_id, created_at, post_id),
        Index(None, topic_id, last_activity_at, post_id),
        {"sqlite_with_rowid": False},
    )
