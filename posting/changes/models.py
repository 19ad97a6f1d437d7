"""The table of changes."""

from datetime import datetime, timedelta

from sqlalchemy import BigInteger, CheckConstraint, Identity, Integer, String
from sqlalchemy.orm import Mapped, mapped_column

from posting.db.base import NOT_ARCHIVED, Base, Identifier, partial_index
from posting.db.purge import MAX_STEP

KINDS = ("post", "comment", "image", "user")
CHANGES = ("created", "edited", "deleted")
LIFETIME = timedelta(days=30) + MAX_STEP


class Change(Base):
    """A change of an object, which the change outlives: there are no foreign keys.

    The order of `seq` is that of the commits on SQLite, which has one writer at a time. On
    Postgres, a transaction with a lower `seq` may be committed later. There, changes are read in
    the order of `transaction_id` and `seq`, once all earlier transactions have ended.

    SQLite gives the number after the highest one to a new row. So no number is given twice, because
    the last change is never purged. A transaction that is rolled back gives its numbers back. No
    client has seen them.

    A change of an account belongs to no post.
    """

    __tablename__ = "changes"

    seq: Mapped[int] = mapped_column(
        BigInteger().with_variant(Integer(), "sqlite"), Identity(), primary_key=True
    )
    transaction_id: Mapped[int | None] = mapped_column(BigInteger)  # null on SQLite
    kind: Mapped[str] = mapped_column(String(8))
    id: Mapped[str] = mapped_column(Identifier)
    post_id: Mapped[str | None] = mapped_column(Identifier)
    change: Mapped[str] = mapped_column(String(8))
    at: Mapped[datetime] = mapped_column()

    __table_args__ = (
        # Empty on SQLite, where a change costs no page of an index.
        partial_index(transaction_id, seq, where=transaction_id.is_not(None)),
        CheckConstraint("kind IN ('post', 'comment', 'image', 'user')", name="kind"),
        CheckConstraint("change IN ('created', 'edited', 'deleted')", name="change"),
        NOT_ARCHIVED,
    )
