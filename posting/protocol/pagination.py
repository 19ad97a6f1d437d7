"""Keyset paging: a signed cursor names the last row seen, `Link` names the next page (RFC 8288)."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa
from flask import current_app, request
from itsdangerous import BadData, URLSafeSerializer
from sqlalchemy.orm import InstrumentedAttribute

from posting.database import db
from posting.protocol.problems import InvalidInput
from posting.protocol.urls import external_url

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def paginate(
    rows: sa.Select[*tuple[Any, ...]],
    item: Callable[[Any], Any],
    query: dict[str, Any],
    created_at: InstrumentedAttribute[datetime],
    row_id: InstrumentedAttribute[str],
    *,
    newest_first: bool,
) -> tuple[list[Any], dict[str, str]]:
    """Return one page of `rows` as items, and the Link header to the next page if there is one.

    Rows are ordered by (`created_at`, `row_id`), which both must be among their columns and be
    walked by an index. Error: 422 for a cursor that this list did not issue.
    """
    place = sa.tuple_(created_at, row_id)
    if (cursor := query.get("cursor")) is not None:
        seen = sa.tuple_(*_read(cursor), types=[created_at.type, row_id.type])
        rows = rows.where(place < seen if newest_first else place > seen)
    order = (created_at, row_id)
    rows = rows.order_by(*(column.desc() for column in order) if newest_first else order)
    page = db.session.execute(rows.limit(query["limit"] + 1)).all()
    headers = {}
    if len(page) > query["limit"]:
        page = page[:-1]
        last = page[-1]
        headers["Link"] = f'<{_next_url(last.created_at, last.id)}>; rel="next"'
    return [item(row) for row in page], headers


def _serializer() -> URLSafeSerializer:
    keys = [*current_app.config["SECRET_KEY_FALLBACKS"], current_app.config["SECRET_KEY"]]
    return URLSafeSerializer(keys, salt=f"cursor {request.path}")


def _next_url(moment: datetime, row_id: str) -> str:
    cursor = _serializer().dumps([(moment - EPOCH) // timedelta(milliseconds=1), row_id])
    arguments = request.args.to_dict() | {"cursor": cursor} | (request.view_args or {})
    return external_url(str(request.endpoint), **arguments)


def _read(cursor: str) -> tuple[datetime, str]:
    try:
        milliseconds, row_id = _serializer().loads(cursor)
    except BadData:
        raise InvalidInput(
            [{"detail": "Not a cursor of this list.", "parameter": "cursor"}]
        ) from None
    return EPOCH + timedelta(milliseconds=milliseconds), row_id
