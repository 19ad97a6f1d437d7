"""Errors as problem details (RFC 9457)."""

import json
from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from typing import Any

import sqlalchemy as sa
from flask import Flask, Response, current_app, g
from marshmallow import EXCLUDE, Schema, fields
from marshmallow.validate import OneOf
from werkzeug.exceptions import (
    HTTPException,
    ServiceUnavailable,
    Unauthorized,
    UnprocessableEntity,
    default_exceptions,
)

from posting.db.engine import db
from posting.http import audit
from posting.schemas.messages import Message

AUDITED = {403: "refused", 429: "limit-reached"}
MEDIA_TYPE = "application/problem+json"
ERROR_PAGE = "posting.error_page"  # the extension that makes pages of problem details
RETRY_SECONDS = 1
MAX_ERRORS = 50
MAX_NAME = 100  # characters of a name in an error
Errors = list[dict[str, str]]
# Codes of problems, for programs. Where no class of errors names one, it is the status's phrase.
PROBLEM_CODES = (
    *("bad_request", "other_host"),
    *("not_signed_in", "wrong_credentials", "invalid_token"),
    *("forbidden", "cross_origin", "not_author", "not_owner", "signup_closed", "suspended"),
    *("insufficient_scope", "token_not_allowed"),
    *("not_found", "no_such_post", "no_such_comment", "no_such_image"),
    *("no_such_user", "no_such_session", "no_such_token"),
    "method_not_allowed",
    "request_timeout",
    *("still_under_way", "username_taken", "too_many_tokens"),
    *("precondition_failed", "stale_version"),
    *("content_too_large", "uri_too_long", "request_header_fields_too_large"),
    "unsupported_media_type",
    "range_not_satisfiable",
    "misdirected_request",
    "invalid_input",
    "too_many_requests",
    *("internal_server_error", "not_implemented", "bad_gateway", "gateway_timeout"),
    *("service_unavailable", "database_busy", "images_busy"),
    "http_version_not_supported",
)
# Codes of errors in the input.
INPUT_CODES = (
    *("required", "null", "unknown", "repeated", "wrong_type"),
    *("too_short", "too_long", "out_of_range", "not_a_choice"),
    *("blank", "line_break", "unsupported_character", "malformed"),
    *("reserved", "common_password", "same_as_username", "wrong_password"),
    *("no_such_parent", "reused_key", "unusable_image", "too_many_images", "more"),
)

# Details for clients of an API, where werkzeug's defaults address users of a browser.
DETAILS = {
    404: "There is nothing at this path.",
    405: "This path does not support this method; the Allow header lists those it supports.",
    413: "The body is larger than this service accepts.",
    500: "An internal error occurred. It has been logged under this request_id.",
}


def title(status: int) -> str:
    """Return a status's phrase in RFC 9110, of which Python 3.11 and 3.12 have four former ones."""
    renamed = {
        413: "Content Too Large",
        414: "URI Too Long",
        416: "Range Not Satisfiable",
        422: "Unprocessable Content",
    }
    return renamed.get(status, HTTPStatus(status).phrase)


class ProblemError(Schema):
    """An error in the input."""

    class Meta:
        unknown = EXCLUDE  # later versions may add members

    code = fields.String(
        required=True, validate=OneOf(INPUT_CODES), metadata={"examples": ["blank"]}
    )
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
    code = fields.String(
        required=True, validate=OneOf(PROBLEM_CODES), metadata={"examples": ["invalid_input"]}
    )
    detail = fields.String(required=True, metadata={"examples": ["The input is not valid."]})
    request_id = fields.String(
        required=True,
        metadata={"description": "The request's id in the log", "examples": ["8kQ0nTz3HsbXa1"]},
    )
    errors = fields.List(
        fields.Nested(ProblemError), metadata={"description": "With 422: all errors in the input"}
    )


class InvalidInput(UnprocessableEntity):
    """Well-formed input that breaks rules, each of them listed in `errors`."""

    error_code = "invalid_input"
    description = "The input is not valid; see errors."

    def __init__(self, errors: Errors) -> None:
        super().__init__()
        self.errors = errors[:MAX_ERRORS]
        if (left := len(errors) - MAX_ERRORS) > 0:
            more = Message("more", f"{left:,} more errors are not listed.")
            self.errors.append(input_error(more))

    @classmethod
    def at(cls, pointer: str, message: Message) -> "InvalidInput":
        return cls([input_error(message, pointer=pointer)])


class NotSignedIn(Unauthorized):
    """The request has no valid session or token."""

    error_code = "not_signed_in"
    description = "Sign in first: POST /signin, or send a token."

    def get_headers(self, *_: Any) -> list[tuple[str, str]]:
        return [("WWW-Authenticate", "Cookie")]


class DatabaseBusy(ServiceUnavailable):
    error_code = "database_busy"
    description = "The database is busy or unavailable; try again."


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
    """Turn messages of schemas into errors of query parameters."""
    for name, texts in messages.items():
        yield from (input_error(message, parameter=name) for message in texts)


def problem_details(error: HTTPException, status: int, request_id: str) -> dict[str, Any]:
    """Return the problem details of an error."""
    detail = error.description or ""
    default = default_exceptions.get(status)
    if default and detail == default.description:
        detail = DETAILS.get(status, detail)
    phrase = title(status)
    problem = {
        "type": "about:blank",
        "title": phrase,
        "status": status,
        "code": getattr(error, "error_code", phrase.lower().replace(" ", "_")),
        "detail": detail,
        "request_id": request_id,
    }
    return problem | {"errors": error.errors} if isinstance(error, InvalidInput) else problem


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


def respond_busy(error: sa.exc.SQLAlchemyError) -> Response:
    """Return 503 when the database is unavailable, locked or full."""
    db.session.rollback()
    current_app.logger.error("The database did not answer: %s", str(error).partition("\n")[0])
    return respond(DatabaseBusy(retry_after=RETRY_SECONDS))


def init_app(app: Flask) -> None:
    app.register_error_handler(HTTPException, respond)
    app.register_error_handler(sa.exc.OperationalError, respond_busy)
    app.register_error_handler(sa.exc.TimeoutError, respond_busy)
