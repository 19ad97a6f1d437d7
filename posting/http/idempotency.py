"""Requests that a client may repeat without repeating their effect.

After draft-ietf-httpapi-idempotency-key-header-07. The response is stored under the client's key,
in the transaction that creates something.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from flask import Response, current_app, g, request
from werkzeug.exceptions import Conflict, HTTPException

from posting.db.engine import begin, db
from posting.db.models import IDEMPOTENCY_LIFETIME, IdempotencyKey
from posting.db.purge import purge_expired
from posting.db.types import now
from posting.http.errors import Errors, InvalidInput, input_error
from posting.http.response_body import to_json
from posting.schemas.messages import Message

NAME = "Idempotency-Key"
REPLAYED = "Idempotent-Replayed"
RULE = Message("malformed", "Must be 1 to 255 visible ASCII characters.")
REUSED = Message("reused_key", "Was used for another request; use a new one.")
PATTERN = "[!-~]{1,255}"
LOCK_NOT_AVAILABLE = "55P03"  # Postgres


class StillUnderWay(Conflict):
    error_code = "still_under_way"
    description = f"A request with this {NAME} is still under way."


def key_errors(key: str) -> Errors:
    return [] if re.fullmatch(PATTERN, key) else [input_error(RULE, header=NAME)]


def respond_once(
    key: str,
    path: Mapping[str, str],
    inputs: Iterable[Any],
    status: int,
    call: Callable[[], Response],
) -> Response:
    """Return the response stored under a key, or else that of `call`, which must call `save`.

    Raise 422 if the key was sent with another request, 409 if that request is still under way.
    """
    described = [request.endpoint, path, list(inputs)]
    fingerprint = _digest(json.dumps(described, sort_keys=True, default=_digest).encode())
    sent = IdempotencyKey(user_id=g.user_id, key=key, fingerprint=fingerprint)
    if replay := _replay(sent, status):
        return replay
    g.idempotency_key = sent
    try:
        return call()
    except (sa.exc.IntegrityError, HTTPException):
        # A faster request with the same key may have created what this one was refused for.
        db.session.rollback()
        if replay := _replay(sent, status):
            return replay
        raise


def save(body: Any, headers: Mapping[str, str]) -> None:
    """Store the response under the request's key, if it has one, within the transaction."""
    if "idempotency_key" not in g:
        raise RuntimeError(f"{request.endpoint} is not declared idempotent")
    g.is_response_saved = True
    sent: IdempotencyKey | None = g.idempotency_key
    if sent is None:
        return
    table = IdempotencyKey
    same_key = sa.and_(table.user_id == sent.user_id, table.key == sent.key)
    db.session.execute(sa.delete(table).where(same_key, table.created_at <= _expiry()))
    sent.body, sent.headers = to_json(body).decode(), dict(headers)
    db.session.add(sent)
    try:
        db.session.flush()
    except sa.exc.OperationalError as error:
        if getattr(error.orig, "sqlstate", None) != LOCK_NOT_AVAILABLE:
            raise
        raise StillUnderWay from None
    purge_expired(IdempotencyKey)


def _replay(sent: IdempotencyKey, status: int) -> Response | None:
    begin(writes=False)
    stored = db.session.get(IdempotencyKey, (sent.user_id, sent.key))
    db.session.commit()
    if stored is None or stored.created_at <= _expiry():
        return None
    if stored.fingerprint != sent.fingerprint:
        raise InvalidInput([input_error(REUSED, header=NAME)])
    headers = stored.headers | {REPLAYED: "true"}
    return current_app.response_class(stored.body, status, headers, content_type="application/json")


def _expiry() -> datetime:
    return now() - IDEMPOTENCY_LIFETIME


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
