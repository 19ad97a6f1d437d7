"""The OpenAPI 3.1 document, completed from what views declare.

Views say what is theirs: inputs, answer, access. What follows from that by convention (the errors
that an input can cause, ETags, the request id) is added here, once.
"""

from collections.abc import Callable
from typing import Any

import flask_smorest
from apispec.ext.marshmallow import MarshmallowPlugin
from flask import Flask, request
from marshmallow import Schema
from werkzeug.routing import BaseConverter

from posting import config
from posting.database import ID_PATTERN
from posting.fields import EXAMPLE_ID, NewPassword
from posting.protocol import bodies, problems

DESCRIPTION = """\
Accounts, posts, comments and images of a community, as JSON with cookie sessions.

* Errors are `application/problem+json` (RFC 9457). A write that a page of another site sends
  is 403. When several things are wrong, the first of 401, 429, 413, 415, 400, 422, 404, 403, 412,
  409 answers, and 422 lists everything that is not valid.
* Lists are arrays, paged by the URL in `Link: <…>; rel="next"` (RFC 8288), absent on the last page.
* Every GET sends an `ETag` and honours `If-None-Match`. An edit may be guarded with `If-Match`.
* What creates may be sent again with the same `Idempotency-Key`, and creates once.
* Times are RFC 3339 in UTC with milliseconds.
"""

HEADERS: dict[str, dict[str, Any]] = {
    "X-Request-ID": {
        "description": "Names this request in the log; a well-formed one that came in is kept.",
        "required": True,
        "schema": {"type": "string", "pattern": "^[A-Za-z0-9._-]{1,64}$"},
    },
    "ETag": {
        "description": "The entity tag (RFC 9110).",
        "required": True,
        "schema": {"type": "string", "examples": ['"1-5f2c9d7a41e0b388"']},
    },
    "Cache-Control": {
        "description": "Who may keep the answer.",
        "required": True,
        "schema": {"type": "string", "examples": ["public, max-age=0, must-revalidate"]},
    },
    "Location": {
        "description": "The URL of what was made.",
        "required": True,
        "schema": {"type": "string", "format": "uri-reference"},
    },
    "Link": {
        "description": "The next page (RFC 8288); absent on the last one.",
        "schema": {
            "type": "string",
            "examples": ['<https://example.org/posts?cursor=W10>; rel="next"'],
        },
    },
    "Set-Cookie": {
        "description": "The session cookie.",
        "schema": {"type": "string", "examples": ["session=…; HttpOnly; Path=/; SameSite=Lax"]},
    },
    "WWW-Authenticate": {
        "description": "How to authenticate.",
        "required": True,
        "schema": {"type": "string", "const": "Cookie"},
    },
    "RateLimit": {
        "description": "What is left of each limit, and in how many seconds it is whole again "
        "(draft-ietf-httpapi-ratelimit-headers-10); absent where nothing is limited.",
        "schema": {"type": "string", "examples": ['"posts";r=299;t=3600']},
    },
    "RateLimit-Policy": {
        "description": "Each limit, and the seconds for which it holds.",
        "schema": {"type": "string", "examples": ['"posts";q=300;w=3600']},
    },
    "Retry-After": {
        "description": "Seconds to wait.",
        "required": True,
        "schema": {"type": "integer", "minimum": 0},
    },
}
IF_NONE_MATCH = {
    "name": "If-None-Match",
    "in": "header",
    "description": "An ETag that the client has; 304 if it is still good.",
    "schema": {"type": "string", "examples": ['"5f2c9d7a41e0b388"']},
}
# What a request header can bring about.
HEADER_PROBLEMS = {"If-Match": 412, "Idempotency-Key": 409}
RATE_HEADERS = ["RateLimit", "RateLimit-Policy"]
PROBLEM_HEADERS = {
    401: ["WWW-Authenticate"],
    429: ["Retry-After", *RATE_HEADERS],
    503: ["Retry-After"],
}
CONVENTIONAL_PROBLEMS = (400, 401, 403, 404, 409, 412, 413, 415, 422, 429, 500, 503)
PROBLEM_EXAMPLES: dict[int, dict[str, Any]] = {
    400: {"detail": "The body is not JSON: Expecting value: line 1 column 1 (char 0)."},
    401: {"detail": "Sign in first: POST /signin."},
    403: {"detail": "Only its author may do this."},
    404: {"detail": "There is no such post."},
    409: {"detail": "This username is taken."},
    412: {"detail": "It has been changed since; read it again."},
    413: {"detail": problems.DETAILS[413]},
    415: {"detail": "The body must be sent as application/json."},
    422: {
        "detail": problems.InvalidInput.description,
        "errors": [{"detail": "Must not be blank.", "pointer": "/title"}],
    },
    429: {"detail": "No more than 300 an hour; try again later."},
    500: {"detail": problems.DETAILS[500]},
    503: {"detail": "The database is busy or away; try again."},
}


def noted(decorate: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Let a decorator of flask-smorest's note something on a view, and leave its wrapper away."""

    def note(view: Any) -> Any:
        view._apidoc = decorate(view)._apidoc
        return view

    return note


class DocumentedBlueprint(flask_smorest.Blueprint):  # type: ignore[misc]  # it has no type hints
    """A blueprint whose operations are documented with what follows by convention."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._prepare_doc_cbks.append(self._prepare_conventions_doc)

    @staticmethod
    def answers(*statuses: int) -> Callable[[Any], Any]:
        """Document the problems that a view raises itself."""
        responses = {str(status): problems.component(status) for status in statuses}
        return noted(flask_smorest.Blueprint.doc(responses=responses))

    @staticmethod
    def _prepare_conventions_doc(
        doc: dict[str, Any], info: dict[str, Any], *, method: str, **_: Any
    ) -> dict[str, Any]:
        responses = doc["responses"]
        parameters = doc.setdefault("parameters", [])
        taken = info.get("arguments", {}).get("parameters", [])
        raised = info.get("manual_doc", {}).get("responses", {})
        reads = method == "get"
        statuses = {400, 500, 503}
        if not reads:
            statuses.add(403)
        if "requestBody" in doc:
            statuses |= {413, 415, 422}
            content = doc["requestBody"]["content"]
            if method == "patch":
                for media_type in bodies.PATCH_TYPES:
                    content[media_type] = content["application/json"]
        for redundant in (422, "default"):
            responses.pop(redundant, None)
        for parameter in taken:
            if parameter["in"] == "query":
                statuses.add(422)
            if parameter["in"] == "headers":
                names = {field.data_key for field in parameter["schema"].fields.values()}
                statuses |= {HEADER_PROBLEMS[name] for name in names & HEADER_PROBLEMS.keys()}
        for status, response in responses.items():
            headers = ["X-Request-ID", "Cache-Control"]
            headers += ["ETag"] if reads and status != "302" else []
            headers += ["Location"] if str(status) == "201" else []
            headers += RATE_HEADERS if "429" in raised else []
            _add_headers(response, headers)
        if reads:
            parameters.append(IF_NONE_MATCH)
            responses["304"] = {"description": "The client has it already"}
            _add_headers(responses["304"], ["X-Request-ID", "Cache-Control", "ETag"])
        responses.update({str(status): problems.component(status) for status in statuses})
        return doc


def _add_headers(response: dict[str, Any], names: list[str]) -> None:
    headers = response.setdefault("headers", {})
    headers.update({name: name for name in names if name not in headers})


class Api(flask_smorest.Api):  # type: ignore[misc]  # it has no type hints
    """Registers blueprints and holds the document of one app."""

    ERROR_SCHEMA = problems.Problem

    def __init__(self, app: Flask, path_converter: type[BaseConverter], cookie: str) -> None:
        app.config |= {"API_TITLE": "Posting", "API_VERSION": config.VERSION}
        app.config["OPENAPI_VERSION"] = "3.1.0"
        plugin = MarshmallowPlugin(schema_name_resolver=_schema_name)
        super().__init__(
            app,
            spec_kwargs={
                "marshmallow_plugin": plugin,
                "servers": [{"url": "/"}],
                "info": {
                    "description": DESCRIPTION,
                    "license": {"name": "MIT", "identifier": "MIT"},
                },
            },
        )
        least = app.config["PASSWORD_MIN"]
        self.ma_plugin.converter.add_attribute_function(
            lambda _, field, **__: {"minLength": least} if isinstance(field, NewPassword) else {}
        )
        identifier = {"type": "string", "pattern": ID_PATTERN, "examples": [EXAMPLE_ID]}
        self.register_converter(path_converter, lambda _: dict(identifier))
        for name, header in HEADERS.items():
            self.spec.components.header(name, header)
        self.spec.components.security_scheme(
            "session",
            {
                "type": "apiKey",
                "in": "cookie",
                "name": cookie,
                "description": "Set by POST /signin.",
            },
        )
        self._document: dict[str, Any] | None = None
        app.extensions["posting.api"] = self

    def document(self) -> dict[str, Any]:
        """Return the whole document, its server being where this request came in."""
        if self._document is None:
            self._document = self.spec.to_dict()
        return self._document | {"servers": [{"url": request.script_root or "/"}]}

    def handle_http_exception(self, error: Any) -> Any:
        return problems.respond(error)

    def _register_etag_headers(self) -> None:
        pass  # ours are in HEADERS

    def _register_pagination_header(self) -> None:
        pass  # ours is Link

    def _register_responses(self) -> None:
        for status in CONVENTIONAL_PROBLEMS:
            title = problems.title(status)
            example = {"type": "about:blank", "title": title, "status": status}
            example |= {"request_id": "8kQ0nTz3HsbXa1"} | PROBLEM_EXAMPLES[status]
            response = {
                "description": title,
                "content": {problems.MEDIA_TYPE: {"schema": problems.Problem, "example": example}},
            }
            _add_headers(response, ["X-Request-ID", *PROBLEM_HEADERS.get(status, [])])
            self.spec.components.response(problems.component(status), response, lazy=True)


def _schema_name(schema: Any) -> str:
    """Name a schema after its class; a partial one, of which any subset will do, is a change."""
    if isinstance(schema, str):
        return schema
    name = (schema if isinstance(schema, type) else type(schema)).__name__
    partial = isinstance(schema, Schema) and schema.partial
    return f"{name.removesuffix('Input').removesuffix('Change')}Change" if partial else name
