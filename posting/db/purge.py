"""Deletion of expired rows."""

from datetime import timedelta
from typing import Protocol

import sqlalchemy as sa

from posting.db.transactions import execute
from posting.db.types import now

MAX_ROWS = 100


class Expiring(Protocol):
    """A model whose rows expire."""

    EXPIRES: tuple[str, timedelta]  # the name of a timestamp, and the time from it to the end


def purge_expired(model: type[Expiring]) -> None:
    """Delete the oldest hundred expired rows of a table. Call this where rows are added to it.

    Locked rows are skipped. Call this after all other statements that lock rows of the table, so
    that it cannot deadlock.
    """
    name, lifetime = model.EXPIRES
    timestamp, key = getattr(model, name), sa.inspect(model).primary_key
    expired = sa.select(*key).where(timestamp < now() - lifetime).order_by(timestamp)
    oldest = expired.limit(MAX_ROWS).with_for_update(skip_locked=True)
    # A CTE, because Postgres may execute a subquery again for each row, and then it deletes more.
    execute(sa.delete(model).where(sa.tuple_(*key).in_(sa.select(oldest.cte("oldest")))))
