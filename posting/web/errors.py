"""Errors as problem details (RFC 9457)."""

import json
from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from typing import Any

import sqlalchemy as sa
from flask import Flask, Response, current_app, g
from marshmallow import EXCLUDE, Schema, fields
from werkzeug.exceptions import HTTPException, Unauthorized, UnprocessableEntity, default_exceptions

from posting.plurals import count
from posting.web import audit
from posting.web.database_errors import to_http_error
from posting.web.fields import ExtensibleString
from posting.web.messages import Message
from posting.web.problems import Coded

AUDITED = {403: "refused", 429: "limit-reached"}
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
MORE = Message("more", "{} not listed.")

# Details for clients of an API. Werkzeug's defaults address people with a browser.
DETAILS = {
    404: "There is nothing at this path.",
    405: "This path does not support this method; the Allow header lists those it supports.",
    413: "The body is larger than this service accepts.",
    500: "An internal error occurred. It has been logged under this request_id.",
}


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
    if event := AUDITED.get(error.code):
        audit.log(event)
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
