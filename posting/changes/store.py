"""The SQL of the log of changes: additions within the transactions of the changes, and reading."""

import re
from collections.abc import Mapping
from functools import cache
from typing import Any, Literal, NamedTuple

import sqlalchemy as sa
from werkzeug.exceptions import Gone

from posting.changes import schemas
from posting.changes.models import LIFETIME, Change
from posting.comments.models import Comment
from posting.db.base import db
from posting.db.epoch import Epoch, current_epoch
from posting.db.purge import trusted_now
from posting.db.transactions import execute, fetch_all, fetch_one, fetch_value
from posting.db.types import UtcDateTime, now
from posting.images.models import Image
from posting.posts.models import Post
from posting.web.errors import Coded, InvalidInput, input_error
from posting.web.pagination import NOT_A_CURSOR
from posting.web.schemas import Item, columns, to_items

Kind = Literal["post", "comment", "image", "user"]
Verb = Literal["created", "edited", "deleted"]

CURSOR = re.compile(r"([0-9a-f]{16})\.([0-9]{1,18})\.([0-9]{1,18})", re.ASCII)
PURGE_EVERY = 64  # changes, so that few of the writes have to purge
MAX_PURGED = 200


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


_XID: Mapping[str, sa.ColumnElement[Any]] = {
    "sqlite": sa.null(),
    "postgresql": sa.cast(sa.cast(sa.func.pg_current_xact_id(), sa.Text()), sa.BigInteger()),
}
# A change with this transaction or a later one is from another server, by pg_restore.
_NEXT_XID: Mapping[str, sa.ColumnElement[int]] = {
    "sqlite": sa.literal(1),
    "postgresql": sa.literal_column(
        "pg_snapshot_xmax(pg_current_snapshot())::text::bigint", sa.BigInteger()
    ),
}
_POSTS: sa.BindParameter[Any] = sa.bindparam("posts", expanding=True)
_TIME = sa.bindparam("time", type_=UtcDateTime())
_first = sa.select(Change.seq, Change.at).order_by(Change.seq).limit(MAX_PURGED)
_first = _first.with_for_update(skip_locked=True)
# A CTE, because Postgres may execute a subquery again for each row, and then it deletes more.
_oldest = _first.cte("oldest")
_PURGE = (
    sa.delete(Change)
    .where(Change.seq.in_(sa.select(_oldest.c.seq).where(_oldest.c.at < _TIME)))
    .returning(sa.func.coalesce(Change.transaction_id, 0).label("transaction_id"), Change.seq)
)
_LOCK_PURGED = sa.select(Epoch.purged_transaction_id, Epoch.purged_seq, Epoch.purged_epoch)
_LOCK_PURGED = _LOCK_PURGED.with_for_update(skip_locked=True)
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


def record_change(kind: Kind, id: str, post_id: str | None, change: Verb) -> None:
    """Record the change of one object."""
    values = {"kind": kind, "id": id, "post_id": post_id, "change": change, "at": now()}
    key = execute(_insert(db.engine.dialect.name), **values).inserted_primary_key
    if key and key[0] % PURGE_EVERY == 0:
        purge_changes()


def record_changes(kind: Kind, post_ids: Mapping[str, str], change: Verb) -> None:
    """Record the changes of several objects, by one statement."""
    fields = {"kind": kind, "change": change, "at": now()}
    rows = [{"id": id, "post_id": post_id, **fields} for id, post_id in post_ids.items()]
    execute(_insert(db.engine.dialect.name), rows)
    purge_changes()


def record_deletion_of_posts(ids: list[str]) -> None:
    """Record the deletion of posts and of what belongs to them, by one statement."""
    execute(_insert_deletion_of_posts(db.engine.dialect.name), posts=ids, time=now())
    purge_changes()


def purge_changes() -> None:
    """Delete the oldest changes that have expired, and note the place of the last one.

    A cursor before this place has expired, whatever the clock says. Call this after a change is
    recorded, so that the last change is never deleted.
    """
    purged = execute(_LOCK_PURGED).one_or_none()
    if purged is None:  # another transaction is purging
        return
    gone = execute(_PURGE, time=trusted_now() - LIFETIME).all()
    next_xid = fetch_value(sa.select(_NEXT_XID[db.engine.dialect.name]))
    places = [tuple(row) for row in gone if row.transaction_id < next_xid]
    if places:
        *former, former_epoch = purged
        epoch = current_epoch()
        if former_epoch == epoch:
            places.append(tuple(former))
        transaction_id, seq = max(places)
        place = {"purged_transaction_id": transaction_id, "purged_seq": seq}
        execute(sa.update(Epoch).values(place | {"purged_epoch": epoch}))


@cache
def _insert(dialect: str) -> sa.Insert:
    return sa.insert(Change).values(transaction_id=_XID[dialect])


@cache
def _insert_deletion_of_posts(dialect: str) -> sa.Insert:
    values: dict[str, sa.ColumnElement[Any]] = {
        "transaction_id": _XID[dialect],
        "change": sa.literal("deleted"),
        "at": _TIME,
    }

    def rows(kind: Kind, id: Any, post_id: Any) -> sa.Select[*tuple[Any, ...]]:
        selected = sa.select(sa.literal(kind), id, post_id, *values.values())
        return selected.where(post_id.in_(_POSTS))

    deleted = sa.union_all(
        rows("image", Image.id, Image.post_id),
        rows("comment", Comment.id, Comment.post_id),
        rows("post", Post.id, Post.id),
    )
    return sa.insert(Change).from_select(["kind", "id", "post_id", *values], deleted)


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
