"""Keyset paging: a signed cursor names the last row seen, `Link` names the next page (RFC 8288)."""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache
from typing import Any
from urllib.parse import quote, urlencode

import sqlalchemy as sa
from flask import current_app, request
from itsdangerous import BadSignature, Signer

from posting.db.engine import select
from posting.db.types import UtcDateTime
from posting.http.errors import InvalidInput
from posting.http.urls import base_url

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)


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


def _signer() -> Signer:
    config = current_app.config
    return _signer_of((*config["SECRET_KEY_FALLBACKS"], config["SECRET_KEY"]), request.path)


@lru_cache(256)
def _signer_of(keys: tuple[str, ...], path: str) -> Signer:
    return Signer(keys, salt=f"cursor {path}")


def _next_url(moment: str, row_id: str) -> str:
    arguments = tuple(request.args.items())
    return f"{base_url()}{quote(request.path)}?{_query(_signer(), arguments, moment, row_id)}"


@lru_cache(256)
def _query(signer: Signer, arguments: Iterable[tuple[str, str]], moment: str, row_id: str) -> str:
    milliseconds = (datetime.fromisoformat(moment) - EPOCH) // MILLISECOND
    cursor = signer.sign(f"{milliseconds}.{row_id}").decode()
    return urlencode(dict(arguments) | {"cursor": cursor})


def _read(cursor: str) -> tuple[datetime, str]:
    try:
        milliseconds, _, row_id = _signer().unsign(cursor).decode().partition(".")
    except BadSignature:
        raise InvalidInput(
            [{"detail": "Not a cursor of this list.", "parameter": "cursor"}]
        ) from None
    return EPOCH + int(milliseconds) * MILLISECOND, row_id
