"""Planning of what is mailed by the clock: digests and letters."""

from collections.abc import Sequence
from datetime import datetime, timedelta

import sqlalchemy as sa
from sqlalchemy.orm import InstrumentedAttribute

from posting.db.transactions import execute, fetch_one
from posting.db.types import UtcDateTime, now
from posting.mail.models import DIGEST, MAIL, WEEKLY, WEEKLY_LETTER, Mailbox
from posting.mail.mornings import next_morning
from posting.mail.store import GETS_MAILS
from posting.notifications.models import Notification
from posting.outbox.store import enqueue_all

PLANNED_AT_ONCE = 200  # members
LONGEST_PERIOD = timedelta(days=8)  # between two weekly mails, even if clocks are changed
STILL_OPEN = timedelta(seconds=30)  # the longest time in which a comment is written

_TIME = sa.bindparam("time", type_=UtcDateTime())
_has_news = sa.exists().where(
    Notification.user_id == Mailbox.user_id,
    Notification.read_at.is_(None),
    sa.or_(Notification.created_at > Mailbox.digested_until, Mailbox.digested_until > _TIME),
)


def _is_due(column: InstrumentedAttribute[datetime | None]) -> sa.ColumnElement[bool]:
    """Return the condition that a time has come, or was set by a clock that was far ahead."""
    return sa.or_(column <= _TIME, column > sa.bindparam("far_off", type_=UtcDateTime()))


_DIGESTS = (
    sa.select(
        *(Mailbox.user_id, Mailbox.mail, Mailbox.time_zone, Mailbox.digested_until),
        sa.and_(GETS_MAILS, _has_news).label("is_wanted"),
    )
    .where(_is_due(Mailbox.digest_at))
    .order_by(Mailbox.digest_at, Mailbox.user_id)
    .limit(PLANNED_AT_ONCE)
)
_LETTERS = (
    sa.select(Mailbox.user_id, Mailbox.time_zone, GETS_MAILS.label("is_wanted"))
    .where(_is_due(Mailbox.letter_at))
    .order_by(Mailbox.letter_at, Mailbox.user_id)
    .limit(PLANNED_AT_ONCE)
)
_next = sa.bindparam("next", type_=UtcDateTime())
_NEXT_DIGEST = (
    sa.update(Mailbox).where(Mailbox.user_id == sa.bindparam("owner")).values(digest_at=_next)
)
_NEXT_LETTER = (
    sa.update(Mailbox).where(Mailbox.user_id == sa.bindparam("owner")).values(letter_at=_next)
)


def has_due_mails() -> bool:
    """Return whether a daily or weekly mail is due. This takes no lock."""
    return any(fetch_one(each.limit(1), **_due_times()) for each in (_DIGESTS, _LETTERS))


def _due_times() -> dict[str, datetime]:
    time = now()
    return {"time": time, "far_off": time + LONGEST_PERIOD}


def plan_digests() -> bool:
    """Add the digests that are due to the outbox. Return whether there may be more.

    Members who have nothing to read get none. What was written in the last half minute is left to
    the next digest, since its transaction may not have ended.
    """
    statement = _DIGESTS.with_for_update(of=Mailbox, skip_locked=True)
    rows = execute(statement, **_due_times()).all()
    time = now()
    until = time - STILL_OPEN
    _plan_next(
        _NEXT_DIGEST.values(digested_until=until),
        [
            (row.user_id, next_morning(row.time_zone, time, on_monday=row.mail == WEEKLY))
            for row in rows
        ],
    )
    # Not more than a period, and nothing later than now, if a clock was wrong.
    wanted = [
        (row.user_id, max(until - LONGEST_PERIOD, min(row.digested_until, until)))
        for row in rows
        if row.is_wanted
    ]
    enqueue_all(MAIL, DIGEST, wanted, time=until)
    return len(rows) == PLANNED_AT_ONCE


def plan_letters() -> bool:
    """Add the letters that are due to the outbox. Return whether there may be more."""
    statement = _LETTERS.with_for_update(of=Mailbox, skip_locked=True)
    rows = execute(statement, **_due_times()).all()
    time = now()
    _plan_next(
        _NEXT_LETTER,
        [(row.user_id, next_morning(row.time_zone, time, on_monday=True)) for row in rows],
    )
    enqueue_all(MAIL, WEEKLY_LETTER, [(row.user_id, None) for row in rows if row.is_wanted])
    return len(rows) == PLANNED_AT_ONCE


def _plan_next(statement: sa.Update, times: Sequence[tuple[str, datetime]]) -> None:
    """Set when some members get their next mail."""
    if times:
        execute(statement, [{"owner": user_id, "next": time} for user_id, time in times])
