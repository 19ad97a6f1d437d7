"""Requests that may be sent again without being done again.

After the IETF draft draft-ietf-httpapi-idempotency-key-header-07.
"""

import hashlib
import json
from collections.abc import Callable
from datetime import datetime
from functools import wraps
from typing import Any

import sqlalchemy as sa
from flask import Response, current_app, request
from marshmallow import Schema
from marshmallow.validate import Regexp
from werkzeug.exceptions import Conflict, HTTPException

from posting.auth.sessions import user_id
from posting.db import models, purge
from posting.db.engine import begin, db
from posting.db.types import now
from posting.http.errors import InvalidInput
from posting.http.openapi import DocumentedBlueprint
from posting.schemas.fields import String, described

NAME = "Idempotency-Key"
KEPT_HEADERS = ("Location", "ETag")
LOCK_NOT_AVAILABLE = "55P03"  # Postgres


class StillUnderWay(Conflict):
    description = f"A request with this {NAME} is still under way."


class IdempotencyKey(Schema):
    """The header under which an answer is kept."""

    idempotency_key = String(
        data_key=NAME,
        validate=Regexp(r"[!-~]{1,255}\Z", error="Must be 1 to 255 visible ASCII characters."),
        pattern="^[!-~]{1,255}$",
        metadata=described(
            "8e03978e-40d5-43dd-bc93-6894a57f9324",
            "Any text of the client's own: within 24 hours the same request with the same key "
            "creates nothing, and is answered as the first one was.",
        ),
    )


def idempotent(view: Callable[..., Response]) -> Callable[..., Response]:
    """Commit what a view creates; with a key, together with its answer, to be given again.

    The key is the last input of the view, which does not see it. Errors: 422 if the key stands for
    another request, 409 if the first one is still under way.
    """

    @wraps(view)
    def operation(*values: Any, **path: str) -> Response:
        *inputs, header = values
        if not header:
            answer = view(*inputs, **path)
            db.session.commit()
            return answer
        owner, key = user_id(), header["idempotency_key"]
        fingerprint = _fingerprint(inputs, path)
        kept = _find(owner, key)
        if kept is None:
            try:
                answer = view(*inputs, **path)
                _keep(answer, owner, key, fingerprint)
                return answer
            except (sa.exc.IntegrityError, HTTPException):
                db.session.rollback()  # what is in the way may be what a faster one has made
                if (kept := _find(owner, key)) is None:
                    raise
        return _again(kept, fingerprint)

    documented: Callable[..., Response] = DocumentedBlueprint.answers(StillUnderWay)(operation)
    return documented


def _fingerprint(inputs: list[Any], path: dict[str, str]) -> str:
    """Return what tells this request from others: which view, of what, with which inputs."""
    described = json.dumps([request.endpoint, path, inputs], sort_keys=True, default=_digest)
    return _digest(described.encode())


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _find(owner: str, key: str) -> models.IdempotencyKey | None:
    begin(writes=False)
    kept = db.session.get(models.IdempotencyKey, (owner, key))
    db.session.commit()
    return kept if kept and kept.created_at > _oldest() else None


def _keep(answer: Response, owner: str, key: str, fingerprint: str) -> None:
    """Commit the key beside what was created; the database lets one of several do so."""
    table = models.IdempotencyKey
    own = sa.and_(table.user_id == owner, table.key == key)
    db.session.execute(sa.delete(table).where(own, table.created_at <= _oldest()))
    headers = {name: answer.headers[name] for name in KEPT_HEADERS if name in answer.headers}
    row = {"user_id": owner, "key": key, "fingerprint": fingerprint, "headers": headers}
    try:
        db.session.execute(sa.insert(table).values(row | {"body": answer.get_data(as_text=True)}))
    except sa.exc.OperationalError as error:
        if getattr(error.orig, "sqlstate", None) != LOCK_NOT_AVAILABLE:
            raise
        raise StillUnderWay from None
    purge.purge_expired()
    db.session.commit()


def _oldest() -> datetime:
    return now() - models.IDEMPOTENCY_LIFETIME


def _again(kept: models.IdempotencyKey, fingerprint: str) -> Response:
    if kept.fingerprint != fingerprint:
        detail = "Was used for another request; take a new one."
        raise InvalidInput([{"detail": detail, "header": NAME}])
    return current_app.response_class(kept.body, 201, kept.headers, content_type="application/json")
