"""Keyset pagination: a cursor names the last row of a page, and `Link` the next page (RFC 8288).

A cursor is not signed: it only says where to continue in a public list.
"""

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from itertools import accumulate
from typing import Any
from urllib.parse import quote, urlencode

import sqlalchemy as sa
from flask import request

from posting.db.transactions import fetch_all
from posting.db.types import ID_LENGTH, Position, UtcDateTime, from_milliseconds, to_milliseconds
from posting.web.errors import InvalidInput, Message, input_error
from posting.web.hosts import base_url
from posting.web.schemas import Item, to_items

NOT_A_CURSOR = Message("malformed", "Not a cursor of this list.")
# The list's name, the row's timestamp in milliseconds (negative before 1970) and its id.
CURSOR = re.compile(rf"([\w-]+)\.(-?[0-9]{{1,15}})\.([A-Za-z0-9_-]{{{ID_LENGTH}}})", re.ASCII)


@dataclass(frozen=True)
class Page:
    """A page of a list, and the cursor of the next page if there is one."""

    items: list[Item]
    next_cursor: str | None

    @property
    def headers(self) -> dict[str, str]:
        """The header that names the next page, by an absolute URL."""
        if self.next_cursor is None:
            return {}
        arguments = request.args.to_dict(flat=False) | {"cursor": [self.next_cursor]}
        query = urlencode(arguments, doseq=True)
        return {"Link": f'<{base_url()}{quote(request.path)}?{query}>; rel="next"'}


def paginate(
    statement: sa.Select[*tuple[Any, ...]],
    *,
    limit: int,
    cursor: str | None,
    name: str,
    newest_first: bool,
    time: str = "created_at",
    parameters: Mapping[str, Any] | None = None,
    max_length: int | None = None,
    parameter: str = "cursor",
    find: Callable[[Position | None, int], list[Position]] | None = None,
) -> Page:
    """Return a page of the list whose cursors contain `name`.

    `statement` is built once, and `parameters` has the values of its parameters. The list is in the
    order of the columns `time` and `id`, which need an index. With `max_length`, the page ends
    early if its `content` has more characters. With `find`, the list has only the rows at the
    positions that `find` returns; it is called with the position before the page and a limit.

    Raise 422 for a cursor of another list. The error names `parameter`, which had the cursor.
    """
    values = {**(parameters or {}), "limit": limit + 1}
    after = _read_cursor(cursor, name, parameter) if cursor is not None else None
    if after:
        values["after_time"], values["after_id"] = after
    found = find(after, limit + 1) if find else []
    if find:
        values["ids"] = [id for _, id in found[:limit]] or [""]
    page = _page(
        statement, time, newest_first=newest_first, has_cursor=bool(after), has_ids=bool(find)
    )
    rows = fetch_all(page, **values)
    shown = rows[:limit]
    if max_length is not None:
        lengths = accumulate(len(row.content or "") for row in shown)
        shown = shown[: max(1, sum(length <= max_length for length in lengths))]
    last = None
    if len(rows) > len(shown):
        last = datetime.fromisoformat(getattr(shown[-1], time)), shown[-1].id
    elif len(found) > limit:  # some of the found rows have been deleted since
        last = found[limit - 1]
    next_cursor = f"{name}.{to_milliseconds(last[0])}.{last[1]}" if last else None
    return Page(to_items(shown), next_cursor)


@cache
def _page(
    statement: sa.Select[*tuple[Any, ...]],
    time: str,
    *,
    newest_first: bool,
    has_cursor: bool,
    has_ids: bool,
) -> sa.Select[*tuple[Any, ...]]:
    order = statement.selected_columns[time], statement.selected_columns.id
    if has_cursor:
        after = (
            sa.bindparam("after_time", type_=UtcDateTime()),
            sa.bindparam("after_id", type_=order[1].type),
        )
        place, there = sa.tuple_(*order), sa.tuple_(*after)
        statement = statement.where(place < there if newest_first else place > there)
        # SQLite finds a place in an index on an expression by the first column alone.
        statement = statement.where(order[0] <= after[0] if newest_first else order[0] >= after[0])
    if has_ids:
        statement = statement.where(order[1].in_(sa.bindparam("ids", expanding=True)))
    statement = statement.order_by(*(column.desc() if newest_first else column for column in order))
    # SQLite would prepare the statement again for each value of a parameter alone.
    return statement.limit(sa.bindparam("limit", type_=sa.Integer()) + 0)


def _read_cursor(cursor: str, name: str, parameter: str) -> Position:
    match = CURSOR.fullmatch(cursor)
    if match and match[1] == name:
        with suppress(OverflowError):  # not a date in the years 1 to 9999
            return from_milliseconds(int(match[2])), match[3]
    raise InvalidInput([input_error(NOT_A_CURSOR, parameter=parameter)])
