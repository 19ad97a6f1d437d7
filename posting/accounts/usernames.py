"""Unique usernames."""

from collections.abc import Iterator
from contextlib import contextmanager

import sqlalchemy as sa
from werkzeug.exceptions import Conflict

from posting.db.errors import violated_constraint
from posting.web.problems import Coded


class UsernameTaken(Coded, Conflict):
    error_code = "username_taken"
    description = "This username is taken."


@contextmanager
def unique_username() -> Iterator[None]:
    """Raise UsernameTaken if a statement violates the uniqueness of usernames."""
    try:
        yield
    except sa.exc.IntegrityError as error:
        if violated_constraint(error) != "uq_users_username":
            raise
        raise UsernameTaken from None
