"""Requests that a client may repeat without repeating their effect.

This follows draft-ietf-httpapi-idempotency-key-header-07. The response is stored under the client's
key, in the transaction that creates something.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import sqlalchemy as sa
from flask import Response, current_app, g, request
from sqlalchemy import ForeignKey, String, Text
from sqlalchemy.orm import Mapped, mapped_column
from werkzeug.exceptions import Conflict

from posting.db.base import Base, Identifier
from posting.db.purge import purge_expired
from posting.db.transactions import execute, fetch_one
from posting.db.types import UtcDateTime, now
from posting.web.errors import Coded, Errors, InvalidInput, Message, input_error

IDEMPOTENCY_LIFETIME = timedelta(hours=24)


class IdempotencyKey(Base):
    """A key that a client sent with a request that created something, and the stored response."""

    EXPIRES = ("created_at", IDEMPOTENCY_LIFETIME)

    __tablename__ = "idempotency_keys"

    user_id: Mapped[str] = mapped_column(
        Identifier, ForeignKey("users.id", ondelete="CASCADE"), primary_key=True
    )
    key: Mapped[str] = mapped_column(String(255), primary_key=True)
    fingerprint: Mapped[str] = mapped_column(String(64))
    body: Mapped[str] = mapped_column(Text)
    headers: Mapped[dict[str, str]] = mapped_column(sa.JSON)
    created_at: Mapped[datetime] = mapped_column(default=now, index=True)


_SAME_KEY = sa.and_(
    IdempotencyKey.user_id == sa.bindparam("user_id"), IdempotencyKey.key == sa.bindparam("key")
)
_STORED = sa.select(IdempotencyKey.__table__).where(_SAME_KEY)
_HAS_EXPIRED = IdempotencyKey.created_at <= sa.bindparam("expiry", type_=UtcDateTime())
_DELETE_EXPIRED = sa.delete(IdempotencyKey).where(_SAME_KEY, _HAS_EXPIRED)

NAME = "Idempotency-Key"
REPLAYED = "Idempotent-Replayed"
RULE = Message("malformed", "Must be 1 to 255 visible ASCII characters.")
REUSED = Message("reused_key", "Was used for another request; use a new one.")
PATTERN = "[!-~]{1,255}"
LOCK_NOT_AVAILABLE = "55P03"  # Postgres
_OF_BODY = {"Content-Type", "Content-Length"}  # headers that a response gets from its body


class StillUnderWay(Coded, Conflict):
    error_code = "still_under_way"
    description = f"A request with this {NAME} is still under way."


class SentKey(NamedTuple):
    """The key of a request, with a digest of everything else that it sends."""

    user_id: str
    key: str
    fingerprint: str


def key_errors() -> Errors:
    """Return the errors in the request's key, if it has one."""
    key = request.headers.get(NAME)
    is_valid = key is None or re.fullmatch(PATTERN, key)
    return [] if is_valid else [input_error(RULE, header=NAME)]


def find_sent_key(path: Mapping[str, str], inputs: Mapping[str, Any]) -> SentKey | None:
    """Return the key of the request, if it has one."""
    key = request.headers.get(NAME)
    if key is None:
        return None
    described = [request.endpoint, path, list(inputs.values())]
    fingerprint = _digest(json.dumps(described, sort_keys=True, default=_encode).encode())
    return SentKey(g.user_id, key, fingerprint)  # the access rule has set `user_id`


def replay(sent: SentKey, status: int) -> Response | None:
    """Return the response that is stored under a key, if there is one.

    Raise 422 if the key was used for a different request.
    """
    stored = fetch_one(_STORED, user_id=sent.user_id, key=sent.key)
    if stored is None or stored.created_at <= _expiry():
        return None
    if stored.fingerprint != sent.fingerprint:
        raise InvalidInput([input_error(REUSED, header=NAME)])
    headers = stored.headers | {REPLAYED: "true"}
    return current_app.response_class(stored.body, status, headers, content_type="application/json")


def store_response(sent: SentKey, response: Response) -> None:
    """Store a response under its key within the unit of work, and purge responses.

    Raise 409 if a request with this key is still under way.
    """
    execute(_DELETE_EXPIRED, user_id=sent.user_id, key=sent.key, expiry=_expiry())
    headers = {name: value for name, value in response.headers if name not in _OF_BODY}
    values = {"body": response.get_data(as_text=True), "headers": headers}
    try:
        execute(sa.insert(IdempotencyKey), **sent._asdict(), **values)
    except sa.exc.OperationalError as error:
        if getattr(error.orig, "sqlstate", None) != LOCK_NOT_AVAILABLE:
            raise
        raise StillUnderWay from None
    purge_expired(IdempotencyKey)


def _encode(value: object) -> str | list[str]:
    """Encode what fields load and JSON lacks: files as digests, times as text, words in order."""
    if isinstance(value, bytes):
        return _digest(value)
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, frozenset):
        return sorted(value)
    raise TypeError(f"A {type(value).__name__} cannot be part of an idempotent request.")


def _expiry() -> datetime:
    return now() - IDEMPOTENCY_LIFETIME


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
