"""Keyset pagination: a cursor names the last row of a page, and `Link` the next page (RFC 8288).

A cursor is not signed: it only says where in a public list to go on.
"""

import re
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any
from urllib.parse import quote, urlencode

import sqlalchemy as sa
from flask import request

from posting.db.engine import fetch_all
from posting.db.types import ID_LENGTH, UtcDateTime
from posting.http.errors import InvalidInput
from posting.http.urls import base_url

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)
# The list's name, the row's timestamp in milliseconds (negative before 1970) and its id.
CURSOR = re.compile(rf"([\w-]+)\.(-?[0-9]{{1,15}})\.([A-Za-z0-9_-]{{{ID_LENGTH}}})", re.ASCII)


def paginate(
    statement: sa.Select[*tuple[Any, ...]],
    to_item: Callable[[Any], Any],
    query: dict[str, Any],
    *,
    newest_first: bool,
) -> tuple[list[Any], dict[str, str]]:
    """Return a page of a list as items, and the Link header to the next page if there is one.

    `statement` is built once and takes its parameters from the query. An index must cover its
    columns `created_at` and `id`, which are the order. Error: 422 for a cursor of another list.
    """
    limit, values = query["limit"], {**query, "limit": query["limit"] + 1}
    if has_cursor := "cursor" in query:
        values["after_time"], values["after_id"] = _read_cursor(query["cursor"])
    rows = fetch_all(_page(statement, newest_first=newest_first, has_cursor=has_cursor), **values)
    if len(rows) <= limit:
        return [to_item(row) for row in rows], {}
    last = rows[limit - 1]
    arguments = dict(request.args) | {"cursor": _make_cursor(last.created_at, last.id)}
    url = f"{base_url()}{quote(request.path)}?{urlencode(arguments)}"
    return [to_item(row) for row in rows[:limit]], {"Link": f'<{url}>; rel="next"'}


@cache
def _page(
    statement: sa.Select[*tuple[Any, ...]], *, newest_first: bool, has_cursor: bool
) -> sa.Select[*tuple[Any, ...]]:
    order = statement.selected_columns.created_at, statement.selected_columns.id
    if has_cursor:
        after = sa.tuple_(
            sa.bindparam("after_time", type_=UtcDateTime()),
            sa.bindparam("after_id", type_=order[1].type),
        )
        place = sa.tuple_(*order)
        statement = statement.where(place < after if newest_first else place > after)
    statement = statement.order_by(*(column.desc() if newest_first else column for column in order))
    return statement.limit(sa.bindparam("limit", type_=sa.Integer()))


def _list_name() -> str:
    """Return the name of the requested list: the id in its path, or its endpoint's name."""
    path = request.view_args or {}
    return str(path.get("id") or request.endpoint).rpartition(".")[2]


def _make_cursor(timestamp: str, id: str) -> str:
    milliseconds = (datetime.fromisoformat(timestamp) - EPOCH) // MILLISECOND
    return f"{_list_name()}.{milliseconds}.{id}"


def _read_cursor(cursor: str) -> tuple[datetime, str]:
    match = CURSOR.fullmatch(cursor)
    if match and match[1] == _list_name():
        with suppress(OverflowError):  # not a date in the years 1 to 9999
            return EPOCH + int(match[2]) * MILLISECOND, match[3]
    raise InvalidInput([{"detail": "Not a cursor of this list.", "parameter": "cursor"}])
