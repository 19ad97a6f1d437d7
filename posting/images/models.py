"""The tables of images."""

from datetime import datetime

import sqlalchemy as sa
from sqlalchemy import CheckConstraint, ForeignKey, Index, LargeBinary, String
from sqlalchemy.orm import Mapped, column_property, mapped_column, relationship

from posting.db.base import Base, EditedAt, Identifier
from posting.db.types import new_id, now
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

    __table_args__ = (
        Index(None, post_id, created_at, id),
        CheckConstraint(
            "media_type IN ('image/png', 'image/jpeg', 'image/webp', 'image/gif')",
            name="media_type",
        ),
        CheckConstraint("width > 0 AND height > 0 AND size > 0", name="dimensions"),
        CheckConstraint("length(alt) <= 500", name="alt_length"),
    )


# Posts know nothing of images; see https://docs.sqlalchemy.org/en/21/orm/mapped_sql_expr.html
Post.has_images = column_property(sa.exists().where(Image.post_id == Post.id), deferred=True)


class ImageData(Base):
    """The bytes of an image, in a table of their own so that lists do not read them."""

    __tablename__ = "image_data"

    image_id: Mapped[str] = mapped_column(
        Identifier, ForeignKey("images.id", ondelete="CASCADE"), primary_key=True
    )
    data: Mapped[bytes] = mapped_column(LargeBinary)
