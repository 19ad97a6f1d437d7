"""Personal access tokens, by which programs act as a user (bearer tokens, RFC 6750).

A token with the scope `feed` is none of these. It is in the path of feeds, since feed readers send
neither a cookie nor a header.

As with sessions, the database has only the SHA-256 of a token, and deleting the row ends it.
"""

import secrets
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from werkzeug.exceptions import Conflict, Forbidden

from posting.accounts import schemas
from posting.accounts.models import TOKENS_PER_USER, Token, User
from posting.accounts.sessions import LAST_SEEN_PRECISION, hash_token, mark_used
from posting.db.purge import purge_expired
from posting.db.transactions import execute, fetch_all, fetch_one, fetch_value
from posting.db.types import now, truncate_to_milliseconds
from posting.web.errors import Coded, InvalidInput, Message, NoSuch, NotSignedIn
from posting.web.schemas import insert, select, to_item, to_items

PREFIX = "posting_"  # by which scanners for secrets can find tokens
MAX_LIFETIME = timedelta(days=366)
NOT_IN_TIME = Message("out_of_range", "Must be in the future, within 366 days.")

_BY_TOKEN = (
    select(schemas.User, User)
    .add_columns(Token.id.label("token_id"), Token.scope, Token.last_used_at)
    .add_columns(sa.null().label("session_id"))
    .join(Token.user)
    .where(
        Token.token_hash == sa.bindparam("token_hash"),
        Token.expires_at > sa.bindparam("time", type_=Token.expires_at.type),
        User.is_active,
    )
)
_BEARER = _BY_TOKEN.where(Token.scope != schemas.FEED)
_FOR_FEEDS = _BY_TOKEN.where(Token.scope == schemas.FEED)
_OF_USER = (
    select(schemas.Token, Token)
    .where(
        Token.user_id == sa.bindparam("user_id"),
        Token.expires_at > sa.bindparam("time", type_=Token.expires_at.type),
    )
    .order_by(Token.created_at.desc(), Token.id)
)
_EXISTS = sa.select(Token.id).where(Token.id == sa.bindparam("id"))
_INSERT = insert(schemas.Token, Token)
_ONE_OF_USER = _OF_USER.where(Token.id == sa.bindparam("id"))


class NoSuchToken(NoSuch, thing="token"):
    pass


class InvalidToken(NotSignedIn):
    error_code = "invalid_token"
    description = "The token is unknown, has expired or was deleted."

    def get_headers(self, *_: Any) -> list[tuple[str, str]]:
        return [("WWW-Authenticate", 'Bearer error="invalid_token"')]


class InsufficientScope(Coded, Forbidden):
    error_code = "insufficient_scope"
    description = "This token may only read."

    def get_headers(self, *_: Any) -> list[tuple[str, str]]:
        return [("WWW-Authenticate", 'Bearer error="insufficient_scope", scope="write"')]


class TokenNotAllowed(Coded, Forbidden):
    error_code = "token_not_allowed"
    description = "A token may not manage the account, its sessions or tokens; sign in instead."


class TooManyTokens(Coded, Conflict):
    error_code = "too_many_tokens"
    description = f"You have {TOKENS_PER_USER} tokens; delete one of them first."


def find_token(token: str) -> sa.Row[Any] | None:
    """Return a valid bearer token with its user."""
    return _find(_BEARER, token)


def find_feed_token(token: str) -> sa.Row[Any] | None:
    """Return a valid token for feeds with its user."""
    return _find(_FOR_FEEDS, token)


def _find(statement: sa.Select[*tuple[Any, ...]], token: str) -> sa.Row[Any] | None:
    time = now()
    row = fetch_one(statement, token_hash=hash_token(token), time=time)
    if row and (row.last_used_at is None or time - row.last_used_at > LAST_SEEN_PRECISION):
        update = sa.update(Token).where(Token.id == row.token_id)
        mark_used(update.values(last_used_at=time), row.id, time)
    return row


def token_exists(id: str) -> bool:
    """Return whether a token has not been deleted, as the transaction sees it."""
    return bool(execute(_EXISTS, id=id).all())


def list_tokens(user_id: str) -> list[dict[str, Any]]:
    """Return a user's tokens as they are sent, newest first."""
    return to_items(fetch_all(_OF_USER, user_id=user_id, time=now()))


def get_token(user_id: str, id: str) -> dict[str, Any]:
    """Return a token of a user as it is sent. Raise NoSuchToken."""
    row = fetch_one(_ONE_OF_USER, user_id=user_id, id=id, time=now())
    if row is None:
        raise NoSuchToken
    return to_item(row)


def create_token(
    user_id: str, name: str, scope: str, expires_at: datetime | None = None
) -> dict[str, Any]:
    """Create a token for a user who is locked, and return it as it is sent, with its secret.

    Raise 422 for a time that is not within the next year, 409 if the user has too many.
    """
    time = now()
    latest = time + MAX_LIFETIME
    expires_at = expires_at or latest
    if not time < expires_at <= latest:
        raise InvalidInput.at("/expires_at", NOT_IN_TIME)
    own = sa.select(sa.func.count()).where(Token.user_id == user_id, Token.expires_at > time)
    if fetch_value(own) >= TOKENS_PER_USER:
        raise TooManyTokens
    secret = PREFIX + secrets.token_urlsafe(32)
    inserted = execute(
        _INSERT,
        user_id=user_id,
        token_hash=hash_token(secret),
        name=name,
        scope=scope,
        created_at=time,
        expires_at=truncate_to_milliseconds(expires_at),
    )
    purge_expired(Token)
    return to_item(inserted.one()) | {"token": secret}


def delete_token(user_id: str, id: str) -> bool:
    """Delete a token of a user, and return whether there was one."""
    own = sa.delete(Token).where(Token.id == id, Token.user_id == user_id)
    return bool(execute(own).rowcount)


def delete_tokens(user_id: str) -> None:
    """Delete all tokens of a user."""
    execute(sa.delete(Token).where(Token.user_id == user_id))
