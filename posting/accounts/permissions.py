"""Permissions to change what members have written."""

from werkzeug.exceptions import Forbidden

from posting.accounts.current_user import current_user
from posting.web.problems import Coded


class NotAuthor(Coded, Forbidden):
    """A base class of errors of members who are not the author. `description` says who may."""

    error_code = "not_author"


def is_author(author_id: str | None) -> bool:
    """Return whether the current user is the author of something."""
    return author_id == current_user.id


def may_delete(author_id: str | None) -> bool:
    """Return whether the current user may delete what an author has written."""
    return is_author(author_id) or current_user.is_moderator
