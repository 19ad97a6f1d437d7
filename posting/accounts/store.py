"""The SQL of accounts, together with their entries in the index of names."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from werkzeug.exceptions import Conflict

from posting.accounts import schemas
from posting.accounts.models import ACTIVE, MEMBER, User
from posting.accounts.names import INDEX
from posting.accounts.recovery import delete_link, delete_recovery_codes, end_mailed_links
from posting.accounts.sessions import end_sessions
from posting.accounts.tokens import delete_tokens
from posting.changes import store as changes
from posting.db.editing import edit
from posting.db.errors import violated_constraint
from posting.db.purge import purge_expired
from posting.db.transactions import Row, execute, fetch_all, fetch_one, fetch_value, snapshot
from posting.db.types import Rfc3339Text, UtcDateTime, now
from posting.notifications.telling import (
    forget_application,
    forget_what_moderators_read,
    tell_of_role,
)
from posting.posts.models import Post
from posting.web.errors import Coded, InvalidInput, Message, NoSuch, input_error
from posting.web.pagination import NOT_A_CURSOR, Page, paginate
from posting.web.schemas import Item, columns, insert, select, to_item, to_items

BATCH = 1000  # accounts that are read at a time


class NoSuchUser(NoSuch, thing="user"):
    pass


class NoSuchApplication(NoSuch, thing="application"):
    pass


class UsernameTaken(Coded, Conflict):
    error_code = "username_taken"
    description = "This username is taken."
    errors = (input_error(Message(error_code, description), pointer="/username"),)


class LastOwner(Coded, Conflict):
    error_code = "last_owner"
    description = "This is the only active owner. Make somebody else an owner first."


MAX_COUNTED = 100  # posts of a user in a list

_HAS_ID = User.id == sa.bindparam("id")
_HAS_NAME = sa.func.lower(User.username) == sa.bindparam("username")
_PROFILES = select(schemas.User, User)
_USER, _USER_BY_NAME = (
    _PROFILES.where(condition, ~User.is_pending) for condition in (_HAS_ID, _HAS_NAME)
)
# Of the account itself: also what no other user sees.
_USERS = _PROFILES.where(~User.is_pending)
_ACCOUNTS = _PROFILES.add_columns(
    User.password_hash, User.state.label("state"), User.suspended_until, User.suspension_reason
)
_ACCOUNT, _ACCOUNT_BY_NAME = (_ACCOUNTS.where(condition) for condition in (_HAS_ID, _HAS_NAME))
_APPLICATIONS = sa.select(
    *columns(schemas.Application, User, without=["created_at"]),
    sa.type_coerce(User.pending_since, Rfc3339Text()).label("created_at"),
).where(User.is_applying)
# What only moderators and operators see.
_STANDING = (
    User.role,
    User.state.label("state"),
    sa.type_coerce(User.created_at, Rfc3339Text()).label("created_at"),
    sa.type_coerce(User.last_seen_at, Rfc3339Text()).label("last_seen_at"),
)
_LISTED: sa.Select[*tuple[Any, ...]] = sa.select(User.id, User.username, *_STANDING)
_DETAILS = sa.select(
    User.id,
    User.username,
    User.display_name,
    User.avatar_url.label("avatar_url"),
    *_STANDING,
    sa.type_coerce(User.suspended_at, Rfc3339Text()).label("suspended_at"),
    sa.type_coerce(User.suspended_until, Rfc3339Text()).label("suspended_until"),
    User.suspension_reason,
    User.application,
).where(_HAS_ID)
_LOWER_NAME = sa.func.lower(User.username)
_CURSOR_OF_NAMES = re.compile(r"users_by_name\.([a-z0-9_-]{0,32})", re.ASCII)
_USERS_BY_NAME = (
    _USERS.where(sa.bindparam("after") < _LOWER_NAME)
    .order_by(_LOWER_NAME)
    .limit(sa.bindparam("limit", type_=sa.Integer()) + 0)
)
# No more rows are counted than are shown.
_posts = sa.select(Post.id).where(Post.author_id == User.id, Post.deleted_at.is_(None))
_posts = _posts.limit(MAX_COUNTED).correlate(User)
_count = sa.select(sa.func.count()).select_from(_posts.subquery()).scalar_subquery()
_POST_COUNTS = sa.select(User.id, _count.label("posts"))
_POST_COUNTS = _POST_COUNTS.where(User.id.in_(sa.bindparam("ids", expanding=True)))
_LOCK_ACCOUNT = _ACCOUNT.with_for_update()
_LOCK_ACCOUNT_TO_CLEAR = _ACCOUNT.with_for_update(key_share=True)
_ACTIVE = sa.select(User.id).where(_HAS_ID, User.is_active)
_LOCK_ACTIVE = _ACTIVE.with_for_update(key_share=True)
_SHARE_ACTIVE = _ACTIVE.with_for_update(read=True, key_share=True)
_LOCK_OWNERS = sa.select(User.id, User.state.label("state")).where(User.is_moderator, User.is_owner)
_LOCK_OWNERS = _LOCK_OWNERS.order_by(User.id).with_for_update(key_share=True)
_INSERT = insert(schemas.User, User)
_APPROVE = (
    sa.update(User)
    .where(User.id == sa.bindparam("user"), User.is_applying)
    .values(pending_since=None)
)
_REFUSE = sa.select(User.id).where(User.id == sa.bindparam("user"), User.is_pending)
_REFUSE = _REFUSE.with_for_update()


def find_account(username: str) -> Row | None:
    """Return the account with this name, if there is one."""
    return fetch_one(_ACCOUNT_BY_NAME, username=username.lower())


def find_account_by_id(id: str) -> Row | None:
    """Return the account with this id, if there is one."""
    return fetch_one(_ACCOUNT, id=id)


def lock_account(id: str) -> Row | None:
    """Lock an account, and return it if there is one."""
    return execute(_LOCK_ACCOUNT, id=id).one_or_none()


def lock_account_to_clear(id: str) -> Row | None:
    """Lock an account against other acts on it, and return it if there is one.

    Writes are not locked out. A member who deletes a comment on a post of this account holds the
    lock of the post, and Postgres then checks that the author of the post exists. With
    `lock_account`, this member would wait for the account, and the account for the post.
    """
    return execute(_LOCK_ACCOUNT_TO_CLEAR, id=id).one_or_none()


def lock_active_account(id: str, *, exclusively: bool = False) -> bool:
    """Lock an account against suspension and deletion, and return whether it is active.

    Several transactions may have the lock at once, unless one locks exclusively.
    """
    return bool(execute(_LOCK_ACTIVE if exclusively else _SHARE_ACTIVE, id=id).all())


def list_applications(*, limit: int, cursor: str | None) -> Page:
    """Return a page of the accounts that wait for approval, oldest first."""
    return paginate(
        _APPLICATIONS, limit=limit, cursor=cursor, name="applications", newest_first=False
    )


def count_applications(most: int | None = None) -> int:
    """Return how many accounts wait for approval, or `most` if there are more."""
    accounts = sa.select(User.id).where(User.is_applying).limit(most)
    count: int = fetch_value(sa.select(sa.func.count()).select_from(accounts.subquery()))
    return count


def user_exists(id: str) -> bool:
    return fetch_one(sa.select(User.id).where(User.id == id, ~User.is_pending)) is not None


def get_user(id: str) -> Item:
    """Return a user. Raise NoSuchUser."""
    row = fetch_one(_USER, id=id)
    if row is None:
        raise NoSuchUser
    return to_item(row)


def list_users(*, limit: int, cursor: str | None) -> Page:
    """Return a page of all users, newest first."""
    return paginate(_USERS, limit=limit, cursor=cursor, name="users", newest_first=True)


def list_all_users_by_name(*, limit: int, cursor: str | None) -> Page:
    """Return a page of all users, in the order of their usernames without regard to case.

    Raise 422 for a cursor of another list.
    """
    match = _CURSOR_OF_NAMES.fullmatch(cursor or "users_by_name.")
    if match is None:
        raise InvalidInput([input_error(NOT_A_CURSOR, parameter="cursor")])
    items = to_items(fetch_all(_USERS_BY_NAME, after=match[1], limit=limit + 1))
    last = items[limit - 1]["username"].lower() if len(items) > limit else None
    return Page(items[:limit], f"users_by_name.{last}" if last else None)


def add_post_counts(users: Sequence[Item]) -> None:
    """Add to users how many posts they have, up to 100."""
    rows = fetch_all(_POST_COUNTS, ids=[user["id"] for user in users]) if users else ()
    counts = {row.id: row.posts for row in rows}
    for user in users:
        user["post_count"] = counts[user["id"]]


def find_user(username: str) -> Item | None:
    """Return the user with this name, if there is one."""
    row = fetch_one(_USER_BY_NAME, username=username.lower())
    return to_item(row) if row else None


def find_details(id: str) -> Item | None:
    """Return what moderators and operators see of the account with this id, if there is one."""
    row = fetch_one(_DETAILS, id=id)
    return to_item(row) if row else None


def list_accounts(
    *,
    state: str | None = None,
    role: str | None = None,
    seen_since: datetime | None = None,
    not_seen_since: datetime | None = None,
) -> Iterator[Item]:
    """Yield the accounts that match, in the order of their names.

    Those that were `not_seen_since` a time were created before it, too. A thousand are read at a
    time, and no transaction is open while the caller uses them, which may take long.
    """
    statement = _LISTED.where(sa.bindparam("after") < _LOWER_NAME).order_by(_LOWER_NAME)
    if state:
        statement = statement.where(User.state == state)
    if role:
        statement = statement.where(User.role == role)
    if seen_since:
        statement = statement.where(User.last_seen_at >= seen_since)
    if not_seen_since:
        last_used_at = sa.func.coalesce(User.last_seen_at, User.created_at, type_=UtcDateTime())
        statement = statement.where(last_used_at < not_seen_since)
    after: str | None = ""
    while after is not None:
        with snapshot() as connection:
            rows = connection.execute(statement.limit(BATCH), {"after": after}).all()
        yield from to_items(rows)
        after = rows[-1].username.lower() if len(rows) == BATCH else None


def insert_user(**values: Any) -> Item:
    """Insert an account, and return it as others see it."""
    user = to_item(execute(_INSERT, **values).one())
    INDEX.add([user])
    return user


def create_account(**values: str | None) -> Item:
    """Insert an account, and return it as others see it. Raise UsernameTaken."""
    purge_expired(User)  # before the insertion, because an expired application has taken its name
    with unique_username():
        return insert_user(**values)


@contextmanager
def unique_username() -> Iterator[None]:
    """Raise UsernameTaken if a statement violates the uniqueness of usernames."""
    try:
        yield
    except sa.exc.IntegrityError as error:
        if violated_constraint(error) != "uq_users_username":
            raise
        raise UsernameTaken from None


def insert_users(rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert new accounts by their columns."""
    execute(sa.insert(User), rows)
    INDEX.add(rows)


def approve_account(id: str) -> bool:
    """Approve an account, and return whether it was waiting for that."""
    is_approved = bool(execute(_APPROVE, user=id).rowcount)
    if is_approved:
        forget_application(id)
    return is_approved


def refuse_account(id: str) -> bool:
    """Delete an account that waits for approval, and return whether there was one."""
    if not execute(_REFUSE, user=id).all():
        return False
    forget_application(id)
    execute(sa.delete(User).where(User.id == id))
    return True


def sign_out_everywhere(
    user_id: str, *, except_session: str | None = None, keep_recovery_codes: bool = False
) -> None:
    """End all sessions and tokens of a user, except the session with the id `except_session`.

    Links to set the password or to confirm an address end too. So do recovery codes. Somebody who
    knew the former password may have asked for them.
    """
    end_sessions(user_id, except_id=except_session)
    delete_tokens(user_id)
    delete_link(user_id)
    end_mailed_links(user_id)
    if not keep_recovery_codes:
        delete_recovery_codes(user_id)


def store_password_hash(user_id: str, password_hash: str) -> None:
    """Store the hash of a new password. This is not an edit, which others could notice."""
    execute(sa.update(User).where(User.id == user_id), password_hash=password_hash)


def suspend_account(user_id: str, *, reason: str | None, until: datetime | None) -> datetime:
    """Suspend a locked account until a time, or until it is restored, and sign it out everywhere.

    Return the time from which it is suspended.
    """
    time = now()
    values = {"suspended_at": time, "suspended_until": until, "suspension_reason": reason}
    execute(sa.update(User).where(User.id == user_id).values(values))
    sign_out_everywhere(user_id)
    return time


def lift_suspension(user_id: str) -> None:
    """End the suspension of a locked account."""
    values = dict.fromkeys(("suspended_at", "suspended_until", "suspension_reason"))
    execute(sa.update(User).where(User.id == user_id).values(values))


def edit_user(user: Row, values: Mapping[str, Any]) -> None:
    """Edit a locked account, and index it again if it has another name."""
    if edit(User, user, values):
        if not values.keys().isdisjoint({"username", "display_name"}):
            INDEX.replace([{**user._mapping, **values}])
        changes.record_change("user", user.id, None, "edited")


def lock_owners() -> Sequence[Row]:
    """Lock all owners, and return the `id` and the `state` of each.

    Take this lock before that of another account. So if two owners demote each other at the same
    time, one stays.
    """
    return execute(_LOCK_OWNERS).all()


def require_other_owner(id: str) -> None:
    """Raise LastOwner if an account is the only active owner. Else lock all owners if it is one."""
    if fetch_one(_ACCOUNT.where(User.is_owner), id=id) is None:
        return
    if not any(owner.state == ACTIVE for owner in lock_owners() if owner.id != id):
        raise LastOwner


def set_role(user: Row, role: str, *, actor_id: str | None) -> bool:
    """Set the role of a locked account, and return whether this changes anything.

    The owners and the member get a notification. `actor_id` is the owner who changes the role,
    or None for an operator.
    """
    if not edit(User, user, {"role": role}):
        return False
    changes.record_change("user", user.id, None, "edited")
    delete_link(user.id)  # which somebody may have made who may not make it for this role
    tell_of_role(user.id, user.username, role, actor_id)
    if role == MEMBER:
        forget_what_moderators_read(user.id)
    return True
