"""The tables of images."""

from datetime import datetime
from typing import ClassVar

import sqlalchemy as sa
from sqlalchemy import CheckConstraint, ForeignKey, Index, LargeBinary, String
from sqlalchemy.orm import Mapped, MappedSQLExpression, column_property, mapped_column, relationship

from posting.db.base import Base, EditedAt, Identifier
from posting.db.types import new_id, now
from posting.images.codec import MAX_THUMBNAIL_BYTES, THUMBNAIL_SIDE
from posting.posts.models import Post


class Image(EditedAt):
    """An image of a post. Its bytes are in `ImageData` and never change."""

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
    has_thumbnail: ClassVar[MappedSQLExpression[bool]]  # declared below

    __table_args__ = (
        Index(None, post_id, created_at, id),
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


Image.has_thumbnail = column_property(
    sa.exists().where(Thumbnail.image_id == Image.id), deferred=True
)
