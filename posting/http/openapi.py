"""The OpenAPI 3.1 document, completed from what views declare.

Views say what is theirs: inputs, answer, access. What follows from that by convention (the errors
that an input can cause, ETags, the request id) is added here, once.
"""

from collections.abc import Callable, Mapping
from typing import Any

import flask_smorest
from apispec import APISpec
from apispec.ext.marshmallow import MarshmallowPlugin
from flask import Flask, request
from marshmallow import Schema, fields
from werkzeug.exceptions import (
    BadRequest,
    HTTPException,
    InternalServerError,
    RequestEntityTooLarge,
    UnsupportedMediaType,
)
from werkzeug.routing import BaseConverter

from posting import config
from posting.db.types import ID_PATTERN
from posting.http import errors as problems
from posting.http import request_body
from posting.http.csrf import CrossSiteWrite
from posting.http.etags import ChangedSince, IfMatch
from posting.http.proxy import OtherHost
from posting.schemas.fields import EXAMPLE_ID, File, NewPassword

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
RATE_HEADERS = ["RateLimit", "RateLimit-Policy"]
PROBLEM_HEADERS = {
    401: ["WWW-Authenticate"],
    429: ["Retry-After", *RATE_HEADERS],
    503: ["Retry-After"],
}
# A class says the same wherever it is raised; a function of the settings says what one operation
# does, or returns None where they rule the error out.
Raised = type[HTTPException] | Callable[[Mapping[str, Any]], HTTPException | None]


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
    def answers(*errors: Raised) -> Callable[[Any], Any]:
        """Document the errors that a view raises; the first of several with a status is shown."""

        def note(view: Any) -> Any:
            noted = getattr(view, "_apidoc", {})
            view._apidoc = noted | {"errors": [*noted.get("errors", ()), *errors]}
            return view

        return note

    @staticmethod
    def _prepare_conventions_doc(
        doc: dict[str, Any],
        info: dict[str, Any],
        *,
        app: Flask,
        spec: APISpec,
        method: str,
        **_: Any,
    ) -> dict[str, Any]:
        responses = doc["responses"]
        parameters = doc.setdefault("parameters", [])
        taken = info.get("arguments", {}).get("parameters", [])
        reads = method == "get"
        errors = [*info["errors"], InternalServerError, problems.DatabaseBusy]
        if not reads:
            errors.append(CrossSiteWrite)
        if any(isinstance(parameter["schema"], IfMatch) for parameter in taken):
            errors.append(ChangedSince)
        if "requestBody" in doc:
            content = doc["requestBody"]["content"]
            if method == "patch":
                for media_type in request_body.PATCH_TYPES:
                    content[media_type] = content["application/json"]
            errors += _body_errors(sorted(content))
            is_form = request_body.FORM_TYPE in content
            settings = app.config
            largest = config.max_form_bytes(settings) if is_form else settings["MAX_JSON_BYTES"]
            doc["requestBody"]["description"] = f"At most {largest:,} bytes."
        else:
            errors.append(OtherHost)
        for redundant in (422, "default"):
            responses.pop(redundant, None)
        described = _responses(errors, app.config, spec)
        for status, response in responses.items():
            headers = ["X-Request-ID", "Cache-Control"]
            headers += ["ETag"] if reads and status != "302" else []
            headers += ["Location"] if str(status) == "201" else []
            headers += RATE_HEADERS if "429" in described else []
            _add_headers(response, headers)
        if reads:
            parameters.append(IF_NONE_MATCH)
            responses["304"] = {"description": "The client has it already"}
            _add_headers(responses["304"], ["X-Request-ID", "Cache-Control", "ETag"])
        responses.update(described)
        return doc


def _body_errors(types: list[str]) -> list[Raised]:
    """Return the errors of a body, which must be of one of these types."""
    wrong_type = UnsupportedMediaType(f"The body must be sent as {' or '.join(types)}.")
    if request_body.FORM_TYPE not in types:
        not_json = "The body is not JSON: Expecting value: line 1 column 1 (char 0)."
        return [
            lambda _: BadRequest(not_json),
            lambda config: request_body.too_large(config["MAX_JSON_BYTES"]),
            lambda _: wrong_type,
        ]
    not_form = "The body is not a form: its Content-Type names no boundary of 1 to 100 characters."
    return [
        lambda _: BadRequest(not_form),
        lambda config: RequestEntityTooLarge(
            f"A file may have at most {config['MAX_IMAGE_BYTES']:,} bytes."
        ),
        lambda _: wrong_type,
    ]


def _responses(errors: list[Raised], config: Mapping[str, Any], spec: APISpec) -> dict[str, Any]:
    """Return the responses to errors by status; the response to a class is a component."""
    responses: dict[str, Any] = {}
    for raised in errors:
        error = raised() if isinstance(raised, type) else raised(config)
        if error is None or error.code is None or str(error.code) in responses:
            continue
        response = _response(error, error.code)
        if isinstance(raised, type):
            if raised.__name__ not in spec.components.responses:
                spec.components.response(raised.__name__, response)
            responses[str(error.code)] = raised.__name__
        else:
            responses[str(error.code)] = response
    return responses


def _response(error: HTTPException, status: int) -> dict[str, Any]:
    example = problems.describe(error, status, "8kQ0nTz3HsbXa1")
    content = {problems.MEDIA_TYPE: {"schema": problems.Problem, "example": example}}
    response = {"description": problems.title(status), "content": content}
    _add_headers(response, ["X-Request-ID", *PROBLEM_HEADERS.get(status, [])])
    return response


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
        self.ma_plugin.converter.add_attribute_function(
            lambda _, field, **__: _configured(field, app.config)
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
        pass  # ours are what operations answer


def _configured(field: fields.Field[Any], config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the limits of a field that are settings."""
    if isinstance(field, NewPassword):
        return {"minLength": config["PASSWORD_MIN"]}
    if isinstance(field, File):
        most, text = config["MAX_IMAGE_BYTES"], field.metadata["description"]
        return {"maxLength": most, "description": f"{text} At most {most:,} bytes."}
    return {}


def _schema_name(schema: Any) -> str:
    """Name a schema after its class; a partial one, of which any subset will do, is a change."""
    if isinstance(schema, str):
        return schema
    name = (schema if isinstance(schema, type) else type(schema)).__name__
    partial = isinstance(schema, Schema) and schema.partial
    return f"{name.removesuffix('Input').removesuffix('Change')}Change" if partial else name
