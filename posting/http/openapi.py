"""The OpenAPI 3.1 document, made from the endpoints.

Endpoints declare what is their own. What follows by convention (the errors of every body, ETags,
the request id) is added here, once.
"""

import inspect
from collections.abc import Mapping
from typing import Any

from apispec import APISpec
from apispec.ext.marshmallow import MarshmallowPlugin
from flask import Flask, current_app
from marshmallow import Schema, fields
from werkzeug.exceptions import (
    BadRequest,
    InternalServerError,
    RequestEntityTooLarge,
    UnsupportedMediaType,
)

from posting import config
from posting.config import max_form_bytes
from posting.db.types import ID_PATTERN
from posting.http import errors, idempotency, request_body
from posting.http.csrf import CrossSiteWrite
from posting.http.endpoint import Blueprint, DocumentedError, Endpoint
from posting.http.etags import ChangedSince
from posting.http.proxy import OtherHost
from posting.http.urls import url_template
from posting.schemas.fields import EXAMPLE_ID, File, NewPassword
from posting.schemas.messages import MALFORMED_ID, UNKNOWN

EXTENSION = "posting.openapi"
DESCRIPTION = """\
Accounts, posts, comments and images of a community, as JSON. Clients sign in with a session cookie
or send a personal access token.

* Errors are `application/problem+json` (RFC 9457). If several apply, the response is the first of:
  403 for another site or a closed sign-up, 401, 403 for a token, 413, 415, 400, 422, 429, 404, 403,
  412, 409. 422 lists everything that is not valid.
* Lists are arrays. The URL of the next page is in `Link: <…>; rel="next"` (RFC 8288), which is
  absent on the last page.
* Every GET sends an `ETag` and honors `If-None-Match`. `If-Match` protects an edit against
  overwriting another one.
* A request that creates a post, comment or image can be repeated with the same `Idempotency-Key`,
  and creates it once.
* Timestamps are RFC 3339 in UTC with milliseconds.
"""
EXAMPLE_REQUEST_ID = "8kQ0nTz3HsbXa1"


def _header(description: str, *, required: bool = True, **schema: Any) -> dict[str, Any]:
    """Return the description of a header, which is text unless `schema` says otherwise."""
    header = {"description": description, "schema": {"type": "string"} | schema}
    return header | {"required": True} if required else header


HEADERS = {
    "X-Request-ID": _header(
        "The request's id in the log; a well-formed one that was sent is kept.",
        pattern="^[A-Za-z0-9._-]{1,64}$",
    ),
    "ETag": _header("The entity tag (RFC 9110).", examples=['"1-5f2c9d7a41e0b388"']),
    "Cache-Control": _header(
        "Who may store the response.", examples=["public, max-age=0, must-revalidate"]
    ),
    "Location": _header("The URL of what was created.", format="uri-reference"),
    "Link": _header(
        "The next page (RFC 8288); absent on the last one.",
        required=False,
        examples=[
            f'<https://example.org/posts?cursor=list_posts.1795253400125.{EXAMPLE_ID}>; rel="next"'
        ],
    ),
    idempotency.REPLAYED: _header(
        "Sent with a response that was stored for the `Idempotency-Key`.",
        required=False,
        const="true",
    ),
    "Set-Cookie": _header(
        "The session cookie.",
        required=False,
        examples=["session=…; HttpOnly; Path=/; SameSite=Lax"],
    ),
    "WWW-Authenticate": _header(
        "How to authenticate: `Cookie`, or `Bearer` if a token was sent.", examples=["Cookie"]
    ),
    "RateLimit": _header(
        "The hits left of each limit, and the seconds until its window ends "
        "(draft-ietf-httpapi-ratelimit-headers-10); absent where nothing is limited.",
        required=False,
        examples=['"posts";r=299;t=3600'],
    ),
    "RateLimit-Policy": _header(
        "Each limit, and its window in seconds.", required=False, examples=['"posts";q=300;w=3600']
    ),
    "Retry-After": _header("Seconds to wait.", type="integer", minimum=0),
}
IF_NONE_MATCH = {"name": "If-None-Match", "in": "header"} | _header(
    "An ETag that the client has; 304 if it is still current.",
    required=False,
    examples=['"5f2c9d7a41e0b388"'],
)
IF_MATCH = {"name": "If-Match", "in": "header"} | _header(
    "The ETag that the client has read; if it is stale, 412 and nothing changes.",
    required=False,
    examples=['"1-5f2c9d7a41e0b388"'],
)
IDEMPOTENCY_KEY = {"name": idempotency.NAME, "in": "header"} | _header(
    "Any text of the client's choice. Within 24 hours, the same request with the same key creates "
    "nothing and is answered like the first one.",
    required=False,
    pattern=f"^{idempotency.PATTERN}$",
    examples=["8e03978e-40d5-43dd-bc93-6894a57f9324"],
)
ID = {
    "name": "id",
    "in": "path",
    "required": True,
    "schema": {"type": "string", "pattern": ID_PATTERN, "examples": [EXAMPLE_ID]},
}
EVERY_RESPONSE = ["X-Request-ID", "Cache-Control"]
RATE_HEADERS = ["RateLimit", "RateLimit-Policy"]
ERROR_HEADERS = {
    401: ["WWW-Authenticate"],
    429: ["Retry-After", *RATE_HEADERS],
    503: ["Retry-After"],
}


def document(app: Flask, server: str) -> dict[str, Any]:
    """Return the document of an app's endpoints, with the URL of its server."""
    if EXTENSION not in app.extensions:
        app.extensions[EXTENSION] = _build(app)
    built: dict[str, Any] = app.extensions[EXTENSION]
    return built | {"servers": [{"url": server}]}


def _build(app: Flask) -> dict[str, Any]:
    plugin = MarshmallowPlugin(schema_name_resolver=_schema_name)
    info = {"description": DESCRIPTION, "license": {"name": "MIT", "identifier": "MIT"}}
    spec = APISpec("Posting", config.VERSION, "3.1.0", plugins=[plugin], info=info)
    converter: Any = plugin.converter
    converter.add_attribute_function(_configured_limits)
    for name, header in HEADERS.items():
        spec.components.header(name, header)
    cookie = {"type": "apiKey", "in": "cookie", "name": app.config["SESSION_COOKIE_NAME"]}
    spec.components.security_scheme("session", cookie | {"description": "Set by POST /signin."})
    bearer = {"type": "http", "scheme": "bearer", "description": "Created by POST /tokens."}
    spec.components.security_scheme("token", bearer)
    for blueprint in app.blueprints.values():
        if isinstance(blueprint, Blueprint) and _is_documented(app, blueprint):
            spec.tag({"name": blueprint.name, "description": blueprint.description})
    for rule in app.url_map.iter_rules():
        endpoint = app.view_functions[rule.endpoint]
        if isinstance(endpoint, Endpoint) and endpoint.documented:
            operation = _operation(spec, endpoint, app.config)
            operation["tags"] = [rule.endpoint.partition(".")[0]]
            path = url_template(rule.rule)
            parameters = [ID] if "{id}" in path else []
            spec.path(path, operations={endpoint.method.lower(): operation}, parameters=parameters)
    return spec.to_dict()


def _is_documented(app: Flask, blueprint: Blueprint) -> bool:
    """Return whether an endpoint of a blueprint is in the document."""
    return any(
        isinstance(view, Endpoint) and view.documented
        for name, view in app.view_functions.items()
        if name.startswith(f"{blueprint.name}.")
    )


def _operation(spec: APISpec, endpoint: Endpoint, settings: Mapping[str, Any]) -> dict[str, Any]:
    summary, _, description = inspect.cleandoc(endpoint.view.__doc__ or "").partition("\n\n")
    is_read = endpoint.method == "GET"
    operation: dict[str, Any] = {
        "operationId": endpoint.name,
        "summary": summary,
        "security": list(endpoint.access.security),
    }
    if description:
        operation["description"] = description
    parameters: list[Any] = []
    if endpoint.query:
        parameters.append({"in": "query", "schema": endpoint.query})
    if endpoint.if_match:
        parameters.append(IF_MATCH)
    if endpoint.idempotent:
        parameters.append(IDEMPOTENCY_KEY)
    if is_read:
        parameters.append(IF_NONE_MATCH)
    if parameters:
        operation["parameters"] = parameters
    if schema := endpoint.body or endpoint.form:
        largest = max_form_bytes(settings) if endpoint.form else settings["MAX_JSON_BYTES"]
        operation["requestBody"] = {
            "required": True,
            "content": {media_type: {"schema": schema} for media_type in _body_types(endpoint)},
            "description": f"At most {largest:,} bytes.",
        }
    responses = _error_responses(spec, endpoint, settings)
    headers = [*endpoint.headers, *EVERY_RESPONSE]
    headers += ["ETag"] if is_read else []
    headers += [idempotency.REPLAYED] if endpoint.idempotent else []
    headers += RATE_HEADERS if "429" in responses else []
    success: dict[str, Any] = {
        "description": endpoint.description or errors.title(endpoint.status),
        "headers": {name: name for name in headers},
    }
    if endpoint.returns is not None:
        success["content"] = {endpoint.media_type: {"schema": endpoint.returns}}
    if is_read:
        responses["304"] = {
            "description": "The client has the current response already",
            "headers": {name: name for name in (*EVERY_RESPONSE, "ETag")},
        }
    operation["responses"] = {str(endpoint.status): success} | responses
    return operation


def _body_types(endpoint: Endpoint) -> list[str]:
    if endpoint.form:
        return [request_body.FORM_TYPE]
    is_patch = endpoint.method == "PATCH"
    return sorted(request_body.PATCH_TYPES if is_patch else request_body.JSON_TYPES)


def _error_responses(
    spec: APISpec, endpoint: Endpoint, settings: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the responses to errors by status; a class of errors is a component.

    Of several errors with one status, the first is described: the endpoint's own.
    """
    possible: list[DocumentedError] = [*endpoint.errors]
    if endpoint.idempotent:
        possible.append(idempotency.StillUnderWay)
    if endpoint.limit:
        possible.append(endpoint.limit.error)
    possible += [*endpoint.access.errors, lambda _: _invalid_input(endpoint)]
    possible += [InternalServerError, errors.DatabaseBusy]
    if endpoint.method != "GET":
        possible.append(CrossSiteWrite)
    if endpoint.if_match:
        possible.append(ChangedSince)
    possible += _body_errors(endpoint) if endpoint.body or endpoint.form else [OtherHost]
    responses: dict[str, Any] = {}
    for each in possible:
        error = each() if isinstance(each, type) else each(settings)
        if error is None or error.code is None or str(error.code) in responses:
            continue
        example = errors.problem_details(error, error.code, EXAMPLE_REQUEST_ID)
        headers = [*EVERY_RESPONSE, *ERROR_HEADERS.get(error.code, ())]
        response = {
            "description": errors.title(error.code),
            "content": {errors.MEDIA_TYPE: {"schema": errors.Problem, "example": example}},
            "headers": {name: name for name in headers},
        }
        if isinstance(each, type):
            if each.__name__ not in spec.components.responses:
                spec.components.response(each.__name__, response)
            responses[str(error.code)] = each.__name__
        else:
            responses[str(error.code)] = response
    return responses


def _invalid_input(endpoint: Endpoint) -> errors.InvalidInput:
    """Return the error for the id "x", and {} as body or "page" as a name in the query."""
    invalid: errors.Errors = []
    if ":id>" in endpoint.rule:
        invalid.append(errors.input_error(MALFORMED_ID, parameter="id"))
    if schema := endpoint.body or endpoint.form:
        invalid += errors.body_errors(schema.validate({}))
    if not invalid and endpoint.query:
        invalid += errors.parameter_errors(endpoint.query.validate({"page": "1"}))
    return errors.InvalidInput(invalid or [errors.input_error(UNKNOWN, parameter="page")])


def _body_errors(endpoint: Endpoint) -> list[DocumentedError]:
    types = " or ".join(_body_types(endpoint))
    wrong_type = UnsupportedMediaType(f"The body must be sent as {types}.")
    if endpoint.form:
        no_form = "its Content-Type names no boundary of 1 to 100 characters"
        return [
            lambda _: BadRequest(f"The body is not a form: {no_form}."),
            lambda settings: RequestEntityTooLarge(
                f"A file may have at most {settings['MAX_IMAGE_BYTES']:,} bytes."
            ),
            lambda _: wrong_type,
        ]
    no_json = "The body is not JSON: Expecting value: line 1 column 1 (char 0)."
    return [
        lambda _: BadRequest(no_json),
        lambda settings: request_body.too_large(settings["MAX_JSON_BYTES"]),
        lambda _: wrong_type,
    ]


def _configured_limits(
    _converter: Any, field: fields.Field[Any], **_options: Any
) -> dict[str, Any]:
    """Return the limits of a field that are settings."""
    if isinstance(field, NewPassword):
        return {"minLength": current_app.config["PASSWORD_MIN"]}
    if isinstance(field, File):
        most, text = current_app.config["MAX_IMAGE_BYTES"], field.metadata["description"]
        limits = {"maxLength": most, "description": f"{text} At most {most:,} bytes."}
        return {"type": "string", "format": "binary"} | limits
    return {}


def _schema_name(schema: Any) -> str:
    """Name a schema after its class; a partial one, of which any subset is valid, is a change."""
    if isinstance(schema, str):
        return schema
    name = (schema if isinstance(schema, type) else type(schema)).__name__
    partial = isinstance(schema, Schema) and schema.partial
    return f"{name.removesuffix('Input').removesuffix('Change')}Change" if partial else name
