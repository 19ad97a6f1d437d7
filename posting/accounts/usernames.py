"""Unique usernames, and new accounts."""

from collections.abc import Iterator
from contextlib import contextmanager

import sqlalchemy as sa
from werkzeug.exceptions import Conflict

from posting.accounts.models import User
from posting.accounts.store import insert_user
from posting.db.errors import violated_constraint
from posting.db.purge import purge_expired
from posting.web.errors import input_error
from posting.web.messages import Message
from posting.web.problems import Coded
from posting.web.rows import Item


class UsernameTaken(Coded, Conflict):
    error_code = "username_taken"
    description = "This username is taken."
    errors = (input_error(Message(error_code, description), pointer="/username"),)


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
