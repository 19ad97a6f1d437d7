"""The current user, by the session or token of a request. Flask-Login is used here only."""

from dataclasses import dataclass
from typing import Any, cast

import flask_login
import sqlalchemy as sa
from flask import Flask, Request, Response, g, request
from flask.sessions import SessionInterface, SessionMixin
from werkzeug.exceptions import NotFound

from posting.accounts import queries, schemas, sessions, tokens
from posting.accounts.models import MODERATOR, Session, Token, User
from posting.config import is_https
from posting.db.transactions import Row, execute, rollback
from posting.web.endpoint import SAFE_METHODS, Access
from posting.web.errors import NotSignedIn, respond, respond_to_database_error


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


PROFILE = tuple(schemas.User().fields)


current_user = cast(CurrentUser, flask_login.current_user)


def user_id() -> str:
    """Return the current user's id, as the subject of a limit."""
    return current_user.id


def refuse_invalid_token() -> None:
    """Raise 401 if the request has a token that is not valid."""
    if _bearer_token() is not None:
        _authenticate()


def require_user() -> None:
    """Raise 401 unless the request has a valid session or token, and 403 if a token may only read.

    A token wins over a session.
    """
    user = _authenticate()
    if not (user.may_write or request.method in SAFE_METHODS):
        raise tokens.InsufficientScope
    flask_login.login_user(user)


def require_session() -> None:
    """Raise 401 unless the request has a valid session, and 403 if it has a token."""
    user = _authenticate()
    if user.token_id:
        raise tokens.TokenNotAllowed
    flask_login.login_user(user)


def _authenticate() -> CurrentUser:
    """Return the user of this request. Raise 401 unless the session or token is valid now.

    A `request_loader` would not do. Flask-Login calls it once, but a session may end while the body
    arrives. It does not call it at all if the request has a cookie `remember_token`, which another
    program on the same host may have set.
    """
    user = _find_user()
    if user is None:
        raise _not_signed_in()
    g.user_id = user.id
    return user


def _not_signed_in() -> NotSignedIn:
    return NotSignedIn() if _bearer_token() is None else tokens.InvalidToken()


# For everyone, but a program learns by its first request that its token has ended.
TOKEN_OPTIONAL = Access(
    refuse_invalid_token, security=[{"token": []}, {}], errors=[tokens.InvalidToken]
)
SIGNED_IN = Access(
    require_user,
    security=[{"session": []}, {"token": []}],
    errors=[NotSignedIn, tokens.InvalidToken],
    write_errors=[tokens.InsufficientScope],
)
SESSION_REQUIRED = Access(
    require_session,
    security=[{"session": []}],
    errors=[NotSignedIn, tokens.InvalidToken, tokens.TokenNotAllowed],
)
# The view ends the session that was sent, if there is one.
SESSION_OPTIONAL = Access(lambda: None, security=[{"session": []}, {}])

_ACCOUNT = sa.select(User.id).where(User.id == sa.bindparam("id"), User.is_active)
_LOCKS = {  # by whether they are exclusive
    exclusively: _ACCOUNT.with_for_update(read=not exclusively, key_share=True)
    for exclusively in (False, True)
}
_SESSION = sa.select(Session.id).where(Session.id == sa.bindparam("id"))
_TOKEN = sa.select(Token.id).where(Token.id == sa.bindparam("id"))


class RequestSession(dict[str, Any], SessionMixin):
    """The notes of Flask-Login about the user of a request."""


class RequestSessions(SessionInterface):
    """Flask's own sessions. They end with the request and are never sent."""

    def open_session(self, app: Flask, request: Request) -> RequestSession:
        return RequestSession()

    def save_session(self, app: Flask, session: SessionMixin, response: Response) -> None:
        pass


def init_app(app: Flask) -> None:
    """Name the session cookie, and set up Flask-Login."""
    secure = is_https(app.config)
    # The prefix makes browsers bind the cookie to the host; it requires HTTPS.
    app.config["SESSION_COOKIE_NAME"] = "__Host-session" if secure else "session"
    app.config["SESSION_COOKIE_SECURE"] = secure
    app.session_interface = RequestSessions()
    manager = flask_login.LoginManager()
    manager.request_loader(_refuse_to_load)
    # Templates need no `current_user`, because pages are the same for everyone.
    manager.init_app(app, add_context_processor=False)
    app.register_error_handler(sa.exc.IntegrityError, _respond_to_broken_reference)


def _refuse_to_load(_request: Request) -> None:
    """Refuse to find the current user of an endpoint whose access rule requires none.

    Its response must be the same for everyone, even if a request has a session or a token.
    """
    raise RuntimeError(f"{request.endpoint} requires no user, but reads the current user")


def get_own_account() -> Row:
    """Return the current user's account. Raise 401 if it is gone."""
    user = queries.get_account(current_user.id)
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


def _find_user() -> CurrentUser | None:
    """Return the user of the request's token or session, as the database has it now."""
    token = _bearer_token()
    found = sessions.find_current_session() if token is None else tokens.find_token(token)
    if found is None:
        return None
    return CurrentUser(
        id=found.id,
        username=found.username,
        is_moderator=found.role == MODERATOR,
        profile={name: getattr(found, name) for name in PROFILE},
        session_id=found.session_id,
        token_id=found.token_id,
        may_write=found.scope == "write",
    )


def _respond_to_broken_reference(error: sa.exc.IntegrityError) -> Response:
    """Respond to a broken foreign key: a row that the request refers to was deleted meanwhile."""
    if "foreign key" not in str(error.orig).lower():
        raise error
    try:
        rollback()
    except sa.exc.DBAPIError as failure:
        return respond_to_database_error(failure)
    return respond(
        NotFound("The request refers to something that no longer exists.")
        if queries.user_exists(current_user.id)
        else _not_signed_in()
    )
