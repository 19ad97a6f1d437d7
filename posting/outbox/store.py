"""The SQL of the outbox. Features add to it, and `posting.outbox.delivery` takes from it."""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from flask import current_app

from posting.db.purge import purge_expired
from posting.db.transactions import Row, after_commit, execute, fetch_all, fetch_one, fetch_value
from posting.db.types import UtcDateTime, new_id, now
from posting.outbox.models import Outgoing

WAKE = "posting.outbox.wake"  # the extension of an app that delivers: an event
GIVE_UP_AFTER = timedelta(days=2)
PAUSES = tuple(timedelta(minutes=minutes) for minutes in (1, 5, 15, 60, 180, 360))
MAX_ERROR = 300  # characters

_COLUMNS = sa.inspect(Outgoing).columns
_INSERT = sa.insert(Outgoing)
_time = sa.bindparam("time", type_=UtcDateTime())
_DUE = (
    sa.select(Outgoing.id)
    .where(
        Outgoing.failed_at.is_(None),
        Outgoing.due_at <= _time,
        Outgoing.channel.in_(sa.bindparam("channels", expanding=True)),
    )
    .order_by(Outgoing.is_urgent.desc(), Outgoing.due_at, Outgoing.id)
    .limit(1)
)
_TAKE = (
    sa.update(Outgoing)
    .where(Outgoing.id.in_(sa.select(_DUE.with_for_update(skip_locked=True).cte("due"))))
    .values(due_at=sa.bindparam("lease_ends", type_=UtcDateTime()), attempts=Outgoing.attempts + 1)
    .returning(*_COLUMNS)
)
# Whoever has taken it last may say how it ended: nobody whose lease has ended.
_IS_MINE = sa.and_(Outgoing.id == sa.bindparam("own"), Outgoing.attempts == sa.bindparam("attempt"))
_FINISH = sa.delete(Outgoing).where(_IS_MINE)
_CHANGE = sa.update(Outgoing).where(_IS_MINE)


def enqueue(
    channel: str,
    kind: str,
    *,
    user_id: str | None = None,
    about: str | None = None,
    is_urgent: bool = False,
) -> None:
    """Add something that is to be sent, within the transaction that causes it.

    What is urgent, such as a link that somebody waits for, is sent before all others.
    """
    time = now()
    values: dict[str, Any] = {"id": new_id(), "channel": channel, "kind": kind}
    values |= {"user_id": user_id, "about": about, "is_urgent": is_urgent, "attempts": 0}
    execute(_INSERT, **values, queued_at=time, due_at=time)
    after_commit(_wake)


def _wake() -> None:
    """Wake the thread that delivers, if this process has one."""
    if event := current_app.extensions.get(WAKE):
        event.set()


def has_due(channels: Collection[str]) -> bool:
    """Return whether something is due for some channels. This takes no lock."""
    return fetch_one(_DUE, time=now(), channels=sorted(channels)) is not None


def take(channels: Collection[str], lease: timedelta) -> Row | None:
    """Take what is due first for some channels, or return None. Nobody else takes it meanwhile."""
    time = now()
    values = {"time": time, "lease_ends": time + lease, "channels": sorted(channels)}
    row: Row | None = execute(_TAKE, **values).one_or_none()
    return row


def finish(row: Row) -> None:
    """Delete what is sent, or what need not be sent any more."""
    execute(_FINISH, own=row.id, attempt=row.attempts)
    purge_expired(Outgoing)


def put_back(row: Row) -> None:
    """Let others take it again at once. This was no attempt."""
    values = {"due_at": row.queued_at, "attempts": row.attempts - 1}
    execute(_CHANGE.values(**values), own=row.id, attempt=row.attempts)


def postpone(row: Row, error: str) -> datetime | None:
    """Note a failure that may pass. Return when it is tried again, or None if it is given up."""
    due_at: datetime = now() + PAUSES[min(row.attempts, len(PAUSES)) - 1]
    if due_at > row.queued_at + GIVE_UP_AFTER:
        give_up(row, error)
        return None
    values = {"due_at": due_at, "error": error[:MAX_ERROR]}
    execute(_CHANGE.values(**values), own=row.id, attempt=row.attempts)
    return due_at


def give_up(row: Row, error: str) -> None:
    """Note a failure that does not pass."""
    values = {"failed_at": now(), "error": error[:MAX_ERROR]}
    execute(_CHANGE.values(**values), own=row.id, attempt=row.attempts)


def count_waiting() -> int:
    """Return how many things are to be sent."""
    count: int = fetch_value(sa.select(sa.func.count()).where(Outgoing.failed_at.is_(None)))
    return count


def count_failed() -> int:
    """Return how many things were given up, within the last 30 days."""
    count: int = fetch_value(sa.select(sa.func.count()).where(Outgoing.failed_at.is_not(None)))
    return count


def oldest_waiting() -> datetime | None:
    """Return since when the oldest of what is to be sent waits."""
    oldest: datetime | None = fetch_value(
        sa.select(sa.func.min(Outgoing.queued_at)).where(Outgoing.failed_at.is_(None))
    )
    return oldest


def list_outbox(limit: int) -> Sequence[Row]:
    """Return what was given up, and what is to be sent, in the order in which it was added."""
    is_waiting = Outgoing.failed_at.is_(None)
    statement = sa.select(*_COLUMNS).order_by(is_waiting, Outgoing.queued_at, Outgoing.id)
    return fetch_all(statement.limit(limit))


def retry(ids: Collection[str]) -> int:
    """Let some of what is there be tried at once and for two days, or all of it if `ids` is empty.

    Return how many there are.
    """
    time = now()
    values: dict[str, Any] = {"queued_at": time, "due_at": time, "attempts": 0}
    values |= {"failed_at": None, "error": None}
    return execute(sa.update(Outgoing).where(_are(ids)).values(**values)).rowcount


def drop(ids: Collection[str]) -> int:
    """Delete some of what is there, or all that was given up if `ids` is empty. Return how many."""
    which = _are(ids) if ids else Outgoing.failed_at.is_not(None)
    return execute(sa.delete(Outgoing).where(which)).rowcount


def _are(ids: Collection[str]) -> sa.ColumnElement[bool]:
    return Outgoing.id.in_(sorted(ids)) if ids else sa.true()
