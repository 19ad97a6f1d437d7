"""Deletion of expired rows, which a clock that jumps does not make expire.

Nothing tells a clock that is wrong from a service that was not used for weeks. So rows expire by a
time of their own, which follows the clock. If the clock has moved by more than a day since it was
last read, this time follows by two days at most. A clock that is ahead for an hour makes rows
expire two days early, however far ahead it is.
After a pause of weeks, this time is late, and catches up by a day on each day.
"""

from datetime import datetime, timedelta
from typing import Protocol

import sqlalchemy as sa

from posting.db.epoch import Epoch
from posting.db.transactions import execute, fetch_all
from posting.db.types import now

MAX_ROWS = 100
DAY = timedelta(days=1)
# What must not be deleted early because of a jump expires this much later.
MAX_STEP = timedelta(days=2)

_CLOCK = sa.select(Epoch.clock_read_at, Epoch.trusted_at)
_LOCK_CLOCK = _CLOCK.with_for_update(skip_locked=True)


class Expiring(Protocol):
    """A model whose rows expire."""

    EXPIRES: tuple[str, timedelta]  # the name of a timestamp, and the time from it to the end


def purge_expired(model: type[Expiring], most: int = MAX_ROWS) -> None:
    """Delete the oldest expired rows of a table. Call this where rows are added to it.

    Locked rows are skipped. Call this after all other statements that lock rows of the table, so
    that it cannot deadlock.
    """
    name, lifetime = model.EXPIRES
    timestamp, key = getattr(model, name), sa.inspect(model).primary_key
    expired = sa.select(*key).where(timestamp < trusted_now() - lifetime).order_by(timestamp)
    oldest = expired.limit(most).with_for_update(skip_locked=True)
    # A CTE, because Postgres may execute a subquery again for each row, and then it deletes more.
    execute(sa.delete(model).where(sa.tuple_(*key).in_(sa.select(oldest.cte("oldest")))))


def trusted_now() -> datetime:
    """Return the time by which rows expire, within a transaction. It is never later than now."""
    time: datetime = now()
    [clock] = fetch_all(_CLOCK)
    # Both are null until the clock is read for the first time.
    read_at: datetime = clock.clock_read_at or time
    trusted: datetime = clock.trusted_at or time
    if clock.clock_read_at and abs(time - read_at) < DAY:
        return min(time, trusted + max(time - read_at, timedelta()))
    if execute(_LOCK_CLOCK).all():  # otherwise, another transaction does this
        trusted += max(-MAX_STEP, min(MAX_STEP, time - trusted))
        execute(sa.update(Epoch).values(clock_read_at=time, trusted_at=trusted))
    return min(time, trusted)
