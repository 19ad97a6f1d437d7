"""The statements of accounts."""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import aliased

from posting.accounts import schemas
from posting.accounts.models import Act, User
from posting.db.transactions import Row, execute, fetch_all, fetch_one
from posting.web.problems import NoSuch
from posting.web.rows import Item, insert, select, to_item


class NoSuchUser(NoSuch, thing="user"):
    pass


class NoSuchSession(NoSuch, thing="session"):
    pass


class NoSuchToken(NoSuch, thing="token"):
    pass


USERS = select(schemas.User, User)
USER = USERS.where(User.id == sa.bindparam("id"))
USER_BY_NAME = USERS.where(sa.func.lower(User.username) == sa.bindparam("username"))
# Of the account itself: also what no other user sees.
ACCOUNT, ACCOUNT_BY_NAME = (
    statement.add_columns(User.password_hash, User.is_active.label("is_active"))
    for statement in (USER, USER_BY_NAME)
)
_INSERT = insert(schemas.User, User)
_LOCK_ACCOUNT = ACCOUNT.with_for_update()


def find_account(username: str) -> Row | None:
    """Return the account with this name, if there is one."""
    return fetch_one(ACCOUNT_BY_NAME, username=username.lower())


def get_account(id: str) -> Row | None:
    """Return the account with this id, if there is one."""
    return fetch_one(ACCOUNT, id=id)


def insert_user(**values: Any) -> Item:
    """Insert an account, and return it as others see it."""
    return to_item(execute(_INSERT, **values).one())


def lock_account(id: str) -> Row | None:
    """Lock an account, and return it if there is one."""
    return execute(_LOCK_ACCOUNT, id=id).one_or_none()


def user_exists(id: str) -> bool:
    return fetch_one(sa.select(User.id).where(User.id == id)) is not None


def get_user(id: str) -> Item:
    """Return a user. Raise NoSuchUser."""
    row = fetch_one(USER, id=id)
    if row is None:
        raise NoSuchUser
    return to_item(row)


def find_user(username: str) -> Item | None:
    """Return the user with this name, if there is one."""
    row = fetch_one(USER_BY_NAME, username=username.lower())
    return to_item(row) if row else None


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
