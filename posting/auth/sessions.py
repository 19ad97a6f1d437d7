"""Sessions: rows of the database that a cookie's token names.

Flask's signed cookie is not used, since it would stay valid after sign-out. The cookie holds a
random token, the database its SHA-256, and deleting the row ends the session everywhere.
"""

import secrets
from typing import Any

import sqlalchemy as sa
from flask import Response, current_app, request

from posting.auth.current_user import IS_VALID, current_user, digest, oldest_valid, sent_token
from posting.db.engine import db, fetch_all
from posting.db.models import SESSION_LIFETIME, SESSIONS_PER_USER, Session, User
from posting.db.purge import purge_expired
from posting.db.queries import columns
from posting.db.types import now

_OWN_SESSIONS = (
    sa.select(*columns(Session, ("id", "created_at", "last_seen_at", "user_agent")))
    .where(Session.user_id == sa.bindparam("user_id"), IS_VALID)
    .order_by(Session.created_at.desc(), Session.id)
)


def list_own_sessions() -> list[dict[str, Any]]:
    """Return the current user's sessions as they are sent, newest first."""
    rows = fetch_all(_OWN_SESSIONS, user_id=current_user.id, **oldest_valid(now()))
    return [row._asdict() | {"current": row.id == current_user.session_id} for row in rows]


def open_session(user: User) -> str:
    """Replace the request's session by a new one for `user`, and return its token.

    All but the user's newest fifty sessions end. Expired rows are purged.
    """
    end_current_session()
    token = secrets.token_urlsafe(32)
    session = Session(user_id=user.id, token_hash=digest(token), user_agent=_user_agent())
    db.session.add(session)
    db.session.flush()
    # Sessions from the future come last: the clock was set back after they began.
    newest_first = Session.created_at > session.created_at, Session.created_at.desc(), Session.id
    own = sa.select(Session.id).where(Session.user_id == user.id)
    surplus = own.order_by(*newest_first).offset(SESSIONS_PER_USER)
    # Skip locked rows: a concurrent sign-in deletes them, and may wait for one deleted here.
    unlocked = sa.select(Session.id).where(Session.id.in_(surplus))
    unlocked = unlocked.with_for_update(skip_locked=True)
    db.session.execute(sa.delete(Session).where(Session.id.in_(unlocked)))
    purge_expired()
    return token


def end_current_session() -> str | None:
    """Delete the session of the request's cookie, and return its user's id, if there is one."""
    token = sent_token()
    if not token:
        return None
    current = sa.delete(Session).where(Session.token_hash == digest(token))
    return db.session.scalar(current.returning(Session.user_id))


def end_sessions(user: User, *, except_id: str | None = None) -> None:
    """Delete all sessions of `user`, except the one with this id."""
    sessions = sa.delete(Session).where(Session.user_id == user.id)
    if except_id:
        sessions = sessions.where(Session.id != except_id)
    db.session.execute(sessions)


def end_session(user_id: str, id: str) -> bool:
    """Delete a session of a user, and return whether there was one."""
    own = sa.delete(Session).where(Session.id == id, Session.user_id == user_id)
    return bool(db.session.execute(own.returning(Session.id)).all())


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


def _user_agent() -> str:
    return "".join(filter(str.isprintable, request.headers.get("User-Agent", "")))[:256]
