"""The current user, by the session or token of a request, and the access rules."""

from dataclasses import dataclass
from typing import cast

import flask_login
import sqlalchemy as sa
from flask import Flask, Request, Response, current_app, g, request
from flask.sessions import SessionInterface
from werkzeug.exceptions import Forbidden, NotFound

from posting.accounts import schemas, sessions, store, tokens
from posting.accounts.models import MEMBER, OWNER
from posting.config import cookie_name, everyone_may_read, is_https
from posting.db.transactions import Row
from posting.web.endpoint import SAFE_METHODS, Access, current_endpoint
from posting.web.errors import Coded, NotSignedIn, respond
from posting.web.limits import Limit
from posting.web.response_cache import is_visitor


@dataclass(frozen=True, eq=False)
class CurrentUser(flask_login.UserMixin):  # type: ignore[misc]  # it has no type hints
    """The user of a request, and the session or the token that it came with."""

    id: str
    username: str
    role: str
    profile: dict[str, str | None]  # as it is sent
    session_id: str | None
    token_id: str | None
    may_write: bool

    @property
    def is_moderator(self) -> bool:
        """Whether the user is a moderator or an owner."""
        return self.role != MEMBER

    @property
    def is_owner(self) -> bool:
        return self.role == OWNER

    def as_author(self) -> dict[str, str | None]:
        """Return the user as the author of what they write."""
        return {name: self.profile[name] for name in AUTHOR}


PROFILE, AUTHOR = tuple(schemas.User().fields), tuple(schemas.Author().fields)


current_user = cast(CurrentUser, flask_login.current_user)


class NotModerator(Coded, Forbidden):
    error_code = "not_moderator"
    description = "Only moderators may do this."


class NotSiteOwner(Coded, Forbidden):
    error_code = "not_site_owner"
    description = "Only owners of the site may do this."


class NotConfirmed(Coded, Forbidden):
    error_code = "not_confirmed"
    description = "Give your password again first, with POST /session-confirmations."


def current_user_id() -> str:
    """Return the current user's id, as the subject of a limit."""
    return current_user.id


# All edits of a member share one count. Its rate is that of comments, because an edit costs as
# much: it is announced to apps that keep a copy, and its text is prepared like a new one.
EDIT_LIMIT = Limit("edits", "LIMIT_COMMENTS", current_user_id)


class NotAuthor(Coded, Forbidden):
    """A base class of errors of members who are not the author. `description` says who may."""

    error_code = "not_author"


def is_author(author_id: str | None) -> bool:
    """Return whether the current user is the author of something."""
    return author_id == current_user.id


def may_delete(author_id: str | None) -> bool:
    """Return whether the current user may delete what an author has written."""
    return is_author(author_id) or current_user.is_moderator


def refuse_invalid_token() -> None:
    """Raise 401 if the request has a token that is not valid."""
    if _bearer_token(request) is not None:
        _authenticate()


def require_reader() -> None:
    """Raise 401 unless the request has a valid session or token.

    It does not set the current user, since the response must be the same for all readers.
    """
    _authenticate()


def require_feed_token() -> None:
    """Raise 401 unless the `token` in the path is a valid token for feeds."""
    found = tokens.find_feed_token((request.view_args or {})["token"])
    if found is None:
        raise tokens.InvalidToken
    g.user_id = found.id


def find_reader(sent: Request) -> str | None:
    """Return the id of the user of a request, if it has a valid session or token."""
    user = _find_user(sent)
    return user.id if user else None


def refuse_visitors_without_endpoint() -> None:
    """Raise 401 for a visitor's request that no endpoint answers, where only members may read.

    So visitors get no 404 and no 405, and nothing of a view that declares no access rule. The
    endpoints check their own rules.
    """
    if current_endpoint() is None and not everyone_may_read(current_app.config):
        require_reader()


def require_user() -> None:
    """Raise 401 unless the request has a valid session or token, and 403 if a token may only read.

    A token wins over a session.
    """
    user = _sign_in()
    if not (user.may_write or request.method in SAFE_METHODS):
        raise tokens.InsufficientScope


def require_moderator() -> None:
    """Raise an error as `require_user` does, and 403 unless the user is a moderator."""
    require_user()
    if not current_user.is_moderator:
        raise NotModerator


def require_session() -> None:
    """Raise 401 unless the request has a valid session, and 403 if it has a token."""
    user = _sign_in()
    if user.token_id:
        raise tokens.TokenNotAllowed


def require_moderator_session() -> None:
    """Raise an error as `require_session` does, and 403 unless the user is a moderator."""
    require_session()
    if not current_user.is_moderator:
        raise NotModerator


def require_owner_session() -> None:
    """Raise an error as `require_session` does, and 403 unless the user is an owner."""
    require_session()
    if not current_user.is_owner:
        raise NotSiteOwner


def require_confirmed_owner() -> None:
    """Raise an error as `require_owner_session` does, and 403 without the password given again."""
    require_owner_session()
    if not sessions.is_confirmed(current_user.session_id):
        raise NotConfirmed


def _sign_in() -> CurrentUser:
    """Make the user of this request the current user. Raise 401 as `_authenticate` does."""
    user = g.user = _authenticate()
    g.pop("_login_user", None)  # Flask-Login keeps a user there, in tests that of another request
    return user


def _authenticate() -> CurrentUser:
    """Return the user of this request. Raise 401 unless the session or token is valid now."""
    user = None if is_visitor(request.environ) else _find_user(request)
    if user is None:
        raise _not_signed_in()
    g.user_id = user.id
    return user


def _not_signed_in() -> NotSignedIn:
    return NotSignedIn() if _bearer_token(request) is None else tokens.InvalidToken()


_MEMBERS = Access(
    require_reader,
    security=[{"session": []}, {"token": []}],
    errors=[NotSignedIn, tokens.InvalidToken],
    find_reader=find_reader,
)
# For all who may read. A program learns by its first request that its token has ended.
READERS = Access(
    refuse_invalid_token,
    security=[{"token": []}, {}],
    errors=[tokens.InvalidToken],
    for_members=_MEMBERS,
)
# For all who may read, in a browser or a feed reader. Tokens are ignored where everyone may read.
PAGE_READERS = Access(lambda: None, security=[], for_members=_MEMBERS)
# For feed readers, by the token in the path. OpenAPI knows no security scheme of this kind.
FEED_TOKEN = Access(require_feed_token, security=[], errors=[tokens.InvalidToken])
SIGNED_IN = Access(
    require_user,
    security=[{"session": []}, {"token": []}],
    errors=[NotSignedIn, tokens.InvalidToken],
    write_errors=[tokens.InsufficientScope],
)
MODERATOR_REQUIRED = Access(
    require_moderator,
    security=SIGNED_IN.security,
    errors=[*SIGNED_IN.errors, NotModerator],
    write_errors=SIGNED_IN.write_errors,
)
SESSION_REQUIRED = Access(
    require_session,
    security=[{"session": []}],
    errors=[NotSignedIn, tokens.InvalidToken, tokens.TokenNotAllowed],
)
MODERATOR_SESSION_REQUIRED = Access(
    require_moderator_session,
    security=SESSION_REQUIRED.security,
    errors=[*SESSION_REQUIRED.errors, NotModerator],
)
OWNER_SESSION_REQUIRED = Access(
    require_owner_session,
    security=SESSION_REQUIRED.security,
    errors=[*SESSION_REQUIRED.errors, NotSiteOwner],
)
CONFIRMED_OWNER_REQUIRED = Access(
    require_confirmed_owner,
    security=SESSION_REQUIRED.security,
    errors=[*OWNER_SESSION_REQUIRED.errors, NotConfirmed],
)
# The view ends the session that was sent, if there is one.
SESSION_OPTIONAL = Access(lambda: None, security=[{"session": []}, {}])


class NoSessions(SessionInterface):
    """Flask's own sessions, which are always empty. Even with a SECRET_KEY, none is sent."""

    def open_session(self, app: Flask, request: Request) -> None:
        return None


def init_app(app: Flask) -> None:
    """Name the session cookie, and set up Flask-Login."""
    app.config["SESSION_COOKIE_NAME"] = cookie_name(app.config)
    app.config["SESSION_COOKIE_SECURE"] = is_https(app.config)
    app.session_interface = NoSessions()
    # No cookie can have this name. With such a cookie, Flask-Login would not ask `load_user`.
    app.config["REMEMBER_COOKIE_NAME"] = ";"
    manager = flask_login.LoginManager()
    manager.request_loader(load_user)
    # Templates need no `current_user`, because pages are the same for everyone.
    manager.init_app(app, add_context_processor=False)
    app.register_error_handler(sa.exc.IntegrityError, _respond_to_broken_reference)


def load_user(_request: Request) -> CurrentUser:
    """Return the user that the access rule has found, as the loader of Flask-Login.

    Raise RuntimeError for an endpoint whose rule requires no user. Its response must be the same
    for everyone, even if a request has a session or a token.
    """
    if "user" not in g:
        raise RuntimeError(f"{request.endpoint} requires no user, but reads the current user")
    user: CurrentUser = g.user
    return user


def get_own_account() -> Row:
    """Return the current user's account. Raise 401 if it is gone."""
    user = store.find_account_by_id(current_user.id)
    if user is None:
        raise _not_signed_in()
    return user


def lock_as_owner() -> None:
    """Lock all owners. Raise 403 if the current user is not one of them any more."""
    if all(owner.id != current_user.id for owner in store.lock_owners()):
        raise NotSiteOwner


def lock_current_user(*, exclusively: bool = False) -> None:
    """Lock the current user's account against deletion. Take this lock before those of posts.

    Several requests may have the lock at once, unless one locks exclusively.

    Raise 401 if the account, the session or the token has ended since the request began.
    """
    is_active = store.lock_active_account(current_user.id, exclusively=exclusively)
    # A statement of its own, because that of the lock sees other tables as before it waited.
    has_access = (
        tokens.token_exists(current_user.token_id)
        if current_user.token_id
        else sessions.session_exists(current_user.session_id)
    )
    if not (is_active and has_access):
        raise _not_signed_in()


def _bearer_token(sent: Request) -> str | None:
    """Return the bearer token of a request, if there is one."""
    given = sent.authorization
    return given.token or "" if given and given.type == "bearer" else None


def _find_user(sent: Request) -> CurrentUser | None:
    """Return the user of the token or session of a request, as the database has it now."""
    token = _bearer_token(sent)
    found = sessions.find_session(sent) if token is None else tokens.find_token(token)
    if found is None:
        return None
    return CurrentUser(
        id=found.id,
        username=found.username,
        role=found.role,
        profile={name: getattr(found, name) for name in PROFILE},
        session_id=found.session_id,
        token_id=found.token_id,
        may_write=found.scope == "write",
    )


def _respond_to_broken_reference(error: sa.exc.IntegrityError) -> Response:
    """Respond to a broken foreign key: a row that the request refers to was deleted meanwhile."""
    if "foreign key" not in str(error.orig).lower():
        raise error
    return respond(
        NotFound("The request refers to something that no longer exists.")
        if store.user_exists(current_user.id)
        else _not_signed_in()
    )
