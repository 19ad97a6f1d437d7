"""The statements of accounts."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import aliased

from posting.accounts import schemas
from posting.accounts.models import Act, User
from posting.db.transactions import Row, execute, fetch_all, fetch_one, fetch_value, snapshot
from posting.db.types import Rfc3339Text, UtcDateTime
from posting.web.problems import NoSuch
from posting.web.rows import Item, columns, select, to_item, to_items

BATCH = 1000  # accounts that are read at a time


class NoSuchUser(NoSuch, thing="user"):
    pass


class NoSuchSession(NoSuch, thing="session"):
    pass


class NoSuchToken(NoSuch, thing="token"):
    pass


class NoSuchApplication(NoSuch, thing="application"):
    pass


_HAS_ID = User.id == sa.bindparam("id")
_HAS_NAME = sa.func.lower(User.username) == sa.bindparam("username")
_PROFILES = select(schemas.User, User)
_USER, _USER_BY_NAME = (
    _PROFILES.where(condition, ~User.is_pending) for condition in (_HAS_ID, _HAS_NAME)
)
# Of the account itself: also what no other user sees.
_ACCOUNTS = _PROFILES.add_columns(
    User.password_hash, User.state.label("state"), User.suspended_until, User.suspension_reason
)
_ACCOUNT, _ACCOUNT_BY_NAME = (_ACCOUNTS.where(condition) for condition in (_HAS_ID, _HAS_NAME))
APPLICATIONS = sa.select(
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
    *_STANDING,
    sa.type_coerce(User.suspended_at, Rfc3339Text()).label("suspended_at"),
    sa.type_coerce(User.suspended_until, Rfc3339Text()).label("suspended_until"),
    User.suspension_reason,
    User.application,
).where(_HAS_ID)
_LOWER_NAME = sa.func.lower(User.username)
_LOCK_ACCOUNT = _ACCOUNT.with_for_update()
_LOCK_ACCOUNT_TO_CLEAR = _ACCOUNT.with_for_update(key_share=True)
_ACTIVE = sa.select(User.id).where(_HAS_ID, User.is_active)
_LOCK_ACTIVE = _ACTIVE.with_for_update(key_share=True)
_SHARE_ACTIVE = _ACTIVE.with_for_update(read=True, key_share=True)


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


def count_applications() -> int:
    """Return how many accounts wait for approval."""
    count: int = fetch_value(sa.select(sa.func.count()).where(User.is_applying))
    return count


def user_exists(id: str) -> bool:
    return fetch_one(sa.select(User.id).where(User.id == id, ~User.is_pending)) is not None


def get_user(id: str) -> Item:
    """Return a user. Raise NoSuchUser."""
    row = fetch_one(_USER, id=id)
    if row is None:
        raise NoSuchUser
    return to_item(row)


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


def list_acts(limit: int) -> Sequence[Row]:
    """Return the latest acts, newest first.

    A row has the columns of `Act`, and the current names of its moderator and of the user of its
    target, `moderator_name` and `user_name`, which are None if there is no such account.
    """
    moderator, user = aliased(User), aliased(User)
    statement = (
        sa.select(
            Act.__table__,
            moderator.username.label("moderator_name"),
            user.username.label("user_name"),
        )
        .select_from(Act)
        .outerjoin(moderator, moderator.id == Act.moderator_id)
        .outerjoin(user, user.id == Act.user_id)
        .order_by(Act.created_at.desc(), Act.id)
        .limit(limit)
    )
    return fetch_all(statement)
