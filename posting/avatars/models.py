"""The table of avatars."""

from sqlalchemy import CheckConstraint, ForeignKey, LargeBinary
from sqlalchemy.orm import Mapped, mapped_column

from posting.db.base import Base, Identifier
from posting.db.types import new_id
from posting.images.codec import FACE_LIMITS

LARGE, SMALL = FACE_LIMITS.values()  # bytes


class Avatar(Base):
    """The avatar of a member, as square WebPs of 256 and 64 pixels. It never changes.

    `User.avatar_id` is its id, so that lists of authors read no other table. A new avatar has
    another id.
    """

    __tablename__ = "avatars"

    id: Mapped[str] = mapped_column(Identifier, primary_key=True, default=new_id)
    user_id: Mapped[str] = mapped_column(
        Identifier, ForeignKey("users.id", ondelete="CASCADE"), unique=True
    )
    data: Mapped[bytes] = mapped_column(LargeBinary)
    small: Mapped[bytes] = mapped_column(LargeBinary)

    __table_args__ = (
        CheckConstraint(f"length(data) BETWEEN 1 AND {LARGE}", name="size"),
        CheckConstraint(f"length(small) BETWEEN 1 AND {SMALL}", name="small_size"),
    )
