"""Passwords, session tokens, and who is asking. Flask-Login lives here and nowhere else.

Flask's own signed cookie is not used: it would outlive a sign-out. The cookie holds a random token,
the database its SHA-256, and deleting the row ends the session everywhere.
"""

import hashlib
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from threading import BoundedSemaphore
from typing import Any

import flask_login
import sqlalchemy as sa
from flask import Flask, Request, Response, current_app, g, request
from flask.sessions import SessionInterface, SessionMixin
from werkzeug.exceptions import Conflict, NotFound
from werkzeug.security import check_password_hash, generate_password_hash

from posting.db import models, purge
from posting.db.engine import begin, db, select, violated_constraint
from posting.db.types import now
from posting.http.endpoint import View, anyone, grant
from posting.http.errors import NotSignedIn, respond
from posting.http.openapi import DocumentedBlueprint
from posting.http.proxy import client_ip
from posting.http.rate_limits import Limit, charge, give_back

# last_seen_at is written at most this often, so that reading stays reading.
SEEN_EXACT_TO = models.SESSION_IDLE / 720

ACCOUNT_LIMIT = Limit("signin", "LIMIT_SIGNIN")
ADDRESS_LIMIT = Limit("signin-address", "LIMIT_SIGNIN", times=5)

# A hash takes 32 MiB and a whole core for a while; more at once would only starve other requests.
_hashing = BoundedSemaphore(os.cpu_count() or 1)


@dataclass(frozen=True, eq=False)
class Caller(flask_login.UserMixin):  # type: ignore[misc]  # it has no type hints
    """Who is asking, and by way of which of their sessions."""

    id: str
    username: str
    is_moderator: bool
    session_id: str


class _NoFlaskSession(SessionInterface):
    """Flask's session, empty and never sent."""

    class Empty(dict[str, Any], SessionMixin):
        pass

    def open_session(self, app: Flask, request: Request) -> SessionMixin:
        return self.Empty()

    def save_session(self, app: Flask, session: SessionMixin, response: Response) -> None:
        pass


def init_app(app: Flask) -> None:
    app.session_interface = _NoFlaskSession()
    app.config["REMEMBER_COOKIE_NAME"] = ";"  # a name that no cookie has: none is ever honoured
    manager = flask_login.LoginManager()
    manager.session_protection = None
    manager.request_loader(_load_caller)
    # What else its `init_app` does is for its remember-me cookie.
    app.login_manager = manager  # type: ignore[attr-defined]  # as Flask-Login finds it
    app.register_error_handler(sa.exc.IntegrityError, _refers_to_nothing)
    _dummy_hash(app.config["PASSWORD_HASH"])


def signed_in(view: View) -> View:
    """Let only those ask who come with a living session."""
    documented: View = DocumentedBlueprint.answers(NotSignedIn)(view)
    return grant(documented, _require_caller, security=[{"session": []}])


def ends_session(view: View) -> View:
    """Allow every request; the view ends the session that is presented, if there is one."""
    return grant(view, anyone, security=[{"session": []}, {}])


def current_user() -> Caller:
    """Return who asks a `signed_in` view."""
    caller: Caller = flask_login.current_user
    return caller


def user_id() -> str:
    """Return the id of who asks a `signed_in` view."""
    return current_user().id


def own_account() -> models.User:
    """Return the account of who asks, and hold no transaction. Error: 401 if it is gone."""
    begin(writes=False)
    user = db.session.get(models.User, user_id())
    db.session.commit()
    if user is None:
        raise NotSignedIn
    return user


def _require_caller() -> None:
    g.pop("_login_user", None)  # ask anew: the session may have ended since
    if not flask_login.current_user.is_authenticated:
        raise NotSignedIn


def _load_caller(incoming: Request) -> Caller | None:
    if not (token := incoming.cookies.get(cookie_name(current_app))):
        return None
    rows = select(models.Session.presented(), token_hash=_digest(token))
    if not rows:
        return None
    g.user_id, username, role, session_id, last_seen_at = rows[0]
    if now() - last_seen_at > SEEN_EXACT_TO:
        _see(session_id)
    return Caller(g.user_id, username, role == models.MODERATOR, session_id)


def _see(session_id: str) -> None:
    """Note that a session is used, unless the database is busy."""
    table = models.Session
    seen = sa.update(table).where(table.id == session_id).values(last_seen_at=now())
    writing = db.engine.execution_options(writes=True)
    with suppress(sa.exc.OperationalError), writing.begin() as connection:
        connection.execute(seen)


def open_session(user: models.User) -> str:
    """Add a session for `user` in place of the one presented, and return its token.

    Sessions beyond a user's newest fifty end, and what has expired is swept.
    """
    end_presented_session()
    token, table = secrets.token_urlsafe(32), models.Session
    opened = table(user_id=user.id, token_hash=_digest(token), user_agent=_user_agent(request))
    db.session.add(opened)
    db.session.flush()
    surplus = (
        sa.select(table.id)
        .where(table.user_id == user.id)
        # Sessions from the future come last: the clock was set back since they began.
        .order_by(table.created_at > opened.created_at, table.created_at.desc(), table.id)
        .offset(models.SESSIONS_PER_USER)
    )
    # But for those that others are ending, who may wait for one that this sign-in has ended.
    free = sa.select(table.id).where(table.id.in_(surplus)).with_for_update(skip_locked=True)
    db.session.execute(sa.delete(table).where(table.id.in_(free)))
    purge.purge_expired()
    return token


def end_presented_session() -> str | None:
    """Delete the session whose cookie came with the request, if any; return whose it was."""
    if not (token := request.cookies.get(cookie_name(current_app))):
        return None
    table = models.Session
    presented = sa.delete(table).where(table.token_hash == _digest(token))
    return db.session.scalar(presented.returning(table.user_id))


def end_sessions(user: models.User, *, but: str | None = None) -> None:
    """Delete all sessions of `user`, but perhaps the one with this id."""
    statement = sa.delete(models.Session).where(models.Session.user_id == user.id)
    db.session.execute(statement.where(models.Session.id != but) if but else statement)


def cookie_name(app: Flask) -> str:
    """Return the name of the session cookie; behind https a browser binds it to this host."""
    return "__Host-session" if _secure(app) else "session"


def cookie(token: str | None) -> dict[str, str]:
    """Return the header that makes the browser keep `token`, or forget the one it has."""
    response = Response()
    response.set_cookie(
        cookie_name(current_app),
        token or "",
        max_age=models.SESSION_LIFETIME if token else 0,
        secure=_secure(current_app),
        httponly=True,
        samesite="Lax",
    )
    return {"Set-Cookie": response.headers["Set-Cookie"]}


def _secure(app: Flask) -> bool:
    return (app.config["PUBLIC_URL"] or "").startswith("https:")


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


def _user_agent(incoming: Request) -> str:
    return "".join(filter(str.isprintable, incoming.headers.get("User-Agent", "")))[:256]


def hash_password(password: str) -> str:
    """Return the salted scrypt hash of a password; slow by design, so hold no transaction."""
    with _hashing:
        return generate_password_hash(password, current_app.config["PASSWORD_HASH"])


def try_password(user: models.User | None, username: str, password: str) -> bool:
    """Tell whether `password` is that of the user of this name, if there is one; failures count.

    It takes the same time whether there is one or not. Error: 429 after too many failures.
    """
    account = user.id if user else username.lower()
    charged = charge((ADDRESS_LIMIT, client_ip()), (ACCOUNT_LIMIT, f"{client_ip()} {account}"))
    db.session.commit()  # first, so that those who try all at once are counted all the same
    if not _password_matches(user, password) or user is None:
        return False
    give_back(charged)
    db.session.commit()
    g.user_id = user.id
    return True


def _password_matches(user: models.User | None, password: str) -> bool:
    known = user.password_hash if user else _dummy_hash(current_app.config["PASSWORD_HASH"])
    with _hashing:
        return check_password_hash(known, password) and user is not None


def renewed_hash(user: models.User, password: str) -> str:
    """Return the hash of the user's own password, made anew if the parameters have changed."""
    current = user.password_hash.startswith(current_app.config["PASSWORD_HASH"] + "$")
    return user.password_hash if current else hash_password(password)


def lock_account(user: models.User) -> models.User:
    """Begin to change an account: lock its row, and make sure that it is what was verified.

    Error: 401 if meanwhile the account is gone or its password is another.
    """
    verified = user.password_hash
    locked = db.session.get(models.User, user.id, with_for_update=True, populate_existing=True)
    if locked is None or locked.password_hash != verified:
        raise NotSignedIn
    return locked


def hold_account() -> None:
    """Lock the current user's account against deletion; it comes before all other locks.

    Error: 401 if the account, or the session of this request, has ended meanwhile.
    """
    held = (
        sa.select(models.User.id)
        .join(models.Session)
        .where(models.Session.id == current_user().session_id, models.User.suspended_at.is_(None))
        .with_for_update(read=True, key_share=True, of=models.User)
    )
    if db.session.scalar(held) is None:
        raise NotSignedIn


class UsernameTaken(Conflict):
    description = "This username is taken."


@contextmanager
def unique_username() -> Iterator[None]:
    """Turn a broken uniqueness of names into 409."""
    try:
        yield
    except sa.exc.IntegrityError as error:
        if violated_constraint(error) != "uq_users_username":
            raise
        raise UsernameTaken from None


def _refers_to_nothing(error: sa.exc.IntegrityError) -> Response:
    """Answer for a broken foreign key: what the request refers to was deleted meanwhile."""
    if "foreign key" not in str(error.orig).lower():
        raise error
    db.session.rollback()
    asker_remains = db.session.get(models.User, user_id(), populate_existing=True)
    return respond(NotFound("It refers to something gone.") if asker_remains else NotSignedIn())


@cache
def _dummy_hash(parameters: str) -> str:
    return generate_password_hash(secrets.token_urlsafe(16), parameters)
