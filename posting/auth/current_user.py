"""The current user, and access rules that require one. Flask-Login is used here only."""

from dataclasses import dataclass
from typing import cast

import flask_login
import sqlalchemy as sa
from flask import Flask, Request, Response, g
from werkzeug.exceptions import NotFound

from posting.auth.sessions import find_session, touch_session
from posting.db.engine import begin, db
from posting.db.models import MODERATOR, Session, User
from posting.http.endpoint import Access
from posting.http.errors import NotSignedIn, respond


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


def init_app(app: Flask) -> None:
    app.config["REMEMBER_COOKIE_NAME"] = ";"  # no cookie can have this name: none is accepted
    manager = flask_login.LoginManager()
    manager.session_protection = None
    manager.request_loader(_load_user)
    # All else that its `init_app` does is for its remember-me cookie.
    app.login_manager = manager  # type: ignore[attr-defined]  # where Flask-Login looks for it
    app.register_error_handler(sa.exc.IntegrityError, _respond_to_broken_reference)


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
    row = find_session()
    if row is None:
        return None
    g.user_id = row.id
    touch_session(row.session_id, row.last_seen_at)
    return CurrentUser(
        id=row.id,
        username=row.username,
        display_name=row.display_name,
        is_moderator=row.role == MODERATOR,
        session_id=row.session_id,
    )


def _respond_to_broken_reference(error: sa.exc.IntegrityError) -> Response:
    """Respond to a broken foreign key: a row that the request refers to was deleted meanwhile."""
    if "foreign key" not in str(error.orig).lower():
        raise error
    db.session.rollback()
    account = db.session.get(User, current_user.id, populate_existing=True)
    return respond(NotFound("It refers to something gone.") if account else NotSignedIn())
