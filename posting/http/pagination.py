"""Keyset pagination, with a `Link` header to the next page (RFC 8288).

A cursor is `<list>.<milliseconds>.<id>`: the list that it belongs to, and the `created_at` and `id`
of the last row of the page before. It says nothing that the page did not, so it is not signed.
"""

import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache
from typing import Any
from urllib.parse import quote, urlencode

import sqlalchemy as sa
from flask import request

from posting.db.engine import select
from posting.db.types import ID_PATTERN, UtcDateTime
from posting.http.errors import InvalidInput
from posting.http.urls import base_url

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)
CURSOR = re.compile(rf"([A-Za-z0-9_-]+)\.(-?[0-9]{{1,15}})\.({ID_PATTERN.strip('^$')})")


def paginate(
    rows: sa.Select[*tuple[Any, ...]],
    item: Callable[[Any], Any],
    query: dict[str, Any],
    *,
    newest_first: bool,
) -> tuple[list[Any], dict[str, str]]:
    """Return one page of `rows` as items, and the Link header to the next page if there is one.

    `rows` is made once and for all, with parameters that the query names. Its columns `created_at`
    and `id`, by which it is ordered, are walked by an index. Error: 422 for a cursor that this list
    did not issue.
    """
    limit, goes_on = query["limit"], "cursor" in query
    seen = dict(zip(("seen_at", "seen_id"), _read(query["cursor"]), strict=True)) if goes_on else {}
    statement = _page(rows, newest_first=newest_first, goes_on=goes_on)
    page = select(statement, **query | seen | {"limit": limit + 1})
    headers = {}
    if len(page) > limit:
        page = page[:-1]
        last = page[-1]
        headers["Link"] = f'<{_next_url(last.created_at, last.id)}>; rel="next"'
    return [item(row) for row in page], headers


@cache
def _page(
    rows: sa.Select[*tuple[Any, ...]], *, newest_first: bool, goes_on: bool
) -> sa.Select[*tuple[Any, ...]]:
    order = rows.selected_columns.created_at, rows.selected_columns.id
    if goes_on:
        seen = sa.tuple_(
            sa.bindparam("seen_at", type_=UtcDateTime()),
            sa.bindparam("seen_id", type_=order[1].type),
        )
        place = sa.tuple_(*order)
        rows = rows.where(place < seen if newest_first else place > seen)
    rows = rows.order_by(*(column.desc() for column in order) if newest_first else order)
    return rows.limit(sa.bindparam("limit", type_=sa.Integer()))


def _list_name() -> str:
    """Return the name of the requested list, such as `list_posts`, without any dot."""
    _, _, view = str(request.endpoint).rpartition(".")
    return "-".join([view, *(request.view_args or {}).values()])


def _next_url(moment: str, row_id: str) -> str:
    arguments = tuple(request.args.items())
    return f"{base_url()}{quote(request.path)}?{_query(_list_name(), arguments, moment, row_id)}"


@lru_cache(256)
def _query(name: str, arguments: Iterable[tuple[str, str]], moment: str, row_id: str) -> str:
    milliseconds = (datetime.fromisoformat(moment) - EPOCH) // MILLISECOND
    return urlencode(dict(arguments) | {"cursor": f"{name}.{milliseconds}.{row_id}"})


def _read(cursor: str) -> tuple[datetime, str]:
    if (match := CURSOR.fullmatch(cursor)) and match[1] == _list_name():
        with suppress(OverflowError):  # not a date of the years 1 to 9999
            return EPOCH + int(match[2]) * MILLISECOND, match[3]
    raise InvalidInput([{"detail": "Not a cursor of this list.", "parameter": "cursor"}])
