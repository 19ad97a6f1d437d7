"""Permissions to change what members have written."""

from werkzeug.exceptions import Forbidden

from posting.accounts.current_user import current_user, user_id
from posting.web.limits import Limit
from posting.web.problems import Coded

# Each edit is announced to apps that keep a copy, and its text is prepared like a new one.
EDIT_LIMIT = Limit("edits", "LIMIT_COMMENTS", user_id)


class NotAuthor(Coded, Forbidden):
    """A base class of errors of members who are not the author. `description` says who may."""

    error_code = "not_author"


def is_author(author_id: str | None) -> bool:
    """Return whether the current user is the author of something."""
    return author_id == current_user.id


def may_delete(author_id: str | None) -> bool:
    """Return whether the current user may delete what an author has written."""
    return is_author(author_id) or current_user.is_moderator
