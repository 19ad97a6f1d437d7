"""The table of reactions, and the columns that count them."""

from datetime import datetime

from sqlalchemy import CheckConstraint, ForeignKey, Index, String
from sqlalchemy.orm import Mapped, mapped_column

from posting.db.base import Base, Editable, Identifier, partial_index
from posting.db.types import now

EMOJI = {
    "thumbs_up": "👍",
    "heart": "❤️",
    "party": "🎉",
    "laugh": "😄",
    "surprise": "😮",
    "thanks": "🙏",
}
NAMES = tuple(EMOJI)
NO_REACTIONS = dict.fromkeys(NAMES, 0)


def _count() -> Mapped[int]:
    return mapped_column(default=0, server_default="0", sort_order=1)  # after all others


class WithReactions(Editable):
    """A text with a column for each reaction, which says how many members have reacted so.

    The holder of the lock of the post changes them, with the rows that they count.
    """

    __abstract__ = True

    thumbs_up: Mapped[int] = _count()
    heart: Mapped[int] = _count()
    party: Mapped[int] = _count()
    laugh: Mapped[int] = _count()
    surprise: Mapped[int] = _count()
    thanks: Mapped[int] = _count()


class Reaction(Base):
    """The reaction of a member to a post, or to a comment on it. A member has one for each text.

    `text_id` is the id of the comment, or that of the post without a comment.
    """

    __tablename__ = "reactions"

    user_id: Mapped[str] = mapped_column(
        Identifier, ForeignKey("users.id", ondelete="CASCADE"), primary_key=True
    )
    post_id: Mapped[str] = mapped_column(
        Identifier, ForeignKey("posts.id", ondelete="CASCADE"), primary_key=True
    )
    text_id: Mapped[str] = mapped_column(Identifier, primary_key=True)
    comment_id: Mapped[str | None] = mapped_column(
        Identifier, ForeignKey("comments.id", ondelete="CASCADE")
    )
    name: Mapped[str] = mapped_column(String(16))
    created_at: Mapped[datetime] = mapped_column(default=now)

    __table_args__ = (
        Index(None, post_id),
        partial_index(comment_id, where=comment_id.is_not(None)),
        CheckConstraint(f"name IN {NAMES}", name="name"),
        CheckConstraint("text_id = coalesce(comment_id, post_id)", name="text_id"),
        {"sqlite_with_rowid": False},
    )
