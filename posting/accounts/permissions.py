"""Errors of members who may not change what others have written."""

from werkzeug.exceptions import Forbidden

from posting.web.problems import Coded


class NotAuthor(Coded, Forbidden):
    """A base class of errors of members who are not the author. `description` says who may."""

    error_code = "not_author"
