"""Deletion, in steps, of the rows that the database would delete by cascades.

A row can have very many rows below it. To delete them all by one statement would hold SQLite's
write lock for seconds.
"""

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import sqlalchemy as sa

from posting.db.base import Base, db
from posting.db.transactions import execute, fetch_all

ROWS_PER_STEP = 5000  # of all tables, also those that the database deletes by cascades
ROWS_PER_FILE = 100  # as which a row with bytes counts, since it may have megabytes
PAUSE = 0.1  # seconds between two steps, in which others can take SQLite's write lock


class Step(NamedTuple):
    """The result of a step of a deletion: how many rows it has cleared, and whether more follow."""

    cleared: int
    has_more: bool


def delete_below(model: type[Base], ids: Sequence[str], limit: int) -> list[str]:
    """Delete rows that would be deleted with rows of a table, up to `limit`, or a few more files.

    Return the ids, in their order, of the rows that have none left. Lock the rows first. The rows
    below a row go before it. If rows of a table refer to each other, the newer ones go first.
    """
    table = db.metadata.tables[model.__tablename__]
    if _delete_below(table, ids, limit) < limit:
        return [*ids]
    has_rows = (sa.exists().where(key == table.c.id) for _, key in _children(table))
    left = sa.select(table.c.id).where(table.c.id.in_(ids), sa.or_(*has_rows))
    ids_left = {row.id for row in fetch_all(left)}
    return [id for id in ids if id not in ids_left]


def delete_some(model: type[Base], condition: sa.ColumnElement[bool], limit: int) -> int:
    """Delete rows that match a condition, up to `limit`. Return how many these were."""
    return _delete_some(db.metadata.tables[model.__tablename__], condition, limit)


def _delete_some(table: sa.Table, condition: sa.ColumnElement[bool], limit: int) -> int:
    # A CTE, because Postgres may execute a subquery again for each row, and then it deletes more.
    chosen = sa.select(*table.primary_key).where(condition).limit(limit).cte("chosen")
    is_chosen = sa.tuple_(*table.primary_key).in_(sa.select(chosen))
    return execute(sa.delete(table).where(is_chosen)).rowcount


def _delete_below(table: sa.Table, ids: Sequence[str], limit: int) -> int:
    """Delete rows below others, up to `limit`, and return how many these were."""
    deleted = 0
    for child, key in _children(table):
        if not _children(child):
            weight = _weight(child)
            most = -(-max(0, limit - deleted) // weight)
            deleted += weight * _delete_some(child, key.in_(ids), most)
            continue
        newest_first = (child.c.created_at.desc(), child.c.id.desc())
        rows = sa.select(child.c.id).where(key.in_(ids)).order_by(*newest_first)
        while deleted < limit:
            found = [row.id for row in fetch_all(rows.limit(limit - deleted))]
            if not found:
                break
            deleted += _delete_below(child, found, limit - deleted)
            newest = found[: max(0, limit - deleted)]
            deleted += execute(sa.delete(child).where(child.c.id.in_(newest))).rowcount
    return deleted


def _weight(table: sa.Table) -> int:
    """Return as how many rows a row of a table counts."""
    has_files = any(isinstance(column.type, sa.LargeBinary) for column in table.columns)
    return ROWS_PER_FILE if has_files else 1


@cache
def _children(table: sa.Table) -> list[tuple[sa.Table, sa.Column[str]]]:
    """Return the tables whose rows are deleted with those of a table, and by which column."""
    return [
        (child, column)
        for child in db.metadata.sorted_tables
        for column in child.columns
        for key in column.foreign_keys
        if key.column.table is table and key.ondelete == "CASCADE"
    ]
