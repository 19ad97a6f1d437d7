"""Requests that a client may repeat without repeating their effect.

This follows draft-ietf-httpapi-idempotency-key-header-07. The response is stored under the client's
key, in the transaction that creates something.
"""

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import sqlalchemy as sa
from flask import Response, current_app, g, request
from sqlalchemy import ForeignKey, String, Text
from sqlalchemy.orm import Mapped, mapped_column
from werkzeug.exceptions import Conflict, HTTPException

from posting.db.base import Base, Identifier
from posting.db.purge import purge_expired
from posting.db.transactions import commit, execute, fetch_one, rollback
from posting.db.types import UtcDateTime, now
from posting.web.errors import Errors, InvalidInput, input_error
from posting.web.messages import Message
from posting.web.problems import Coded
from posting.web.response_body import to_json

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


class StillUnderWay(Coded, Conflict):
    error_code = "still_under_way"
    description = f"A request with this {NAME} is still under way."


class SentKey(NamedTuple):
    """The key of a request, with a digest of everything else that it sends."""

    user_id: str
    key: str
    fingerprint: str


class Once:
    """The commit of a request that a client may repeat."""

    def __init__(self, sent: SentKey | None) -> None:
        self._sent = sent
        self.is_committed = False

    def commit(
        self, body: dict[str, Any], headers: Mapping[str, str]
    ) -> tuple[dict[str, Any], Mapping[str, str]]:
        """Commit, with the response stored under the key if one was sent. Return the response."""
        if self._sent:
            _store(self._sent, body, headers)
        commit()
        self.is_committed = True
        return body, headers


def key_errors() -> Errors:
    """Return the errors in the request's key, if it has one."""
    key = request.headers.get(NAME)
    is_valid = key is None or re.fullmatch(PATTERN, key)
    return [] if is_valid else [input_error(RULE, header=NAME)]


def respond_once(
    path: Mapping[str, str],
    inputs: Mapping[str, Any],
    status: int,
    call: Callable[[Once], Response],
) -> Response:
    """Return the response stored under the request's key. If there is none, return that of `call`.

    Raise RuntimeError if `call` does not commit by the `Once` that it gets. Raise 422 if the key
    was used for a different request, and 409 if the request that uses it is still under way.
    """
    sent = None
    if (key := request.headers.get(NAME)) is not None:
        described = [request.endpoint, path, list(inputs.values())]
        fingerprint = _digest(json.dumps(described, sort_keys=True, default=_encode).encode())
        sent = SentKey(g.user_id, key, fingerprint)
        if replay := _replay(sent, status):
            return replay
    once = Once(sent)
    try:
        response = call(once)
    except (sa.exc.IntegrityError, HTTPException):
        if sent:
            # A faster request with this key may have created what caused the error.
            rollback()
            if replay := _replay(sent, status):
                return replay
        raise
    if not once.is_committed:
        raise RuntimeError(f"{request.endpoint} did not call once.commit")
    return response


def _store(sent: SentKey, body: dict[str, Any], headers: Mapping[str, str]) -> None:
    """Store a response under its key within the transaction."""
    execute(_DELETE_EXPIRED, user_id=sent.user_id, key=sent.key, expiry=_expiry())
    response = {"body": to_json(body).decode(), "headers": dict(headers)}
    try:
        execute(sa.insert(IdempotencyKey), **sent._asdict(), **response)
    except sa.exc.OperationalError as error:
        if getattr(error.orig, "sqlstate", None) != LOCK_NOT_AVAILABLE:
            raise
        raise StillUnderWay from None
    purge_expired(IdempotencyKey)


def _replay(sent: SentKey, status: int) -> Response | None:
    stored = fetch_one(_STORED, user_id=sent.user_id, key=sent.key)
    if stored is None or stored.created_at <= _expiry():
        return None
    if stored.fingerprint != sent.fingerprint:
        raise InvalidInput([input_error(REUSED, header=NAME)])
    headers = stored.headers | {REPLAYED: "true"}
    return current_app.response_class(stored.body, status, headers, content_type="application/json")


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
