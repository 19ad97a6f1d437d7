"""The SQL of the outbox. Features add to it, and `posting.outbox.delivery` takes from it."""

from collections.abc import Collection, Sequence
from datetime import timedelta
from typing import Any

import sqlalchemy as sa
from flask import current_app

from posting.db.purge import purge_expired
from posting.db.transactions import Row, after_commit, execute, fetch_all, fetch_one, fetch_value
from posting.db.types import UtcDateTime, new_id, now
from posting.outbox.models import ORDINARY, URGENT, Outgoing

WAKE = "posting.outbox.wake"  # the extension of an app that delivers: an event
GIVE_UP_AFTER = timedelta(days=2)
PAUSES = tuple(timedelta(minutes=minutes) for minutes in (1, 5, 15, 60, 180, 360))
MAX_ERROR = 300  # characters

_COLUMNS = sa.inspect(Outgoing).columns
_INSERT = sa.insert(Outgoing)
_IS_WAITING, _HAS_FAILED = Outgoing.failed_at.is_(None), Outgoing.failed_at.is_not(None)
_time = sa.bindparam("time", type_=UtcDateTime())
_HAS_DUE = (
    sa.select(Outgoing.id)
    .where(
        _IS_WAITING,
        Outgoing.channel.in_(sa.bindparam("channels", expanding=True)),
        Outgoing.rank.in_((URGENT, ORDINARY)),
        Outgoing.due_at <= _time,
    )
    .limit(1)
)
# For one rank, so that an index has the rows that are due in their order.
_DUE = (
    sa.select(Outgoing.id)
    .where(
        _IS_WAITING,
        Outgoing.channel == sa.bindparam("for_channel"),
        Outgoing.rank == sa.bindparam("for_rank"),
        Outgoing.due_at <= _time,
    )
    .order_by(Outgoing.due_at, Outgoing.id)
    .limit(1)
    .with_for_update(skip_locked=True)
)
_TAKE = (
    sa.update(Outgoing)
    .where(Outgoing.id.in_(sa.select(_DUE.cte("due"))))
    .values(
        due_at=sa.bindparam("lease_ends", type_=UtcDateTime()),
        is_taken=True,
        turn=Outgoing.turn + 1,
        attempts=Outgoing.attempts + 1,
    )
    .returning(*_COLUMNS)
)
# A process may change a row only if no other process has taken the row since.
_IS_MINE = sa.and_(Outgoing.id == sa.bindparam("own"), Outgoing.turn == sa.bindparam("own_turn"))
_FINISH = sa.delete(Outgoing).where(_IS_MINE)
_RETURN = sa.update(Outgoing).where(_IS_MINE).values(is_taken=False)


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
    values |= {"user_id": user_id, "about": about, "queued_at": time, "due_at": time}
    values |= {"rank": URGENT if is_urgent else ORDINARY}
    execute(_INSERT, **values, is_taken=False, turn=0, attempts=0)
    after_commit(_wake)


def _wake() -> None:
    """Wake the thread that delivers, if this process has one."""
    if event := current_app.extensions.get(WAKE):
        event.set()


def has_due(channels: Collection[str]) -> bool:
    """Return whether something is due for some channels. This takes no lock."""
    return fetch_one(_HAS_DUE, time=now(), channels=sorted(channels)) is not None


def take(channel: str, lease: timedelta) -> Row | None:
    """Take what is due first for a channel, or return None. Nobody else takes it meanwhile."""
    time = now()
    for rank in (URGENT, ORDINARY):
        values = {
            "time": time,
            "lease_ends": time + lease,
            "for_channel": channel,
            "for_rank": rank,
        }
        if row := execute(_TAKE, **values).one_or_none():
            return row
    return None


def finish(row: Row) -> None:
    """Delete what is sent, or what need not be sent any more."""
    execute(_FINISH, own=row.id, own_turn=row.turn)
    purge_expired(Outgoing)


def put_back(row: Row, error: str | None = None) -> None:
    """Let others take it again at once. This was no attempt, unless it is given up now."""
    if now() > row.queued_at + GIVE_UP_AFTER:
        give_up(row, error or "It has waited for too long")
        return
    _return(row, due_at=row.queued_at, attempts=row.attempts - 1)


def postpone(row: Row, error: str) -> bool:
    """Note a failure that may pass. Return False if it is given up, because it is too old."""
    due_at = now() + PAUSES[min(row.attempts, len(PAUSES)) - 1]
    if due_at > row.queued_at + GIVE_UP_AFTER:
        give_up(row, error)
        return False
    _return(row, due_at=due_at, error=one_line(error))
    return True


def give_up(row: Row, error: str) -> None:
    """Note a failure that does not pass."""
    _return(row, failed_at=now(), error=one_line(error))
    purge_expired(Outgoing)


def _return(row: Row, **values: Any) -> None:
    execute(_RETURN.values(**values), own=row.id, own_turn=row.turn)


def one_line(error: str) -> str:
    """Return an error as it is stored: a server may answer anything, such as U+0000."""
    printable = "".join(each if each.isprintable() else " " for each in error)
    return " ".join(printable.split())[:MAX_ERROR]


def count_waiting() -> int:
    """Return how many things are to be sent."""
    count: int = fetch_value(sa.select(sa.func.count()).where(_IS_WAITING))
    return count


def count_failed() -> int:
    """Return how many things were given up, within the last 30 days."""
    count: int = fetch_value(sa.select(sa.func.count()).where(_HAS_FAILED))
    return count


def list_outbox(limit: int) -> Sequence[Row]:
    """Return what was given up, and then what is to be sent, in the order of its addition."""
    statement = sa.select(*_COLUMNS).order_by(_IS_WAITING, Outgoing.queued_at, Outgoing.id)
    return fetch_all(statement.limit(limit))


def is_being_sent(row: Row) -> bool:
    """Return whether somebody has taken a row, and the lease has not ended."""
    return bool(row.is_taken and row.due_at > now())


def retry(ids: Collection[str]) -> int:
    """Let some of what is there be tried at once and for two days, or all of it if `ids` is empty.

    What is being sent stays as it is. Return how many rows have changed.
    """
    time = now()
    values: dict[str, Any] = {"queued_at": time, "due_at": time, "attempts": 0}
    values |= {"failed_at": None, "error": None}
    is_free = sa.or_(~Outgoing.is_taken, Outgoing.due_at <= time)
    statement = sa.update(Outgoing).where(is_free)
    if ids:
        statement = statement.where(Outgoing.id.in_(sorted(ids)))
    return execute(statement.values(**values)).rowcount


def drop(ids: Collection[str]) -> int:
    """Delete some of what is there, or all that was given up if `ids` is empty. Return how many."""
    which = Outgoing.id.in_(sorted(ids)) if ids else _HAS_FAILED
    return execute(sa.delete(Outgoing).where(which)).rowcount
