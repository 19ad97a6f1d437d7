"""The current user: whose session a request's cookie names. Flask-Login is used here only."""

import hashlib
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

import flask_login
import sqlalchemy as sa
from flask import Flask, Request, Response, current_app, g, request
from flask.sessions import SessionInterface, SessionMixin
from werkzeug.exceptions import NotFound

from posting.db.engine import begin, db, fetch_one
from posting.db.models import MODERATOR, SESSION_IDLE, SESSION_LIFETIME, Session, User
from posting.db.types import now
from posting.http.endpoint import Access
from posting.http.errors import NotSignedIn, respond

# last_seen_at is written at most this often, so that most reads write nothing.
LAST_SEEN_PRECISION = SESSION_IDLE / 720

IS_VALID = sa.and_(
    Session.last_seen_at > sa.bindparam("oldest_last_seen_at", type_=Session.last_seen_at.type),
    Session.created_at > sa.bindparam("oldest_created_at", type_=Session.created_at.type),
)
_BY_TOKEN = (
    sa.select(User.id, User.username, User.display_name, User.role)
    .add_columns(Session.id.label("session_id"), Session.last_seen_at)
    .join(Session.user)
    .where(Session.token_hash == sa.bindparam("token_hash"), IS_VALID)
)


@dataclass(frozen=True, eq=False)
class CurrentUser(flask_login.UserMixin):  # type: ignore[misc]  # it has no type hints
    """The user of a request, and the session by which they are signed in."""

    id: str
    username: str
    display_name: str | None
    is_moderator: bool
    session_id: str

    def as_author(self) -> dict[str, str | None]:
        """Return the user as the author of what they write."""
        return {"id": self.id, "username": self.username, "display_name": self.display_name}


current_user = cast(CurrentUser, flask_login.current_user)


def user_id() -> str:
    """Return the current user's id, as the subject of a limit."""
    return current_user.id


def require_session() -> None:
    """Raise 401 unless the request has a valid session."""
    g.pop("_login_user", None)  # where Flask-Login keeps a user whose session may have ended
    if not flask_login.current_user.is_authenticated:
        raise NotSignedIn


SIGNED_IN = Access(require_session, security=[{"session": []}], errors=[NotSignedIn])
# The view ends the session that was sent, if there is one.
SESSION_OPTIONAL = Access(lambda: None, security=[{"session": []}, {}])


class NoFlaskSession(SessionInterface):
    """Flask's session, always empty and never sent."""

    class Empty(dict[str, Any], SessionMixin):
        pass

    def open_session(self, app: Flask, request: Request) -> SessionMixin:
        return self.Empty()

    def save_session(self, app: Flask, session: SessionMixin, response: Response) -> None:
        pass


def init_app(app: Flask) -> None:
    """Name the session cookie, and let Flask-Login load the user from it."""
    is_https = (app.config["PUBLIC_URL"] or "").startswith("https:")
    # The prefix makes browsers bind the cookie to the host; it requires HTTPS.
    app.config["SESSION_COOKIE_NAME"] = "__Host-session" if is_https else "session"
    app.config["SESSION_COOKIE_SECURE"] = is_https
    app.session_interface = NoFlaskSession()
    app.config["REMEMBER_COOKIE_NAME"] = ";"  # no cookie can have this name: none is accepted
    manager = flask_login.LoginManager()
    manager.session_protection = None
    manager.request_loader(_load_user)
    # All else that its `init_app` does is for its remember-me cookie.
    app.login_manager = manager  # type: ignore[attr-defined]  # where Flask-Login looks for it
    app.register_error_handler(sa.exc.IntegrityError, _respond_to_broken_reference)


def sent_token() -> str | None:
    return request.cookies.get(current_app.config["SESSION_COOKIE_NAME"])


def digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


def oldest_valid(time: datetime) -> dict[str, datetime]:
    """Return the parameters of `IS_VALID`."""
    return {
        "oldest_last_seen_at": time - SESSION_IDLE,
        "oldest_created_at": time - SESSION_LIFETIME,
    }


def get_own_account() -> User:
    """Return the current user's account, outside of a transaction. Error: 401 if it is gone."""
    begin(writes=False)
    user = db.session.get(User, current_user.id)
    db.session.commit()
    if user is None:
        raise NotSignedIn
    return user


def lock_current_user() -> None:
    """Lock the current user's account against deletion. Take this lock before those of posts.

    Error: 401 if the account or the session has ended since the request began.
    """
    account = (
        sa.select(User.id)
        .join(Session)
        .where(Session.id == current_user.session_id, User.suspended_at.is_(None))
        .with_for_update(read=True, key_share=True, of=User)
    )
    if db.session.scalar(account) is None:
        raise NotSignedIn


def _load_user(_request: Request) -> CurrentUser | None:
    token, time = sent_token(), now()
    if not token:
        return None
    row = fetch_one(_BY_TOKEN, token_hash=digest(token), **oldest_valid(time))
    if row is None:
        return None
    g.user_id = row.id
    if time - row.last_seen_at > LAST_SEEN_PRECISION:
        touch_session(row.session_id, time)
    return CurrentUser(
        id=row.id,
        username=row.username,
        display_name=row.display_name,
        is_moderator=row.role == MODERATOR,
        session_id=row.session_id,
    )


def touch_session(id: str, time: datetime) -> None:
    """Update a session's `last_seen_at`, unless the database is busy."""
    touch = sa.update(Session).where(Session.id == id).values(last_seen_at=time)
    writing = db.engine.execution_options(writes=True)
    with suppress(sa.exc.OperationalError), writing.begin() as connection:
        connection.execute(touch)


def _respond_to_broken_reference(error: sa.exc.IntegrityError) -> Response:
    """Respond to a broken foreign key: a row that the request refers to was deleted meanwhile."""
    if "foreign key" not in str(error.orig).lower():
        raise error
    db.session.rollback()
    account = db.session.get(User, current_user.id, populate_existing=True)
    return respond(NotFound("It refers to something gone.") if account else NotSignedIn())
