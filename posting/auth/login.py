"""The current user, by the session or token of a request. Flask-Login is used here only."""

from dataclasses import dataclass
from typing import cast

import flask_login
import sqlalchemy as sa
from flask import Flask, Request, Response, g, request
from werkzeug.exceptions import NotFound

from posting.auth import sessions, tokens
from posting.config import is_https
from posting.db.engine import SAFE_METHODS, begin, db, execute
from posting.db.models import MODERATOR, Session, Token, User
from posting.http.endpoint import Access
from posting.http.errors import NotSignedIn, respond


@dataclass(frozen=True, eq=False)
class CurrentUser(flask_login.UserMixin):  # type: ignore[misc]  # it has no type hints
    """The user of a request, and the session or the token that it came with."""

    id: str
    username: str
    is_moderator: bool
    profile: dict[str, str | None]  # as it is sent
    session_id: str | None
    token_id: str | None
    may_write: bool

    def as_author(self) -> dict[str, str | None]:
        """Return the user as the author of what they write."""
        return {name: self.profile[name] for name in ("id", "username", "display_name")}


current_user = cast(CurrentUser, flask_login.current_user)


def user_id() -> str:
    """Return the current user's id, as the subject of a limit."""
    return current_user.id


def require_user() -> None:
    """Raise 401 unless the request has a valid session or token, and 403 if a token may only read.

    A token wins over a session.
    """
    _require_authentication()
    if not (current_user.may_write or request.method in SAFE_METHODS):
        raise tokens.InsufficientScope


def require_session() -> None:
    """Raise 401 unless the request has a valid session, and 403 if it has a token."""
    _require_authentication()
    if current_user.token_id:
        raise tokens.TokenNotAllowed


def _require_authentication() -> None:
    g.pop("_login_user", None)  # where Flask-Login keeps a user whose session may have ended
    if not flask_login.current_user.is_authenticated:
        raise _not_signed_in()


def _not_signed_in() -> NotSignedIn:
    return NotSignedIn() if _bearer_token() is None else tokens.InvalidToken()


SIGNED_IN = Access(require_user, security=[{"session": []}, {"token": []}], errors=[NotSignedIn])
SESSION_REQUIRED = Access(
    require_session, security=[{"session": []}], errors=[NotSignedIn, tokens.TokenNotAllowed]
)
# The view ends the session that was sent, if there is one.
SESSION_OPTIONAL = Access(lambda: None, security=[{"session": []}, {}])

_ACCOUNT = sa.select(User.id).where(User.id == sa.bindparam("id"), User.suspended_at.is_(None))
_LOCKS = {  # by whether they are exclusive
    exclusively: _ACCOUNT.with_for_update(read=not exclusively, key_share=True)
    for exclusively in (False, True)
}
_SESSION = sa.select(Session.id).where(Session.id == sa.bindparam("id"))
_TOKEN = sa.select(Token.id).where(Token.id == sa.bindparam("id"))


def init_app(app: Flask) -> None:
    """Name the session cookie, and let Flask-Login load the user from it.

    Flask's own session is empty and never sent, since there is no secret key.
    """
    secure = is_https(app.config)
    # The prefix makes browsers bind the cookie to the host; it requires HTTPS.
    app.config["SESSION_COOKIE_NAME"] = "__Host-session" if secure else "session"
    app.config["SESSION_COOKIE_SECURE"] = secure
    app.config["REMEMBER_COOKIE_NAME"] = ";"  # no cookie can have this name: none is accepted
    manager = flask_login.LoginManager()
    manager.session_protection = None
    manager.request_loader(_load_user)
    # All else that its `init_app` does is for its remember-me cookie.
    app.login_manager = manager  # type: ignore[attr-defined]  # where Flask-Login looks for it
    app.register_error_handler(sa.exc.IntegrityError, _respond_to_broken_reference)


def get_own_account() -> User:
    """Return the current user's account, outside of a transaction. Raise 401 if it is gone."""
    begin(writes=False)
    user = db.session.get(User, current_user.id)
    db.session.commit()
    if user is None:
        raise _not_signed_in()
    return user


def lock_current_user(*, exclusively: bool = False) -> None:
    """Lock the current user's account against deletion. Take this lock before those of posts.

    Several requests may have the lock at once, unless one locks exclusively.

    Raise 401 if the account, the session or the token has ended since the request began.
    """
    account = execute(_LOCKS[exclusively], id=current_user.id)
    # A statement of its own, because that of the lock sees other tables as before it waited.
    access = (
        execute(_TOKEN, id=current_user.token_id)
        if current_user.token_id
        else execute(_SESSION, id=current_user.session_id)
    )
    if not account.all() or not access.all():
        raise _not_signed_in()


def _bearer_token() -> str | None:
    """Return the bearer token of the request, if there is one."""
    sent = request.authorization
    return sent.token or "" if sent and sent.type == "bearer" else None


def _load_user(_request: Request) -> CurrentUser | None:
    token = _bearer_token()
    found = sessions.find_current_session() if token is None else tokens.find_token(token)
    if found is None:
        return None
    g.user_id = found.id
    return CurrentUser(
        id=found.id,
        username=found.username,
        is_moderator=found.role == MODERATOR,
        profile={name: getattr(found, name) for name in User.PUBLIC},
        session_id=found.session_id,
        token_id=found.token_id,
        may_write=found.scope == "write",
    )


def _respond_to_broken_reference(error: sa.exc.IntegrityError) -> Response:
    """Respond to a broken foreign key: a row that the request refers to was deleted meanwhile."""
    if "foreign key" not in str(error.orig).lower():
        raise error
    db.session.rollback()
    account = db.session.get(User, current_user.id, populate_existing=True)
    return respond(
        NotFound("The request refers to something that no longer exists.")
        if account
        else _not_signed_in()
    )
