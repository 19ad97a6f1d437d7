"""The tables of files."""

from datetime import datetime, timedelta
from typing import ClassVar

from sqlalchemy import CheckConstraint, ForeignKey, Index, LargeBinary, String
from sqlalchemy.orm import Mapped, mapped_column

from posting.db.base import Base, Identifier, partial_index
from posting.db.types import new_id, now
from posting.files.formats import MAX_NAME


class File(Base):
    """A file of a post or of a comment, or one that is not attached to either yet.

    It never changes, and its bytes are in `FileData`. `Image` explains the columns that it has in
    common with files.
    """

    COUNT: ClassVar = "file_count"  # the column of posts and comments with the number of files
    EXPIRES = ("unattached_since", timedelta(days=1))

    __tablename__ = "files"

    id: Mapped[str] = mapped_column(Identifier, primary_key=True, default=new_id)
    post_id: Mapped[str | None] = mapped_column(
        Identifier, ForeignKey("posts.id", ondelete="CASCADE")
    )
    comment_id: Mapped[str | None] = mapped_column(
        Identifier, ForeignKey("comments.id", ondelete="CASCADE")
    )
    owner_id: Mapped[str | None] = mapped_column(
        Identifier, ForeignKey("users.id", ondelete="SET NULL")
    )
    name: Mapped[str] = mapped_column(String(MAX_NAME))
    size: Mapped[int] = mapped_column()
    position: Mapped[int] = mapped_column(default=0)
    created_at: Mapped[datetime] = mapped_column(default=now)
    unattached_since: Mapped[datetime | None] = mapped_column()

    __table_args__ = (
        Index(None, post_id, comment_id),
        Index(None, owner_id, post_id, size),
        partial_index(comment_id, where=comment_id.is_not(None)),
        partial_index(unattached_since, where=unattached_since.is_not(None)),
        CheckConstraint("(post_id IS NULL) = (unattached_since IS NOT NULL)", name="attached"),
        CheckConstraint("comment_id IS NULL OR post_id IS NOT NULL", name="comment"),
        CheckConstraint(f"length(name) BETWEEN 3 AND {MAX_NAME}", name="name_length"),
        CheckConstraint("size > 0", name="size"),
    )


class FileData(Base):
    """The bytes of a file, in a table of their own so that lists do not read them."""

    __tablename__ = "file_data"

    file_id: Mapped[str] = mapped_column(
        Identifier, ForeignKey("files.id", ondelete="CASCADE"), primary_key=True
    )
    data: Mapped[bytes] = mapped_column(LargeBinary)
