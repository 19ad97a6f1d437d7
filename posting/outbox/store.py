"""The SQL of the outbox. Features add to it, and `posting.outbox.delivery` takes from it."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from flask import current_app

from posting.db.purge import purge_expired
from posting.db.transactions import Row, after_commit, execute, fetch_all, fetch_one, fetch_value
from posting.db.types import UtcDateTime, new_id, now
from posting.outbox.models import ORDINARY, URGENT, Outgoing

WAKE = "posting.outbox.wake"  # the extension of an app that delivers: functions that wake it
GIVE_UP_AFTER = timedelta(days=2)
PAUSES = tuple(timedelta(minutes=minutes) for minutes in (1, 5, 15, 60, 180, 360))
MAX_ERROR = 300  # characters

TOO_OLD = "It has waited for too long"

_COLUMNS = sa.inspect(Outgoing).columns
_INSERT = sa.insert(Outgoing)
_IS_WAITING, _HAS_FAILED = Outgoing.failed_at.is_(None), Outgoing.failed_at.is_not(None)
_time = sa.bindparam("time", type_=UtcDateTime())
_HAS_DUE = (
    sa.select(Outgoing.id)
    .where(
        _IS_WAITING,
        Outgoing.channel == sa.bindparam("for_channel"),
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


class TooOldError(Exception):
    """A row has waited for so long that it is not sent any more."""


def enqueue(
    channel: str,
    kind: str,
    *,
    user_id: str | None = None,
    about: str | None = None,
    about_at: datetime | None = None,
    is_urgent: bool = False,
) -> None:
    """Add something that is to be sent, within the transaction that causes it.

    What is urgent, such as a link that somebody waits for, is sent before all others.
    """
    recipients = [(user_id, about_at)]
    enqueue_all(channel, kind, recipients, about=about, rank=URGENT if is_urgent else ORDINARY)


def enqueue_all(
    channel: str,
    kind: str,
    recipients: Iterable[tuple[str | None, datetime | None]],
    *,
    about: str | None = None,
    rank: int = ORDINARY,
    time: datetime | None = None,
) -> None:
    """Add one row for each recipient, with a time that belongs to it. Otherwise like `enqueue`.

    `time` is when it was added, if that is not now.
    """
    time = time or now()
    common = {"kind": kind, "about": about, "rank": rank, "queued_at": time, "due_at": time}
    add_rows(
        channel,
        [common | {"user_id": user_id, "about_at": about_at} for user_id, about_at in recipients],
    )


def add_rows(channel: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Add rows with some of their columns, such as an `id` by which the row can be found again."""
    if not rows:
        return
    time = now()
    defaults: dict[str, Any] = {"channel": channel, "user_id": None, "about": None}
    defaults |= {"about_at": None, "rank": ORDINARY, "queued_at": time, "due_at": time}
    defaults |= {"is_taken": False, "turn": 0, "attempts": 0}
    execute(_INSERT, [{"id": new_id(), **defaults, **row} for row in rows])
    after_commit(_wake)


def _wake() -> None:
    """Wake the threads that deliver, if this process has them."""
    for wake in current_app.extensions.get(WAKE, ()):
        wake()


def has_due(channel: str) -> bool:
    """Return whether something is due for a channel. This takes no lock."""
    return fetch_one(_HAS_DUE, time=now(), for_channel=channel) is not None


def take(channel: str, lease: timedelta, *, only_urgent: bool = False) -> Row | None:
    """Take what is due first for a channel, or return None. Nobody else takes it meanwhile."""
    time = now()
    for rank in (URGENT,) if only_urgent else (URGENT, ORDINARY):
        values = {
            "time": time,
            "lease_ends": time + lease,
            "for_channel": channel,
            "for_rank": rank,
        }
        if row := execute(_TAKE, **values).one_or_none():
            return row
    return None


def finish(row: Row) -> bool:
    """Delete what is sent, or what need not be sent any more. Return False if another has it."""
    is_mine = bool(execute(_FINISH, own=row.id, own_turn=row.turn).rowcount)
    purge_expired(Outgoing)
    return is_mine


def require_young(row: Row) -> None:
    """Raise TooOldError if a row has waited for two days, such as while the service was off."""
    if _is_old(row):
        raise TooOldError(TOO_OLD)


def _is_old(row: Row, time: datetime | None = None) -> bool:
    """Return whether a row is given up now, or at another time."""
    return bool((time or now()) > (row.tried_since or row.queued_at) + GIVE_UP_AFTER)


def put_back(row: Row, error: str | None = None) -> None:
    """Make a row available again at once. The attempt does not count.

    If the row is too old, give it up.
    """
    if _is_old(row):
        give_up(row, error or TOO_OLD)
        return
    _return(row, due_at=row.tried_since or row.queued_at, attempts=row.attempts - 1)


def wait(row: Row, until: datetime, reason: str) -> None:
    """Make a row available again at a time. The attempt does not count."""
    _return(row, due_at=until, attempts=row.attempts - 1, error=one_line(reason))


def delay_all(ids: sa.Select[str], until: datetime) -> None:
    """Let rows with some ids wait until a time, unless they are being sent."""
    waits = sa.and_(_IS_WAITING, ~Outgoing.is_taken, Outgoing.due_at < until)
    statement = sa.update(Outgoing).where(Outgoing.id.in_(ids), waits)
    execute(statement.values(due_at=until))


def postpone(row: Row, error: str) -> bool:
    """Note a failure that may pass. Return False if it is given up, because it is too old."""
    due_at = now() + PAUSES[min(row.attempts, len(PAUSES)) - 1]
    if _is_old(row, due_at):
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
    values: dict[str, Any] = {"tried_since": time, "due_at": time, "attempts": 0}
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
