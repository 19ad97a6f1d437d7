"""Deletion of expired rows."""

from datetime import timedelta
from typing import Protocol

import sqlalchemy as sa

from posting.db.transactions import execute
from posting.db.types import now

MAX_ROWS = 100


class Expiring(Protocol):
    """A table whose rows expire: the name of a timestamp, and how long after it."""

    EXPIRES: tuple[str, timedelta]


def purge_expired(model: type[Expiring]) -> None:
    """Delete the oldest hundred expired rows of a table; call this where rows are added to it.

    Skip locked rows. Call this last among the statements that lock such rows, so that the delete
    cannot deadlock.
    """
    name, lifetime = model.EXPIRES
    timestamp, key = getattr(model, name), sa.inspect(model).primary_key
    expired = sa.select(*key).where(timestamp < now() - lifetime).order_by(timestamp)
    oldest = expired.limit(MAX_ROWS).with_for_update(skip_locked=True)
    execute(sa.delete(model).where(sa.tuple_(*key).in_(oldest)))
