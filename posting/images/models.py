"""The tables of images."""

from datetime import datetime, timedelta
from typing import ClassVar

import sqlalchemy as sa
from sqlalchemy import CheckConstraint, ForeignKey, Index, LargeBinary, String
from sqlalchemy.orm import Mapped, MappedSQLExpression, column_property, mapped_column, relationship

from posting.db.base import Base, EditedAt, Identifier, partial_index
from posting.db.types import new_id, now
from posting.images.codec import MAX_THUMBNAIL_BYTES, SIZES, THUMBNAIL_SIDE
from posting.posts.models import Post


class Image(EditedAt):
    """An image of a post or of a comment, or one that is not attached to either yet.

    Its bytes are in `ImageData` and never change. An image of a comment also has the `post_id` of
    the comment. Only its owner can read an image that is not attached, and after a day it expires.
    Once it is attached, the author of the post or comment decides about it.
    """

    COUNT: ClassVar = "image_count"  # the column of posts and comments with the number of images
    EXPIRES = ("unattached_since", timedelta(days=1))

    __tablename__ = "images"

    id: Mapped[str] = mapped_column(Identifier, primary_key=True, default=new_id)
    post_id: Mapped[str | None] = mapped_column(
        Identifier, ForeignKey("posts.id", ondelete="CASCADE")
    )
    comment_id: Mapped[str | None] = mapped_column(
        Identifier, ForeignKey("comments.id", ondelete="CASCADE")
    )
    # Who has sent it, for the total of a member. Null if the account is deleted.
    owner_id: Mapped[str | None] = mapped_column(
        Identifier, ForeignKey("users.id", ondelete="SET NULL")
    )
    media_type: Mapped[str] = mapped_column(String(16))
    width: Mapped[int] = mapped_column()
    height: Mapped[int] = mapped_column()
    size: Mapped[int] = mapped_column()
    alt: Mapped[str | None] = mapped_column(String(500))
    # The place among the images of its post or comment. Those at the same place are in the order
    # in which they were sent.
    position: Mapped[int] = mapped_column(default=0, server_default="0")
    created_at: Mapped[datetime] = mapped_column(default=now)
    unattached_since: Mapped[datetime | None] = mapped_column()
    # When its sizes were made. `flask images thumbnails` makes those of other images.
    resized_at: Mapped[datetime | None] = mapped_column()

    post: Mapped[Post | None] = relationship()
    has_thumbnail: ClassVar[MappedSQLExpression[bool]]  # declared below

    __table_args__ = (
        Index(None, post_id, comment_id),
        Index(None, owner_id, post_id, size),
        partial_index(comment_id, where=comment_id.is_not(None)),
        partial_index(unattached_since, where=unattached_since.is_not(None)),
        CheckConstraint("(post_id IS NULL) = (unattached_since IS NOT NULL)", name="attached"),
        CheckConstraint("comment_id IS NULL OR post_id IS NOT NULL", name="comment"),
        CheckConstraint(
            "media_type IN ('image/png', 'image/jpeg', 'image/webp', 'image/gif')",
            name="media_type",
        ),
        CheckConstraint("width > 0 AND height > 0 AND size > 0", name="dimensions"),
        CheckConstraint("length(alt) <= 500", name="alt_length"),
    )


class ImageData(Base):
    """The bytes of an image, in a table of their own so that lists do not read them."""

    __tablename__ = "image_data"

    image_id: Mapped[str] = mapped_column(
        Identifier, ForeignKey("images.id", ondelete="CASCADE"), primary_key=True
    )
    data: Mapped[bytes] = mapped_column(LargeBinary)


class Thumbnail(Base):
    """A small WebP of an image. It never changes.

    An image has none if it was imported without one, until `flask images thumbnails` makes it.
    """

    __tablename__ = "thumbnails"

    image_id: Mapped[str] = mapped_column(
        Identifier, ForeignKey("images.id", ondelete="CASCADE"), primary_key=True
    )
    width: Mapped[int] = mapped_column()
    height: Mapped[int] = mapped_column()
    data: Mapped[bytes] = mapped_column(LargeBinary)

    __table_args__ = (
        CheckConstraint(
            f"width BETWEEN 1 AND {THUMBNAIL_SIDE} AND height BETWEEN 1 AND {THUMBNAIL_SIDE}",
            name="dimensions",
        ),
        CheckConstraint(f"length(data) BETWEEN 1 AND {MAX_THUMBNAIL_BYTES}", name="size"),
    )


class ImageSize(Base):
    """An image in a size for pages, as WebP. It never changes.

    A small image and an animation have none. An image from before version 1.1.0 has none until
    `flask images thumbnails` makes them.
    """

    __tablename__ = "image_sizes"

    image_id: Mapped[str] = mapped_column(
        Identifier, ForeignKey("images.id", ondelete="CASCADE"), primary_key=True
    )
    side: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    width: Mapped[int] = mapped_column()
    height: Mapped[int] = mapped_column()
    data: Mapped[bytes] = mapped_column(LargeBinary)

    __table_args__ = (
        CheckConstraint(f"side IN ({', '.join(map(str, SIZES))})", name="side"),
        CheckConstraint(
            "width BETWEEN 1 AND side AND height BETWEEN 1 AND side", name="dimensions"
        ),
        CheckConstraint(f"length(data) BETWEEN 1 AND {max(SIZES.values())}", name="size"),
    )


Image.has_thumbnail = column_property(
    sa.exists().where(Thumbnail.image_id == Image.id), deferred=True
)
