"""Accounts: read any, edit and delete your own."""

from typing import Any

from werkzeug.exceptions import Forbidden

from posting.auth import sessions, tokens
from posting.auth.login import SESSION_REQUIRED, SIGNED_IN, current_user, get_own_account
from posting.auth.passwords import ACCOUNT_LIMIT, hash_password, lock_account, verify_password
from posting.db import queries
from posting.db.engine import db
from posting.db.errors import NoSuchUser
from posting.db.models import User
from posting.domain.users import UsernameTaken, clear_account, delete_account, unique_username
from posting.http import audit, rate_limits
from posting.http.endpoint import PUBLIC, Blueprint, Reply
from posting.http.errors import InvalidInput
from posting.schemas import users as schemas
from posting.schemas.fields import is_own_name
from posting.schemas.messages import SAME_AS_USERNAME, Message

CURRENT_PASSWORD_MISSING = Message("required", "A new password needs the current one.")
WRONG_PASSWORD = Message("wrong_password", "Is not the current password.")

users = Blueprint("users", __name__, description="Accounts of members")


class AccountForbidden(Forbidden):
    error_code = "not_owner"
    description = "Only the owner of an account may do this."


@users.get("/users/me", access=SIGNED_IN, returns=schemas.User())
def get_me() -> Reply:
    """Read your own account."""
    return current_user.profile


@users.get("/users", access=PUBLIC, query=schemas.UsersQuery(), returns=schemas.User(many=True))
def list_users(query: dict[str, str]) -> Reply:
    """Find a user by name: the list has one user or none."""
    user = queries.find_user(query["username"])
    return [user] if user else []


@users.get('/users/<nanoid("me"):id>', access=PUBLIC, returns=schemas.User(), errors=[NoSuchUser])
def get_user(id: str) -> Reply:
    """Read an account."""
    return queries.get_user(id)


@users.patch(
    '/users/<nanoid("me"):id>',
    access=SESSION_REQUIRED,
    body=schemas.ProfileChange(partial=True),
    returns=schemas.User(),
    errors=[AccountForbidden, NoSuchUser, UsernameTaken, ACCOUNT_LIMIT.error],
)
def edit_user(id: str, body: dict[str, Any]) -> Reply:
    """Edit your own account. A new password ends all other sessions, and all tokens."""
    user = _own_account(id)
    current_password = body.pop("current_password", None)
    if password := body.pop("password", None):
        if current_password is None:
            raise InvalidInput.at("/current_password", CURRENT_PASSWORD_MISSING)
        if is_own_name(password, body.get("username", user.username)):
            raise InvalidInput.at("/password", SAME_AS_USERNAME)
        if not verify_password(user, user.username, current_password):
            audit.log("password-refused")
            raise InvalidInput.at("/current_password", WRONG_PASSWORD)
        rate_limits.refund()
        db.session.commit()
        body["password_hash"] = hash_password(password)
    user = lock_account(user)
    if "password_hash" in body:
        tokens.revoke_access(user, except_session=current_user.session_id)
    user.assign(body)
    with unique_username():
        db.session.commit()
    if "password_hash" in body:
        audit.log("password-changed")
    return queries.to_user(user)


@users.delete(
    '/users/<nanoid("me"):id>',
    access=SESSION_REQUIRED,
    query=schemas.DeletionQuery(),
    status=204,
    headers=["Set-Cookie"],
    errors=[AccountForbidden, NoSuchUser],
)
def delete_user(id: str, query: dict[str, str]) -> Reply:
    """Delete your own account and its sessions; its posts and comments too if you choose so."""
    user, with_content = _own_account(id), query["content"] == "delete"
    clear_account(user.id, with_content=with_content)
    delete_account(lock_account(user), with_content=with_content)
    db.session.commit()
    audit.log("account-deleted")
    return None, sessions.cookie_header(None)


def _own_account(id: str) -> User:
    if id != current_user.id:
        queries.get_user(id)  # raises NoSuchUser
        raise AccountForbidden
    return get_own_account()
