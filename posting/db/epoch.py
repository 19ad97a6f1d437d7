"""The epoch of the database: a text that changes when its content returns to an earlier state.

Positions in the order of commits, such as those in cursors, count only within one epoch.
"""

import hashlib
import secrets
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy import BigInteger, String
from sqlalchemy.orm import Mapped, mapped_column

from posting.db.base import NOT_ARCHIVED, Base, Identifier, db
from posting.db.transactions import fetch_all
from posting.db.types import new_id, now

# The number of points of the curve P-256 (NIST SP 800-186).
P256_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551


def new_push_key() -> str:
    """Return a new private key of P-256 in base64url, by which push services know the service."""
    number = 1 + secrets.randbelow(P256_ORDER - 1)
    return urlsafe_b64encode(number.to_bytes(32)).decode().rstrip("=")


class Epoch(Base):
    """A random id, which restores and imports replace. The table has one row.

    The row also has what deletions of old rows remember: the place up to which the order of commits
    is no longer known, which counts only in `purged_epoch`, and the time of `posting.db.purge`. It
    has the private key of web push as well, which belongs to this database.
    """

    __tablename__ = "epochs"

    id: Mapped[str] = mapped_column(Identifier, primary_key=True)
    purged_transaction_id: Mapped[int] = mapped_column(
        BigInteger, default=0, server_default=sa.text("0")
    )
    purged_seq: Mapped[int] = mapped_column(BigInteger, default=0, server_default=sa.text("0"))
    purged_epoch: Mapped[str | None] = mapped_column(String(16))  # of `current_epoch`
    clock_read_at: Mapped[datetime | None] = mapped_column()
    trusted_at: Mapped[datetime | None] = mapped_column()
    push_key: Mapped[str | None] = mapped_column(String(43), default=new_push_key)

    __table_args__ = (NOT_ARCHIVED,)


# Postgres has restores of its own. Another cluster has another identifier, another database or a
# table that was created again another OID, and a server that was promoted or returned to an earlier
# time another timeline. The number of the timeline is that of the last checkpoint, so an epoch may
# change a little late, but it does change.
_PARTS: Mapping[str, sa.TextClause] = {
    "sqlite": sa.text("SELECT (SELECT id FROM epochs)"),
    "postgresql": sa.text(
        "SELECT (SELECT id FROM epochs), system_identifier, timeline_id, 'epochs'::regclass::oid,"
        " (SELECT oid FROM pg_database WHERE datname = current_database())"
        " FROM pg_control_system(), pg_control_checkpoint()"
    ),
}


def current_epoch() -> str:
    """Return the epoch as 16 hexadecimal digits."""
    [row] = fetch_all(_PARTS[db.engine.dialect.name])
    parts = " ".join(map(str, row))
    return hashlib.blake2b(parts.encode(), digest_size=8).hexdigest()


def renew_epoch(connection: sa.Connection) -> None:
    """Begin another epoch, within the transaction of the connection.

    The clock is read, so that rows do not expire if it jumps before the first row expires.
    """
    time = now()
    connection.execute(sa.delete(Epoch))
    values = {"id": new_id(), "clock_read_at": time, "trusted_at": time}
    connection.execute(sa.insert(Epoch), values)
