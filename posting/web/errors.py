"""Errors as problem details (RFC 9457), and the messages of errors in the input.

Each class of errors and each message has a code, for programs.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Any, ClassVar

import sqlalchemy as sa
from flask import Flask, Response, current_app, g
from marshmallow import EXCLUDE, Schema, fields
from pysqlite3 import dbapi2 as sqlite
from werkzeug.exceptions import (
    HTTPException,
    NotFound,
    ServiceUnavailable,
    Unauthorized,
    UnprocessableEntity,
    default_exceptions,
)

from posting.db.errors import CANCELED, DISK_FULL, FILE_MOVED, IO_ERROR, UNAVAILABLE, error_code
from posting.plurals import count

MEDIA_TYPE = "application/problem+json"
ERROR_PAGE = "posting.error_page"  # the extension that makes pages of problem details
MAX_ERRORS = 50
MAX_NAME = 100  # characters of a name in an error
Errors = list[dict[str, str]]
# Statuses of errors of Werkzeug, gunicorn and nginx. The code of such an error is its phrase.
PLAIN_STATUSES = (
    *(400, 403, 404, 405, 408, 412, 413, 414, 415, 416, 417, 421, 429, 431),
    *(500, 501, 502, 503, 504, 505),
)

# Details for clients of an API. Werkzeug's defaults address people with a browser.
DETAILS = {
    404: "There is nothing at this path.",
    405: "This path does not support this method; the Allow header lists those it supports.",
    413: "The body is larger than this service accepts.",
    500: "An internal error occurred. It has been logged under this request_id.",
}


class Message(str):
    """A text with a code, which formatting keeps.

    The code is registered, so define messages in modules and classes, not in functions.
    """

    codes: ClassVar[set[str]] = set()  # of all messages that are imported
    code: str

    def __new__(cls, code: str, text: str) -> "Message":
        message = super().__new__(cls, text)
        message.code = code
        cls.codes.add(code)
        return message

    def __getnewargs__(self) -> tuple[str, str]:  # type: ignore[override]  # copies keep the code
        return self.code, str(self)

    def format(self, *args: object, **kwargs: object) -> "Message":
        return Message(self.code, super().format(*args, **kwargs))


MALFORMED_ID = Message("malformed", "Must be exactly 21 characters of A-Z, a-z, 0-9, '_' and '-'.")
REPEATED = Message("repeated", "Given more than once.")
REQUIRED = Message("required", "Missing data for required field.")
UNKNOWN = Message("unknown", "Unknown field.")
MORE = Message("more", "{} not listed.")


class Coded:
    """A base class of errors with a code, which each class registers.

    The error of Werkzeug that sets the status comes second, as in
    `class TooManyTokens(Coded, Conflict)`. `errors` says what in the request is wrong, if that is
    known. `members` are further members of the problem details, which `Problem` declares.
    """

    codes: ClassVar[set[str]] = set()  # of all classes that are imported
    error_code: ClassVar[str]
    errors: Sequence[Mapping[str, str]] = ()
    members: Mapping[str, str | None] = {}

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        Coded.codes.add(cls.error_code)


class NoSuch(Coded, NotFound):
    """A base class of errors about a thing that does not exist.

    A subclass names the thing, as in `class NoSuchToken(NoSuch, thing="token")`.
    """

    error_code = "not_found"

    def __init_subclass__(cls, *, thing: str) -> None:
        cls.error_code, cls.description = f"no_such_{thing}", f"There is no such {thing}."
        super().__init_subclass__()


def title(status: int) -> str:
    """Return the phrase of a status in RFC 9110. In Python 3.11 and 3.12, four are older."""
    renamed = {
        413: "Content Too Large",
        414: "URI Too Long",
        416: "Range Not Satisfiable",
        422: "Unprocessable Content",
    }
    return renamed.get(status, HTTPStatus(status).phrase)


def plain_code(status: int) -> str:
    """Return the code of an error whose class has no code: the phrase of its status."""
    return title(status).lower().replace(" ", "_")


def problem_codes() -> list[str]:
    """Return the codes of all problems. Call this when all features are imported."""
    return sorted(Coded.codes | {plain_code(status) for status in PLAIN_STATUSES})


def input_codes() -> list[str]:
    """Return the codes of all errors in the input. Call this when all features are imported."""
    return sorted(Message.codes)


class ExtensibleString(fields.String):
    """A word of responses. `known` returns all words, once all features are imported."""

    def __init__(self, known: Callable[[], Iterable[str]], example: str) -> None:
        super().__init__(required=True)
        self.known, self.example = known, example


class ProblemError(Schema):
    """An error in the input."""

    class Meta:
        unknown = EXCLUDE  # later versions may add members

    code = ExtensibleString(input_codes, "blank")
    detail = fields.String(required=True, metadata={"examples": ["Must not be blank."]})
    pointer = fields.String(
        metadata={"description": "JSON Pointer into the body (RFC 6901)", "examples": ["/title"]}
    )
    parameter = fields.String(
        metadata={"description": "Query or path parameter", "examples": ["limit"]}
    )
    header = fields.String(metadata={"description": "Request header", "examples": ["If-Match"]})


class Problem(Schema):
    """Problem details (RFC 9457)."""

    class Meta:
        unknown = EXCLUDE  # later versions may add members

    type = fields.String(required=True, metadata={"examples": ["about:blank"]})
    title = fields.String(required=True, metadata={"examples": ["Unprocessable Content"]})
    status = fields.Integer(required=True, metadata={"examples": [422]})
    code = ExtensibleString(problem_codes, "invalid_input")
    detail = fields.String(required=True, metadata={"examples": ["The input is not valid."]})
    request_id = fields.String(
        required=True,
        metadata={"description": "The request's id in the log", "examples": ["8kQ0nTz3HsbXa1"]},
    )
    errors = fields.List(
        fields.Nested(ProblemError),
        metadata={"description": "All errors in the input, if they are known"},
    )
    reason = fields.String(
        allow_none=True,
        metadata={
            "description": "Only with the code `suspended`: why, if a reason was given",
            "examples": ["This is advertising."],
        },
    )
    until = fields.String(
        allow_none=True,
        metadata={
            "description": "Only with the code `suspended`: when it ends, if it does by itself",
            "format": "date-time",
            "examples": ["2026-12-05T09:30:00.125Z"],
        },
    )


class InvalidInput(Coded, UnprocessableEntity):
    """Well-formed input that breaks rules, each of them listed in `errors`."""

    error_code = "invalid_input"
    description = "The input is not valid; see errors."

    def __init__(self, errors: Errors) -> None:
        super().__init__()
        self.errors = errors[:MAX_ERRORS]
        if (left := len(errors) - MAX_ERRORS) > 0:
            number = f"{count(left, 'more error')} {'is' if left == 1 else 'are'}"
            self.errors.append(input_error(MORE.format(number)))

    @classmethod
    def at(cls, pointer: str, message: Message) -> "InvalidInput":
        return cls([input_error(message, pointer=pointer)])


class NotSignedIn(Coded, Unauthorized):
    """The request has no valid session or token."""

    error_code = "not_signed_in"
    description = "Sign in first: POST /signin, or send a token."

    def get_headers(self, *_: Any) -> list[tuple[str, str]]:
        return [("WWW-Authenticate", "Cookie")]


def input_error(message: Message, **place: str) -> dict[str, str]:
    """Return an error in the input, at a pointer, parameter or header."""
    return {"code": message.code, "detail": str(message), **place}


def body_errors(messages: Any, path: tuple[str, ...] = ()) -> Iterable[dict[str, str]]:
    """Flatten marshmallow's nested messages into errors with JSON Pointers (RFC 6901)."""
    if isinstance(messages, Mapping):
        for key, inner in messages.items():
            name = str(key)[:MAX_NAME].replace("~", "~0").replace("/", "~1")
            yield from body_errors(inner, path if key == "_schema" else (*path, name))
    else:
        pointer = "".join(f"/{step}" for step in path)
        yield from (input_error(message, pointer=pointer) for message in messages)


def parameter_errors(messages: Mapping[str, Any]) -> Iterable[dict[str, str]]:
    """Turn marshmallow's messages into errors of query parameters."""
    for name, texts in messages.items():
        yield from (input_error(message, parameter=name) for message in texts)


def problem_details(error: HTTPException, status: int, request_id: str) -> dict[str, Any]:
    """Return the problem details of an error."""
    detail = error.description or ""
    default = default_exceptions.get(status)
    if default and detail == default.description:
        detail = DETAILS.get(status, detail)
    problem = {
        "type": "about:blank",
        "title": title(status),
        "status": status,
        "code": error.error_code if isinstance(error, Coded) else plain_code(status),
        "detail": detail,
        "request_id": request_id,
    }
    if isinstance(error, Coded):
        problem |= {"errors": error.errors} if error.errors else {}
        problem |= error.members
    return problem


def respond(error: HTTPException) -> Response:
    """Return the response to an error."""
    if error.code is None or error.code < 400:
        return current_app.make_response(error.get_response())
    problem = problem_details(error, error.code, g.request_id)
    response = _page(problem) or _json(problem)
    response.headers.extend(
        (name, value) for name, value in error.get_headers() if name != "Content-Type"
    )
    return response


def _page(problem: dict[str, Any]) -> Response | None:
    """Return the response with problem details as a page, if the request is for a page."""
    render: Callable[[dict[str, Any]], Response | None] | None
    render = current_app.extensions.get(ERROR_PAGE)
    return render(problem) if render else None


def _json(problem: dict[str, Any]) -> Response:
    # A name in the input may contain lone surrogates, which UTF-8 cannot encode.
    body = json.dumps(problem, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "replace")
    return current_app.response_class(body + b"\n", problem["status"], content_type=MEDIA_TYPE)


class DatabaseBusy(Coded, ServiceUnavailable):
    error_code = "database_busy"
    description = "The database is busy or unavailable; try again."

    def __init__(self) -> None:
        super().__init__(retry_after=1)


class QueryTimeout(Coded, ServiceUnavailable):
    error_code = "query_timeout"
    description = "The database took too long to answer; try again later, or ask for less."

    def __init__(self) -> None:
        super().__init__(retry_after=10)


class DatabaseMoved(Coded, ServiceUnavailable):
    error_code = "database_moved"
    description = (
        "The file of the database was deleted or replaced, so nothing was saved; tell the operator "
        "of this service to restart it."
    )

    def __init__(self) -> None:
        super().__init__(retry_after=60)


class StorageFull(Coded, HTTPException):
    code = HTTPStatus.INSUFFICIENT_STORAGE
    error_code = "storage_full"
    description = (
        "The disk of this service is full or broken, so nothing was saved; tell its operator."
    )


def to_http_error(error: sa.exc.DBAPIError | sa.exc.TimeoutError) -> HTTPException | None:
    """Return the HTTP error for a database that is full, unavailable or too slow.

    Return None for other errors, such as damaged data.
    """
    code = error_code(error)
    if code.startswith(CANCELED):
        return QueryTimeout()
    if code == FILE_MOVED:
        return DatabaseMoved()
    # SQLite reports a disk quota as an I/O error, and a failed commit has no statement. On a broken
    # disk, repeating a write does not help either.
    is_query = (getattr(error, "statement", None) or "").lstrip().startswith(("SELECT", "WITH"))
    if code.startswith(DISK_FULL) or (code.startswith(IO_ERROR) and not is_query):
        return StorageFull()
    # An error without a code is about the connection. The exception is SQLite's error for text that
    # is not UTF-8.
    if not code and isinstance(error, sa.exc.OperationalError | sa.exc.TimeoutError):
        is_unavailable = not isinstance(getattr(error, "orig", None), sqlite.Error)
    else:
        is_unavailable = code.startswith(UNAVAILABLE)
    if is_unavailable or getattr(error, "connection_invalidated", False):
        return DatabaseBusy()
    return None


def respond_to_database_error(error: sa.exc.DBAPIError | sa.exc.TimeoutError) -> Response:
    """Return the response if the database cannot answer now. Raise any other error again."""
    http_error = to_http_error(error)
    if http_error is None:
        raise error
    reason = str(error).partition("\n")[0]
    current_app.logger.error("The database failed: %s", reason)
    return respond(http_error)


def init_app(app: Flask) -> None:
    app.register_error_handler(HTTPException, respond)
    app.register_error_handler(sa.exc.DBAPIError, respond_to_database_error)
    app.register_error_handler(sa.exc.TimeoutError, respond_to_database_error)
