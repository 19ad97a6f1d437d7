"""Errors for rows that do not exist; as HTTP errors, so that views need not translate them."""

from werkzeug.exceptions import NotFound


class NoSuchPost(NotFound):
    description = "There is no such post."


class NoSuchComment(NotFound):
    description = "There is no such comment."


class NoSuchImage(NotFound):
    description = "There is no such image."


class NoSuchUser(NotFound):
    description = "There is no such user."


class NoSuchSession(NotFound):
    description = "There is no such session."
