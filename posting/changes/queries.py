"""Reading the changes after a cursor."""

import re
from collections.abc import Mapping
from datetime import date, datetime, timedelta
from typing import Any, NamedTuple

import sqlalchemy as sa
from werkzeug.exceptions import Gone

from posting.changes import schemas
from posting.changes.models import Change
from posting.db.base import db
from posting.db.epoch import current_epoch
from posting.db.transactions import fetch_all, fetch_one
from posting.db.types import now
from posting.web.errors import InvalidInput, input_error
from posting.web.pagination import NOT_A_CURSOR
from posting.web.problems import Coded
from posting.web.rows import Item, columns, to_items

LIFETIME = timedelta(days=30)
# A cursor has a day and not a time, so that a response stays the same while nothing changes.
CURSOR = re.compile(r"([0-9a-f]{16})\.([0-9]{1,18})\.([0-9]{1,18})\.([0-9]{1,6})", re.ASCII)


class CursorExpired(Coded, Gone):
    error_code = "cursor_expired"
    description = "The changes after this cursor are not known. Read everything again."


class Place(NamedTuple):
    """A place in the order of commits, behind a change or between two of them."""

    transaction_id: int
    seq: int


class Cursor(NamedTuple):
    """A place in an epoch, with the day from which on the changes after it must be known."""

    epoch: str
    place: Place
    day: date

    def __str__(self) -> str:
        return f"{self.epoch}.{self.place.transaction_id}.{self.place.seq}.{self.day.toordinal()}"


_transaction, _seq = (sa.bindparam(name, type_=sa.BigInteger()) for name in Place._fields)
_END = sa.bindparam("end", type_=sa.BigInteger())
_CHANGES = (
    sa.select(*columns(schemas.Change, Change))
    .add_columns(sa.func.coalesce(Change.transaction_id, 0).label("transaction_id"), Change.seq)
    .limit(sa.bindparam("limit", type_=sa.Integer()) + 0)
)
# The end of the order: everything before it is committed or rolled back, and nothing will be added
# there. On Postgres it is before the oldest transaction that has not ended yet.
_ENDS: Mapping[str, sa.Select[int, int]] = {
    "sqlite": sa.select(sa.literal(0), sa.func.coalesce(sa.func.max(Change.seq), 0)),
    "postgresql": sa.select(
        sa.literal_column("pg_snapshot_xmin(pg_current_snapshot())::text::bigint", sa.BigInteger()),
        sa.literal(0),
    ),
}
_CHANGES_AFTER: Mapping[str, sa.Select[*tuple[Any, ...]]] = {
    "sqlite": _CHANGES.where(Change.seq > _seq).order_by(Change.seq),
    "postgresql": _CHANGES.where(
        sa.tuple_(Change.transaction_id, Change.seq) > sa.tuple_(_transaction, _seq),
        Change.transaction_id < _END,
    ).order_by(Change.transaction_id, Change.seq),
}


def list_changes(after: str | None, limit: int) -> tuple[list[Item], str]:
    """Return changes after a cursor, and the next cursor. Without a cursor, there are none.

    Raise 410 for a cursor that has expired, and 422 for any other text.
    """
    dialect, today = db.engine.dialect.name, now().date()
    epoch = current_epoch()
    end = Place(*(fetch_one(_ENDS[dialect]) or ()))
    if after is None:
        return [], str(Cursor(epoch, end, today))
    cursor = _read_cursor(after)
    if cursor.epoch != epoch or today - cursor.day > LIFETIME or cursor.place > end:
        raise CursorExpired
    values = {**cursor.place._asdict(), "end": end.transaction_id, "limit": limit}
    items = to_items(fetch_all(_CHANGES_AFTER[dialect], **values))
    places = [Place(item.pop("transaction_id"), item.pop("seq")) for item in items]
    day = today
    if len(items) == limit:  # more may follow, and be nearly as old
        day = min(today, datetime.fromisoformat(items[-1]["at"]).date())
    return items, str(Cursor(epoch, places[-1] if places else cursor.place, day))


def _read_cursor(text: str) -> Cursor:
    match = CURSOR.fullmatch(text)
    if match and 0 < int(match[4]) <= date.max.toordinal():
        place = Place(int(match[2]), int(match[3]))
        return Cursor(match[1], place, date.fromordinal(int(match[4])))
    raise InvalidInput([input_error(NOT_A_CURSOR, parameter="after")])
