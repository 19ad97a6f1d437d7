"""Sessions: rows of the database that a cookie's token names.

Flask's signed cookie is not used, since it would stay valid after sign-out. The cookie holds a
random token, the database its SHA-256, and deleting the row ends the session everywhere.
"""

import hashlib
import secrets
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from flask import Request, Response, current_app, request

from posting.accounts import schemas
from posting.accounts.models import (
    CONFIRMATION_LIFETIME,
    SESSION_IDLE,
    SESSION_LIFETIME,
    SESSIONS_PER_USER,
    Session,
    User,
)
from posting.db.purge import purge_expired
from posting.db.transactions import execute, fetch_all, fetch_one, fetch_value, unit_of_work
from posting.db.types import now
from posting.web.errors import NoSuch
from posting.web.idempotency import IdempotencyKey
from posting.web.limits import RateWindow
from posting.web.schemas import select, to_item, to_items

MAX_SKEW = timedelta(seconds=2)  # between the clocks of two machines
# last_seen_at is written at most this often, so that most reads write nothing.
LAST_SEEN_PRECISION = SESSION_IDLE / 720


class NoSuchSession(NoSuch, thing="session"):
    pass


IS_VALID = sa.and_(
    Session.last_seen_at > sa.bindparam("oldest_last_seen_at", type_=Session.last_seen_at.type),
    Session.created_at > sa.bindparam("oldest_created_at", type_=Session.created_at.type),
)
_BY_TOKEN = (
    select(schemas.User, User)
    .add_columns(Session.id.label("session_id"), Session.last_seen_at)
    .add_columns(sa.null().label("token_id"), sa.literal("write").label("scope"))
    .join(Session.user)
    .where(Session.token_hash == sa.bindparam("token_hash"), IS_VALID, User.is_active)
)
_OF_USER = (
    select(schemas.Session, Session)
    .where(Session.user_id == sa.bindparam("user_id"), IS_VALID)
    .order_by(Session.created_at.desc(), Session.id)
)
_ONE_OF_USER = _OF_USER.where(Session.id == sa.bindparam("id"))
_EXISTS = sa.select(Session.id).where(Session.id == sa.bindparam("id"))
_CONFIRMED_AT = sa.select(Session.confirmed_at).where(Session.id == sa.bindparam("id"))
_INSERT = sa.insert(Session)
_MARK_SEEN = (
    sa.update(User).where(User.id == sa.bindparam("user")).values(last_seen_at=sa.bindparam("time"))
)
_DELETE_BY_TOKEN = (
    sa.delete(Session)
    .where(Session.token_hash == sa.bindparam("token_hash"))
    .returning(Session.user_id)
)


def _delete_surplus() -> sa.Delete:
    """Return the DELETE of a user's sessions beyond the newest fifty.

    Sessions from the future come last: the clock was set back after they began. Skip locked rows: a
    concurrent sign-in deletes them, and may wait for one deleted here.
    """
    is_later = Session.created_at > sa.bindparam("time", type_=Session.created_at.type)
    own = sa.select(Session.id).where(Session.user_id == sa.bindparam("user_id"))
    surplus = own.order_by(is_later, Session.created_at.desc(), Session.id)
    surplus = surplus.offset(SESSIONS_PER_USER)
    unlocked = sa.select(Session.id).where(Session.id.in_(surplus))
    unlocked = unlocked.with_for_update(skip_locked=True)
    return sa.delete(Session).where(Session.id.in_(unlocked))


_DELETE_SURPLUS = _delete_surplus()


def find_session(sent: Request) -> sa.Row[Any] | None:
    """Return the valid session of the cookie of a request, if there is one, with its user."""
    token, time = _token_of(sent), now()
    if not token:
        return None
    row = fetch_one(_BY_TOKEN, token_hash=hash_token(token), **oldest_valid(time))
    if row and time - row.last_seen_at > LAST_SEEN_PRECISION:
        update = sa.update(Session).where(Session.id == row.session_id)
        mark_used(update.values(last_seen_at=time), row.id, time)
    return row


def mark_used(update: sa.Update, user_id: str, time: datetime) -> None:
    """Write when a session or token was last used, and by whom, unless the database is busy.

    Purge stored responses and rate-limit windows, too: about once an hour for each active member.
    """
    with suppress(sa.exc.OperationalError), unit_of_work():
        # The account first, since all code locks it before other rows.
        execute(_MARK_SEEN, user=user_id, time=time)
        execute(update)
        purge_expired(IdempotencyKey)
        purge_expired(RateWindow)


def session_exists(id: str | None) -> bool:
    """Return whether a session has not been deleted, as the transaction sees it."""
    return bool(execute(_EXISTS, id=id).all())


def confirm_session(id: str | None) -> None:
    """Note that the user of a session has given the password again, just now."""
    execute(sa.update(Session).where(Session.id == id).values(confirmed_at=now()))


def take_confirmation(id: str | None) -> bool:
    """Use up the confirmation of a session, and return whether the session still had one."""
    confirmed = sa.update(Session).where(Session.id == id, Session.confirmed_at.is_not(None))
    return bool(execute(confirmed.values(confirmed_at=None)).rowcount)


def is_confirmed(id: str | None) -> bool:
    """Return whether the user of a session has given the password again within five minutes."""
    confirmed_at: datetime | None = fetch_value(_CONFIRMED_AT, id=id)
    if confirmed_at is None:
        return False
    return -MAX_SKEW < now() - confirmed_at < CONFIRMATION_LIFETIME


def list_sessions(user_id: str, *, current_id: str | None) -> list[dict[str, Any]]:
    """Return a user's sessions as they are sent, newest first."""
    rows = fetch_all(_OF_USER, user_id=user_id, **oldest_valid(now()))
    return [session | {"current": session["id"] == current_id} for session in to_items(rows)]


def get_session(user_id: str, id: str, *, current_id: str | None) -> dict[str, Any]:
    """Return a session of a user as it is sent. Raise NoSuchSession."""
    row = fetch_one(_ONE_OF_USER, user_id=user_id, id=id, **oldest_valid(now()))
    if row is None:
        raise NoSuchSession
    return to_item(row) | {"current": id == current_id}


def open_session(user_id: str) -> str:
    """Replace the request's session by a new one for a locked account, and return its token.

    All but the user's newest fifty sessions end. Expired sessions are purged.
    """
    end_current_session()
    token, time = secrets.token_urlsafe(32), now()
    execute(_MARK_SEEN, user=user_id, time=time)
    values = {"token_hash": hash_token(token), "user_agent": _user_agent(), "created_at": time}
    execute(_INSERT, user_id=user_id, last_seen_at=time, **values)
    execute(_DELETE_SURPLUS, user_id=user_id, time=time)
    purge_expired(Session)
    return token


def end_current_session() -> str | None:
    """Delete the session of the request's cookie, and return its user's id, if there is one."""
    token = _token_of(request)
    if not token:
        return None
    user_id: str | None = execute(_DELETE_BY_TOKEN, token_hash=hash_token(token)).scalar()
    return user_id


def end_sessions(user_id: str, *, except_id: str | None = None) -> None:
    """Delete all sessions of a user, except the one with the id `except_id`."""
    sessions = sa.delete(Session).where(Session.user_id == user_id)
    execute(sessions.where(Session.id != except_id) if except_id else sessions)


def end_session(user_id: str, id: str) -> bool:
    """Delete a session of a user, and return whether there was one."""
    own = sa.delete(Session).where(Session.id == id, Session.user_id == user_id)
    return bool(execute(own).rowcount)


def cookie_header(token: str | None) -> dict[str, str]:
    """Return the header that sets the session cookie, or deletes it."""
    response = Response()
    response.set_cookie(
        current_app.config["SESSION_COOKIE_NAME"],
        token or "",
        max_age=SESSION_LIFETIME if token else 0,
        secure=current_app.config["SESSION_COOKIE_SECURE"],
        httponly=True,
        samesite="Lax",
    )
    return {"Set-Cookie": response.headers["Set-Cookie"]}


def _token_of(sent: Request) -> str | None:
    """Return the token in the session cookie."""
    return sent.cookies.get(current_app.config["SESSION_COOKIE_NAME"])


def hash_token(token: str) -> str:
    """Return the SHA-256 of a token, which is stored instead of it."""
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


def oldest_valid(time: datetime) -> dict[str, datetime]:
    """Return the parameters of `IS_VALID`."""
    return {
        "oldest_last_seen_at": time - SESSION_IDLE,
        "oldest_created_at": time - SESSION_LIFETIME,
    }


def _user_agent() -> str:
    return "".join(filter(str.isprintable, request.headers.get("User-Agent", "")))[:256]
