"""Requests that a client may repeat without repeating their effect.

After draft-ietf-httpapi-idempotency-key-header-07. The response is stored under the client's key,
in the transaction that creates something.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from flask import Response, current_app, g, request
from werkzeug.exceptions import Conflict, HTTPException

from posting.db.engine import begin, db
from posting.db.models import IDEMPOTENCY_LIFETIME, IdempotencyKey
from posting.db.purge import purge_expired
from posting.db.types import now
from posting.http.errors import Errors, InvalidInput
from posting.http.response_body import to_json

NAME = "Idempotency-Key"
RULE = "Must be 1 to 255 visible ASCII characters."
PATTERN = "[!-~]{1,255}"
LOCK_NOT_AVAILABLE = "55P03"  # Postgres


class StillUnderWay(Conflict):
    description = f"A request with this {NAME} is still under way."


@dataclass(frozen=True)
class KeyedRequest:
    """A request with a key: whose it is, and a digest of all of its inputs."""

    user_id: str
    key: str
    fingerprint: str


def errors_of(key: str) -> Errors:
    return [] if re.fullmatch(PATTERN, key) else [{"detail": RULE, "header": NAME}]


def run(
    key: str,
    path: Mapping[str, str],
    inputs: Iterable[Any],
    status: int,
    call: Callable[[], Response],
) -> Response:
    """Return the response stored under a key, or else that of `call`, which must call `save`.

    Errors: 422 if the key was sent with another request, 409 if that request is still under way.
    """
    described = [request.endpoint, path, list(inputs)]
    fingerprint = _digest(json.dumps(described, sort_keys=True, default=_digest).encode())
    g.idempotent_request = sent = KeyedRequest(g.user_id, key, fingerprint)
    if stored := _find(sent):
        return _replay(stored, sent, status)
    try:
        return call()
    except (sa.exc.IntegrityError, HTTPException):
        # A faster request with the same key may have created what this one was refused for.
        db.session.rollback()
        if stored := _find(sent):
            return _replay(stored, sent, status)
        raise


def save(body: Any, headers: Mapping[str, str]) -> None:
    """Store the response under the request's key, if it has one, within the transaction."""
    if "idempotent_request" not in g:
        raise RuntimeError(f"{request.endpoint} is not declared idempotent")
    g.is_response_saved = True
    sent: KeyedRequest | None = g.idempotent_request
    if sent is None:
        return
    table = IdempotencyKey
    same_key = sa.and_(table.user_id == sent.user_id, table.key == sent.key)
    db.session.execute(sa.delete(table).where(same_key, table.created_at <= _expiry()))
    values = {
        "user_id": sent.user_id,
        "key": sent.key,
        "fingerprint": sent.fingerprint,
        "body": to_json(body).decode(),
        "headers": dict(headers),
    }
    try:
        db.session.execute(sa.insert(table).values(values))
    except sa.exc.OperationalError as error:
        if getattr(error.orig, "sqlstate", None) != LOCK_NOT_AVAILABLE:
            raise
        raise StillUnderWay from None
    purge_expired()


def _find(sent: KeyedRequest) -> IdempotencyKey | None:
    begin(writes=False)
    stored = db.session.get(IdempotencyKey, (sent.user_id, sent.key))
    db.session.commit()
    return stored if stored and stored.created_at > _expiry() else None


def _replay(stored: IdempotencyKey, sent: KeyedRequest, status: int) -> Response:
    if stored.fingerprint != sent.fingerprint:
        detail = "Was used for another request; use a new one."
        raise InvalidInput([{"detail": detail, "header": NAME}])
    return current_app.response_class(
        stored.body, status, stored.headers, content_type="application/json"
    )


def _expiry() -> datetime:
    return now() - IDEMPOTENCY_LIFETIME


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
