"""Accounts: read anyone's, edit and delete one's own."""

from typing import Any

from marshmallow import ValidationError
from werkzeug.exceptions import Forbidden, NotFound

from posting.auth import sessions
from posting.auth.sessions import (
    ACCOUNT_LIMIT,
    UsernameTaken,
    current_user,
    own_account,
    signed_in,
    user_id,
)
from posting.db.engine import db
from posting.db.models import User
from posting.domain import deletion
from posting.http import audit
from posting.http.endpoint import Blueprint, public
from posting.http.errors import InvalidInput, body_errors
from posting.schemas import accounts as accounts_schemas
from posting.schemas.fields import refuse_own_name

users = Blueprint("users", __name__, description="Who takes part")


class NoSuchUser(NotFound):
    description = "There is no such user."


class AccountForbidden(Forbidden):
    description = "Only its owner may do this to an account."


@users.get("/users/me")
@signed_in
@users.response(200, accounts_schemas.User)
def get_me() -> Any:
    """Read one's own account."""
    return own_account()


@users.get('/users/<nanoid("me"):id>')
@public
@users.answers(NoSuchUser)
@users.response(200, accounts_schemas.User)
def get_user(id: str) -> Any:
    """Read an account."""
    return _find(id)


@users.patch('/users/<nanoid("me"):id>')
@signed_in
@users.arguments(accounts_schemas.ProfileChange(partial=True))
@users.answers(AccountForbidden, NoSuchUser, UsernameTaken, ACCOUNT_LIMIT.documented)
@users.response(200, accounts_schemas.User)
def edit_user(changes: dict[str, Any], id: str) -> Any:
    """Edit one's own account. A new password ends all other sessions."""
    user = _own_account(id)
    current_password = changes.pop("current_password", None)
    if "password" in changes:
        _require_password(user, current_password)
        changes["password_hash"] = _hash_new_password(user, changes)
    sessions.lock_account(user)
    if "password_hash" in changes:
        sessions.end_sessions(user, but=current_user().session_id)
    user.assign(changes)
    with sessions.unique_username():
        db.session.commit()
    if "password_hash" in changes:
        audit.log("password-changed")
    return user


@users.delete('/users/<nanoid("me"):id>')
@signed_in
@users.arguments(accounts_schemas.DeletionQuery, location="query")
@users.answers(AccountForbidden, NoSuchUser)
@users.response(204, headers={"Set-Cookie": "Set-Cookie"})
def delete_user(query: dict[str, str], id: str) -> Any:
    """Delete one's own account, its sessions, and its posts and comments if so asked."""
    user, with_content = _own_account(id), query["content"] == "delete"
    deletion.clear_account(user.id, with_content=with_content)
    deletion.delete_account(sessions.lock_account(user), with_content=with_content)
    db.session.commit()
    audit.log("account-deleted")
    return None, sessions.cookie(None)


def _find(id: str) -> User:
    user = db.session.get(User, id)
    if user is None:
        raise NoSuchUser
    return user


def _own_account(id: str) -> User:
    if id != user_id():
        _find(id)
        raise AccountForbidden
    return own_account()


def _require_password(user: User, password: str | None) -> None:
    if password is None:
        raise InvalidInput.at("/current_password", "A new password needs the current one.")
    if not sessions.try_password(user, user.username, password):
        audit.log("password-refused")
        raise InvalidInput.at("/current_password", "Is not the current password.")


def _hash_new_password(user: User, changes: dict[str, Any]) -> str:
    try:
        refuse_own_name(changes["password"], changes.get("username", user.username))
    except ValidationError as error:
        raise InvalidInput([*body_errors(error.normalized_messages())]) from None
    return sessions.hash_password(changes.pop("password"))
