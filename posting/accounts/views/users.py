"""Accounts: read any, edit and delete your own."""

from datetime import datetime
from typing import Any, NamedTuple

from werkzeug.exceptions import Forbidden

from posting.accounts import schemas, sessions, store
from posting.accounts.current_user import (
    EDIT_LIMIT,
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
    verify_password,
)
from posting.accounts.store import LastOwner, NoSuchUser, UsernameTaken, unique_username
from posting.db.transactions import Row, unit_of_work
from posting.mail import store as mails
from posting.mail.models import PASSWORD_CHANGED
from posting.web.endpoint import SHARED, Blueprint, Reply
from posting.web.errors import Coded, InvalidInput, Message, NotSignedIn
from posting.web.etags import Condition, etag_of
from posting.web.limits import Hits
from posting.web.logs import audit
from posting.web.schemas import pick

CURRENT_PASSWORD_MISSING = Message("required", "A new password needs the current one.")

users = Blueprint("users", __name__, description="Accounts of members")


class AccountForbidden(Coded, Forbidden):
    error_code = "not_owner"
    description = "Only the owner of an account may do this."


class VerifiedChange(NamedTuple):
    """The account to be edited, as it was when its password was checked, and the new hash."""

    user: Row
    password_hash: str | None


@users.get("/users/me", access=SIGNED_IN, returns=schemas.User())
def get_me() -> Reply:
    """Read your own account."""
    return current_user.profile


@users.get(
    "/users",
    access=READERS,
    cache=SHARED,
    query=schemas.UsersQuery(),
    returns=schemas.ListedUser(many=True),
    headers=["Link"],
)
def list_users(query: dict[str, Any]) -> Reply:
    """List all users, or those whose names begin with a text, or the one with a username."""
    if "username" in query:
        user = store.find_user(query["username"])
        return [user] if user else []
    limit, cursor = query["limit"], query.get("cursor")
    if "q" in query:
        page = list_users_by_name(query["q"], limit=limit, cursor=cursor)
    else:
        by_name = query.get("sort") == "name"
        find = store.list_all_users_by_name if by_name else store.list_users
        page = find(limit=limit, cursor=cursor)
        store.add_post_counts(page.items)
    return page.items, page.headers


@users.get(
    '/users/<nanoid("me"):id>',
    access=READERS,
    cache=SHARED,
    returns=schemas.User(),
    errors=[NoSuchUser],
)
def get_user(id: str) -> Reply:
    """Read an account."""
    return store.get_user(id)


def verify_change(body: dict[str, Any], condition: Condition, hits: Hits) -> VerifiedChange:
    """Check the current password, and hash a new one."""
    user = get_own_account()
    current_password, password_hash = body.pop("current_password", None), None
    if password := body.pop("password", None):
        if current_password is None:
            raise InvalidInput.at("/current_password", CURRENT_PASSWORD_MISSING)
        if is_own_name(password, body.get("username", user.username)):
            raise InvalidInput.at("/password", schemas.SAME_AS_USERNAME)
        with guess(user.id, hits, by_owner=True):
            if not verify_password(user, current_password):
                audit("password-refused")
                raise InvalidInput.at("/current_password", WRONG_PASSWORD)
            accept_guess(user.id, hits)
            password_hash = hash_password(password)
    return VerifiedChange(user, password_hash)


@users.patch(
    "/users/me",
    access=SESSION_REQUIRED,
    limits=[EDIT_LIMIT, ACCOUNT_LIMIT],
    body=schemas.ProfileChange(partial=True),
    conditional=True,
    prepare=verify_change,
    returns=schemas.User(),
    errors=[UsernameTaken, PasswordsBusy],
)
def edit_me(body: dict[str, Any], condition: Condition, prepared: VerifiedChange) -> Reply:
    """Edit your own account. A new password ends all other sessions, and all tokens."""
    user = _lock_if(prepared.user, condition)
    if prepared.password_hash:
        store.sign_out_everywhere(user.id, except_session=current_user.session_id)
        store.store_password_hash(user.id, prepared.password_hash)
        mails.queue_mail(PASSWORD_CHANGED, user.id)
        audit("password-changed")
    with unique_username():
        store.edit_user(user, body)
    return store.get_user(user.id)


def verify_change_by_id(
    id: str, body: dict[str, Any], condition: Condition, hits: Hits
) -> VerifiedChange:
    """Do what `verify_change` does, for an account of the current user."""
    _require_owner(id)
    return verify_change(body, condition, hits)


@users.patch(
    '/users/<nanoid("me"):id>',
    access=SESSION_REQUIRED,
    limits=[EDIT_LIMIT, ACCOUNT_LIMIT],
    body=schemas.ProfileChange(partial=True),
    conditional=True,
    prepare=verify_change_by_id,
    returns=schemas.User(),
    errors=[AccountForbidden, NoSuchUser, UsernameTaken, PasswordsBusy],
)
def edit_user(
    id: str, body: dict[str, Any], condition: Condition, prepared: VerifiedChange
) -> Reply:
    """Edit your own account, by its ID."""
    return edit_me(body, condition, prepared)


def clear_me(query: dict[str, str], condition: Condition) -> Row:
    """Delete or anonymize the content of the current user, in several units of work.

    Return the account as it was before that.
    """
    with unit_of_work():
        user = _lock_if(get_own_account(), condition)
    with unit_of_work():
        store.require_other_owner(user.id)
    clear_account(user.id, with_content=query["content"] == "delete")
    return user


@users.delete(
    "/users/me",
    access=SESSION_REQUIRED,
    query=schemas.DeletionQuery(),
    conditional=True,
    prepare=clear_me,
    status=204,
    headers=["Set-Cookie"],
    errors=[LastOwner],
)
def delete_me(query: dict[str, str], condition: Condition, prepared: Row) -> Reply:
    """Delete your own account and its sessions; its posts and comments too if you choose so."""
    store.require_other_owner(prepared.id)
    user = _lock_if(prepared, condition)  # again, because clear_me may have taken long
    delete_account(user.id, with_content=query["content"] == "delete")
    audit("account-deleted")
    return None, sessions.cookie_header(None)


def clear_user(id: str, query: dict[str, str], condition: Condition) -> Row:
    """Do what `clear_me` does, for an account of the current user."""
    _require_owner(id)
    return clear_me(query, condition)


@users.delete(
    '/users/<nanoid("me"):id>',
    access=SESSION_REQUIRED,
    query=schemas.DeletionQuery(),
    conditional=True,
    prepare=clear_user,
    status=204,
    headers=["Set-Cookie"],
    errors=[AccountForbidden, NoSuchUser, LastOwner],
)
def delete_user(id: str, query: dict[str, str], condition: Condition, prepared: Row) -> Reply:
    """Delete your own account, by its ID."""
    return delete_me(query, condition, prepared)


def _require_owner(id: str) -> None:
    """Raise 403 if the account is another user's, and 404 if there is none."""
    if id != current_user.id:
        store.get_user(id)  # raises NoSuchUser
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
