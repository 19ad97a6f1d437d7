"""Accounts: read any, edit and delete your own."""

from datetime import datetime
from typing import Any

from werkzeug.exceptions import Forbidden

from posting.accounts import queries, schemas, sessions, store, tokens
from posting.accounts.current_user import (
    READERS,
    SESSION_REQUIRED,
    SIGNED_IN,
    current_user,
    get_own_account,
)
from posting.accounts.deletion import clear_account, delete_account
from posting.accounts.fields import is_own_name
from posting.accounts.models import ACTIVE
from posting.accounts.names import list_users_by_name
from posting.accounts.passwords import (
    ACCOUNT_LIMIT,
    WRONG_PASSWORD,
    PasswordsBusy,
    accept_guess,
    guess,
    hash_password,
    lock_verified_account,
    store_password_hash,
    verify_password,
)
from posting.accounts.permissions import EDIT_LIMIT
from posting.accounts.queries import NoSuchUser
from posting.accounts.usernames import UsernameTaken, unique_username
from posting.db.transactions import Row, commit
from posting.web import audit
from posting.web.endpoint import SHARED, Blueprint, Reply
from posting.web.errors import InvalidInput, NotSignedIn
from posting.web.etags import Condition, etag_of
from posting.web.limits import Hits, require_space
from posting.web.messages import Message
from posting.web.problems import Coded
from posting.web.rows import pick

CURRENT_PASSWORD_MISSING = Message("required", "A new password needs the current one.")

users = Blueprint("users", __name__, description="Accounts of members")


class AccountForbidden(Coded, Forbidden):
    error_code = "not_owner"
    description = "Only the owner of an account may do this."


@users.get("/users/me", access=SIGNED_IN, returns=schemas.User())
def get_me() -> Reply:
    """Read your own account."""
    return current_user.profile


@users.get(
    "/users",
    access=READERS,
    cache=SHARED,
    query=schemas.UsersQuery(),
    returns=schemas.User(many=True),
    headers=["Link"],
)
def list_users(query: dict[str, Any]) -> Reply:
    """Find users by name: the one with this username, or those of whom a name begins like this."""
    if "q" in query:
        page = list_users_by_name(query["q"], limit=query["limit"], cursor=query.get("cursor"))
        return page.items, page.headers
    user = queries.find_user(query["username"])
    return [user] if user else []


@users.get(
    '/users/<nanoid("me"):id>',
    access=READERS,
    cache=SHARED,
    returns=schemas.User(),
    errors=[NoSuchUser],
)
def get_user(id: str) -> Reply:
    """Read an account."""
    return queries.get_user(id)


@users.patch(
    "/users/me",
    access=SESSION_REQUIRED,
    limit=ACCOUNT_LIMIT,
    body=schemas.ProfileChange(partial=True),
    conditional=True,
    returns=schemas.User(),
    errors=[UsernameTaken, PasswordsBusy],
)
def edit_me(body: dict[str, Any], condition: Condition, hits: Hits) -> Reply:
    """Edit your own account. A new password ends all other sessions, and all tokens."""
    user = get_own_account()
    require_space((EDIT_LIMIT, user.id))
    current_password, password_hash = body.pop("current_password", None), ""
    if password := body.pop("password", None):
        if current_password is None:
            raise InvalidInput.at("/current_password", CURRENT_PASSWORD_MISSING)
        if is_own_name(password, body.get("username", user.username)):
            raise InvalidInput.at("/password", schemas.SAME_AS_USERNAME)
        with guess(user.id, hits, by_owner=True):
            if not verify_password(user, current_password):
                audit.log("password-refused")
                raise InvalidInput.at("/current_password", WRONG_PASSWORD)
            accept_guess(user.id, hits)
            commit()
            password_hash = hash_password(password)
    hits.count((EDIT_LIMIT, user.id))
    user = _lock_if(user, condition)
    if password_hash:
        tokens.revoke_access(user.id, except_session=current_user.session_id)
        store_password_hash(user.id, password_hash)
    with unique_username():
        store.edit_user(user, body)
    account = queries.get_user(user.id)
    commit()
    if password_hash:
        audit.log("password-changed")
    return account


@users.patch(
    '/users/<nanoid("me"):id>',
    access=SESSION_REQUIRED,
    limit=ACCOUNT_LIMIT,
    body=schemas.ProfileChange(partial=True),
    conditional=True,
    returns=schemas.User(),
    errors=[AccountForbidden, NoSuchUser, UsernameTaken, PasswordsBusy],
)
def edit_user(id: str, body: dict[str, Any], condition: Condition, hits: Hits) -> Reply:
    """Edit your own account, by its ID."""
    _require_owner(id)
    return edit_me(body, condition, hits)


@users.delete(
    "/users/me",
    access=SESSION_REQUIRED,
    query=schemas.DeletionQuery(),
    conditional=True,
    status=204,
    headers=["Set-Cookie"],
)
def delete_me(query: dict[str, str], condition: Condition) -> Reply:
    """Delete your own account and its sessions; its posts and comments too if you choose so."""
    with_content = query["content"] == "delete"
    user = _lock_if(get_own_account(), condition)
    commit()
    clear_account(user.id, with_content=with_content)
    user = _lock_if(user, condition)  # again: clear_account took several transactions
    delete_account(user.id, with_content=with_content)
    commit()
    audit.log("account-deleted")
    return None, sessions.cookie_header(None)


@users.delete(
    '/users/<nanoid("me"):id>',
    access=SESSION_REQUIRED,
    query=schemas.DeletionQuery(),
    conditional=True,
    status=204,
    headers=["Set-Cookie"],
    errors=[AccountForbidden, NoSuchUser],
)
def delete_user(id: str, query: dict[str, str], condition: Condition) -> Reply:
    """Delete your own account, by its ID."""
    _require_owner(id)
    return delete_me(query, condition)


def _require_owner(id: str) -> None:
    """Raise 403 if the account is another user's, and 404 if there is none."""
    if id != current_user.id:
        queries.get_user(id)  # raises NoSuchUser
        raise AccountForbidden


def _lock_if(user: Row, condition: Condition) -> Row:
    """Lock an account and return it as it is now.

    Raise 401 if it has been suspended, and 412 unless the preconditions hold.
    """
    user = lock_verified_account(user)
    if user.state != ACTIVE:
        raise NotSignedIn
    etag, updated_at = etag_of(pick(schemas.User, user)), datetime.fromisoformat(user.updated_at)
    condition.require(etag, updated_at=updated_at)
    return user
