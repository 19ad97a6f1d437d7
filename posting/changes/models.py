"""The table of changes."""

from datetime import datetime, timedelta

from sqlalchemy import BigInteger, CheckConstraint, Identity, Integer, String
from sqlalchemy.orm import Mapped, mapped_column

from posting.db.base import NOT_ARCHIVED, Base, Identifier, partial_index

KINDS = POST, COMMENT, IMAGE = ("post", "comment", "image")
CHANGES = CREATED, EDITED, DELETED = ("created", "edited", "deleted")
# Two days longer than a cursor, because transactions take time, and clocks of machines differ.
LIFETIME = timedelta(days=32)


class Change(Base):
    """A change of a post, comment or image, which outlives the object: there are no foreign keys.

    The order of `seq` is that of the commits on SQLite, which has one writer at a time. On
    Postgres, a transaction with a lower `seq` may be committed later. There, changes are read in
    the order of `transaction_id` and `seq`, once all earlier transactions have ended.

    SQLite gives the number after the highest one to a new row. So no number is given twice, because
    the last change is never purged. A transaction that is rolled back gives its numbers back. No
    client has seen them.
    """

    __tablename__ = "changes"

    seq: Mapped[int] = mapped_column(
        BigInteger().with_variant(Integer(), "sqlite"), Identity(), primary_key=True
    )
    transaction_id: Mapped[int | None] = mapped_column(BigInteger)  # null on SQLite
    kind: Mapped[str] = mapped_column(String(8))
    id: Mapped[str] = mapped_column(Identifier)
    post_id: Mapped[str] = mapped_column(Identifier)
    change: Mapped[str] = mapped_column(String(8))
    at: Mapped[datetime] = mapped_column()

    __table_args__ = (
        # Empty on SQLite, where a change costs no page of an index.
        partial_index(transaction_id, seq, where=transaction_id.is_not(None)),
        CheckConstraint("kind IN ('post', 'comment', 'image')", name="kind"),
        CheckConstraint("change IN ('created', 'edited', 'deleted')", name="change"),
        NOT_ARCHIVED,
    )
