"""Errors for rows that do not exist; as HTTP errors, so that views need not translate them."""

from werkzeug.exceptions import NotFound


class NoSuchPost(NotFound):
    error_code = "no_such_post"
    description = "There is no such post."


class NoSuchComment(NotFound):
    error_code = "no_such_comment"
    description = "There is no such comment."


class NoSuchImage(NotFound):
    error_code = "no_such_image"
    description = "There is no such image."


class NoSuchUser(NotFound):
    error_code = "no_such_user"
    description = "There is no such user."


class NoSuchSession(NotFound):
    error_code = "no_such_session"
    description = "There is no such session."


class NoSuchToken(NotFound):
    error_code = "no_such_token"
    description = "There is no such token."
