"""Accounts: read any, edit and delete your own."""

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
    hash_password,
    lock_verified_account,
    store_password_hash,
    verify_password,
)
from posting.accounts.queries import NoSuchUser
from posting.accounts.usernames import UsernameTaken, unique_username
from posting.db.transactions import Row, commit
from posting.web import audit
from posting.web.endpoint import SHARED, Blueprint, Reply
from posting.web.errors import InvalidInput, NotSignedIn
from posting.web.etags import etag_of, require_etag
from posting.web.limits import Hits
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
    if_match=True,
    returns=schemas.User(),
    headers=["ETag"],
    errors=[UsernameTaken],
)
def edit_me(body: dict[str, Any], if_match: str | None, hits: Hits) -> Reply:
    """Edit your own account. A new password ends all other sessions, and all tokens."""
    user = get_own_account()
    current_password, password_hash = body.pop("current_password", None), ""
    if password := body.pop("password", None):
        if current_password is None:
            raise InvalidInput.at("/current_password", CURRENT_PASSWORD_MISSING)
        if is_own_name(password, body.get("username", user.username)):
            raise InvalidInput.at("/password", schemas.SAME_AS_USERNAME)
        if not verify_password(user, user.username, current_password, hits):
            audit.log("password-refused")
            raise InvalidInput.at("/current_password", WRONG_PASSWORD)
        hits.refund()
        commit()
        password_hash = hash_password(password)
    user = _lock_if_match(user, if_match)
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
    if_match=True,
    returns=schemas.User(),
    headers=["ETag"],
    errors=[AccountForbidden, NoSuchUser, UsernameTaken],
)
def edit_user(id: str, body: dict[str, Any], if_match: str | None, hits: Hits) -> Reply:
    """Edit your own account, by its ID."""
    _require_owner(id)
    return edit_me(body, if_match, hits)


@users.delete(
    "/users/me",
    access=SESSION_REQUIRED,
    query=schemas.DeletionQuery(),
    if_match=True,
    status=204,
    headers=["Set-Cookie"],
)
def delete_me(query: dict[str, str], if_match: str | None) -> Reply:
    """Delete your own account and its sessions; its posts and comments too if you choose so."""
    with_content = query["content"] == "delete"
    user = _lock_if_match(get_own_account(), if_match)
    commit()
    clear_account(user.id, with_content=with_content)
    user = _lock_if_match(user, if_match)  # again: clear_account took several transactions
    delete_account(user.id, with_content=with_content)
    commit()
    audit.log("account-deleted")
    return None, sessions.cookie_header(None)


@users.delete(
    '/users/<nanoid("me"):id>',
    access=SESSION_REQUIRED,
    query=schemas.DeletionQuery(),
    if_match=True,
    status=204,
    headers=["Set-Cookie"],
    errors=[AccountForbidden, NoSuchUser],
)
def delete_user(id: str, query: dict[str, str], if_match: str | None) -> Reply:
    """Delete your own account, by its ID."""
    _require_owner(id)
    return delete_me(query, if_match)


def _require_owner(id: str) -> None:
    """Raise 403 if the account is another user's, and 404 if there is none."""
    if id != current_user.id:
        queries.get_user(id)  # raises NoSuchUser
        raise AccountForbidden


def _lock_if_match(user: Row, if_match: str | None) -> Row:
    """Lock an account and return it as it is now.

    Raise 401 if it has been suspended, and 412 if `If-Match` has another ETag.
    """
    user = lock_verified_account(user)
    if user.state != ACTIVE:
        raise NotSignedIn
    require_etag(if_match, etag_of(pick(schemas.User, user)))
    return user
