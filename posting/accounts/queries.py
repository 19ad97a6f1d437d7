"""The SELECTs of accounts."""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import aliased

from posting.accounts import schemas
from posting.accounts.models import Act, User
from posting.db.base import db
from posting.db.session import fetch_one
from posting.web.problems import NoSuch
from posting.web.rows import Item, select


class NoSuchUser(NoSuch, thing="user"):
    pass


class NoSuchSession(NoSuch, thing="session"):
    pass


class NoSuchToken(NoSuch, thing="token"):
    pass


def find_account(username: str) -> User | None:
    """Return the account with this name, if there is one."""
    return db.session.scalar(
        sa.select(User).where(sa.func.lower(User.username) == username.lower())
    )


USERS = select(schemas.User, User)
USER = USERS.where(User.id == sa.bindparam("id"))
USER_BY_NAME = USERS.where(sa.func.lower(User.username) == sa.bindparam("username"))


def user_exists(id: str) -> bool:
    return fetch_one(sa.select(User.id).where(User.id == id)) is not None


def get_user(id: str) -> Item:
    """Return a user. Raise NoSuchUser."""
    row = fetch_one(USER, id=id)
    if row is None:
        raise NoSuchUser
    return row._asdict()


def find_user(username: str) -> Item | None:
    """Return the user with this name, if there is one."""
    row = fetch_one(USER_BY_NAME, username=username.lower())
    return row._asdict() if row else None


def list_acts(limit: int) -> Sequence[sa.Row[*tuple[Any, ...]]]:
    """Return the latest acts, newest first.

    A row has an `Act`, and the current names of its moderator and of the user of its target, which
    are None if there is no such account.
    """
    moderator, user = aliased(User), aliased(User)
    statement = (
        sa.select(Act, moderator.username, user.username)
        .outerjoin(moderator, moderator.id == Act.moderator_id)
        .outerjoin(user, user.id == Act.user_id)
        .order_by(Act.created_at.desc(), Act.id)
        .limit(limit)
    )
    return db.session.execute(statement).all()
