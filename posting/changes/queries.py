"""Reading the changes after a cursor."""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import sqlalchemy as sa
from werkzeug.exceptions import Gone

from posting.changes import schemas
from posting.changes.models import Change
from posting.db.base import db
from posting.db.epoch import Epoch, current_epoch
from posting.db.transactions import fetch_all, fetch_one
from posting.web.errors import InvalidInput, input_error
from posting.web.pagination import NOT_A_CURSOR
from posting.web.problems import Coded
from posting.web.rows import Item, columns, to_items

CURSOR = re.compile(r"([0-9a-f]{16})\.([0-9]{1,18})\.([0-9]{1,18})", re.ASCII)


class CursorExpired(Coded, Gone):
    error_code = "cursor_expired"
    description = "The changes after this cursor are not known. Read everything again."


class Place(NamedTuple):
    """A place in the order of commits, behind a change or between two of them."""

    transaction_id: int
    seq: int


class Cursor(NamedTuple):
    """A place in an epoch."""

    epoch: str
    place: Place

    def __str__(self) -> str:
        return f"{self.epoch}.{self.place.transaction_id}.{self.place.seq}"


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
# The place of the last change that was purged.
_PURGED = sa.select(Epoch.purged_transaction_id, Epoch.purged_seq, Epoch.purged_epoch)
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
    dialect = db.engine.dialect.name
    epoch = current_epoch()
    end = Place(*(fetch_one(_ENDS[dialect]) or ()))
    if after is None:
        return [], str(Cursor(epoch, end))
    cursor = _read_cursor(after)
    if cursor.epoch != epoch or cursor.place > end:
        raise CursorExpired
    values = {**cursor.place._asdict(), "end": end.transaction_id, "limit": limit}
    items = to_items(fetch_all(_CHANGES_AFTER[dialect], **values))
    # Last, because changes may have been purged since.
    [(*purged, purged_epoch)] = fetch_all(_PURGED)
    if purged_epoch == epoch and cursor.place < Place(*purged):
        raise CursorExpired
    places = [Place(item.pop("transaction_id"), item.pop("seq")) for item in items]
    return items, str(Cursor(epoch, places[-1] if places else cursor.place))


def _read_cursor(text: str) -> Cursor:
    if match := CURSOR.fullmatch(text):
        return Cursor(match[1], Place(int(match[2]), int(match[3])))
    raise InvalidInput([input_error(NOT_A_CURSOR, parameter="after")])
