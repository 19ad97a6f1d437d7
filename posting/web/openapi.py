"""The OpenAPI 3.1 document, made from the endpoints.

Endpoints declare what is their own. What follows by convention (the errors of every body, ETags,
the request id) is added here, once.
"""

import inspect
import re
from collections.abc import Mapping
from typing import Any

from apispec import APISpec
from apispec.ext.marshmallow import MarshmallowPlugin
from flask import Flask
from marshmallow import Schema, fields
from werkzeug.exceptions import (
    BadRequest,
    HTTPException,
    InternalServerError,
    RequestEntityTooLarge,
    RequestHeaderFieldsTooLarge,
    RequestURITooLarge,
    UnsupportedMediaType,
)

from posting import config
from posting.config import OTHER_PARTS
from posting.db.types import ID_PATTERN
from posting.site.settings import CHOICES
from posting.web import errors, idempotency, request_body
from posting.web.endpoint import Blueprint, DocumentedError, Endpoint
from posting.web.errors import (
    MALFORMED_ID,
    MEDIA_TYPE,
    UNKNOWN,
    DatabaseBusy,
    DatabaseMoved,
    ExtensibleString,
    QueryTimeout,
    StorageFull,
)
from posting.web.etags import AlreadyCurrent, ChangedSince, UnsupportedPrecondition
from posting.web.hosts import OtherHost, url_template
from posting.web.limits import Counts
from posting.web.schemas import (
    EXAMPLE_ID,
    EXAMPLE_TOKEN,
    File,
    InputField,
    Listed,
    extensible,
    max_file_bytes,
)
from posting.web.security import CrossSiteWrite

EXTENSION = "posting.openapi"
DESCRIPTION = """\
Accounts, posts, comments and images of a community, as JSON. Clients sign in with a session cookie
or send a personal access token.

* Errors are `application/problem+json` (RFC 9457). If several apply, the response is the first of:
  403 for another site or a closed sign-up, 401, 403 for a token or a role, 413, 415, 400, 422, 412
  if the operation takes no precondition, 429, 404, 403, 412, 428, 409, 410. 422 lists everything
  that is not valid.
* Lists are arrays. The URL of the next page is in `Link: <…>; rel="next"` (RFC 8288), which is
  absent on the last page.
* Every GET sends an `ETag` and honors `If-None-Match`. PATCH, PUT and DELETE compare `If-Match`
  with the `ETag` of GET, which protects an edit against overwriting another one. Every POST refuses
  it with 412.
* A request that creates a post, comment, image or report can be repeated with the same
  `Idempotency-Key`, and creates it once.
* Timestamps are RFC 3339 in UTC with milliseconds.
* Later versions may add fields to responses, and values to those with `x-extensible-enum`, such as
  codes of errors. Clients must accept them.
"""


class UrlTooLong(RequestURITooLarge):
    """An error of gunicorn and nginx, as is the next one."""

    description = "The URL is too long."


class HeadersTooLarge(RequestHeaderFieldsTooLarge):
    description = "The headers are too large."


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
    "Posting-Reading": _header("Who may read: `everyone` or `members`.", examples=["everyone"]),
    "Location": _header("The URL of what was created.", format="uri-reference"),
    "Content-Disposition": _header(
        "It is a download, with the name of the file.",
        examples=["attachment; filename*=UTF-8''minutes.pdf"],
    ),
    "X-Accel-Buffering": _header(
        "Lets nginx pass on the response as it comes.", required=False, examples=["no"]
    ),
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
PATH_PARAMETERS = {
    "id": {"name": "id", "in": "path"}
    | _header("An ID of 21 characters.", pattern=ID_PATTERN, examples=[EXAMPLE_ID]),
    "name": {"name": "name", "in": "path"} | _header("A file's name.", examples=["minutes.pdf"]),
    "reaction": {"name": "reaction", "in": "path"}
    | _header(
        "A reaction.",
        enum=["thumbs_up", "heart", "party", "laugh", "surprise", "thanks"],
        examples=["heart"],
    ),
    "side": {"name": "side", "in": "path"}
    | _header("The longest side in pixels.", enum=["640", "1600"], examples=["640"]),
    "token": {"name": "token", "in": "path"}
    | _header("A token with the scope `feed`.", examples=[EXAMPLE_TOKEN]),
    "username": {"name": "username", "in": "path"}
    | _header(
        "A username, in upper or lower case.", pattern="^[A-Za-z0-9_-]{1,32}$", examples=["ada"]
    ),
}
NEXT_PAGE = (
    "The next page is at the URL in the header `Link`, which the last page does not have. Do not "
    "make up a `cursor`, and take none from another list."
)
REPEAT = (
    f"If you do not get a response, send the same request with the same `{idempotency.NAME}` again "
    "within 24 hours. If the first one was carried out, this creates nothing and has the response "
    f"of the first, with `{idempotency.REPLAYED}: true`, even if the object has been deleted since."
)
COMPARE = (
    "Send the `ETag` of a GET of this path as `If-Match`. Then a request about something that has "
    "changed since gets 412, and changes nothing."
)
FORM = "This is a form. It has no null: leave out a field that has no value."
LIMITS_OF_TEXT = {"maxLength", "minLength", "pattern"}
EVERY_RESPONSE = ["X-Request-ID", "Cache-Control"]
RATE_HEADERS = ["RateLimit", "RateLimit-Policy"]


def document(app: Flask, prefix: str = "") -> dict[str, Any]:
    """Return the document of an app's endpoints.

    Its server is the public URL. Without one, it is `prefix`, a path at the host of the document.
    """
    choices = tuple(app.config[name.upper()] for name in CHOICES)
    built: dict[str, Any] | None = app.extensions.get(EXTENSION, {}).get(choices)
    if built is None:
        built = _build(app)
        app.extensions[EXTENSION] = {choices: built}
    return built | {"servers": [{"url": app.config["PUBLIC_URL"] or prefix or "/"}]}


def _build(app: Flask) -> dict[str, Any]:
    plugin = MarshmallowPlugin(schema_name_resolver=_schema_name)
    info = {"description": DESCRIPTION, "license": {"name": "MIT", "identifier": "MIT"}}
    spec = APISpec("Posting", config.VERSION, "3.1.0", plugins=[plugin], info=info)
    converter: Any = plugin.converter
    converter.add_attribute_function(_configured_limits)
    converter.add_attribute_function(_types)
    converter.add_attribute_function(_known_words)
    converter.add_parameter_attribute_function(_separator)
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
            parameters = [PATH_PARAMETERS[name] for name in re.findall("{(.+?)}", path)]
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
        "security": list(endpoint.current_access.security),
    }
    if description := "\n\n".join(filter(None, [description, *_conventions(endpoint)])):
        operation["description"] = description
    parameters: list[Any] = []
    if endpoint.query:
        parameters.append({"in": "query", "schema": endpoint.query})
    if endpoint.conditional:
        parameters.append(IF_MATCH)
    if endpoint.idempotent:
        parameters.append(IDEMPOTENCY_KEY)
    has_etag = is_read and not endpoint.streams
    if has_etag:
        parameters.append(IF_NONE_MATCH)
    if parameters:
        operation["parameters"] = parameters
    if schema := endpoint.body or endpoint.form:
        largest = settings["MAX_JSON_BYTES"]
        if endpoint.form:
            largest = max_file_bytes(endpoint.form) + OTHER_PARTS
        operation["requestBody"] = {
            "required": True,
            "content": {_body_types(endpoint)[0]: {"schema": schema}},
            "description": f"At most {largest:,} bytes.",
        }
    responses = _error_responses(spec, endpoint, settings)
    headers = [*endpoint.headers, *EVERY_RESPONSE]
    if has_etag or endpoint.method == "PATCH" or endpoint.status == 201:
        headers.append("ETag")
    headers += [idempotency.REPLAYED] if endpoint.idempotent else []
    headers += RATE_HEADERS if "429" in responses else []
    success: dict[str, Any] = {
        "description": endpoint.description or errors.title(endpoint.status),
        "headers": {name: name for name in headers},
    }
    if endpoint.returns is not None:
        success["content"] = {endpoint.media_type: {"schema": endpoint.returns}}
    if has_etag:
        responses["304"] = {
            "description": "The client has the current response already",
            "headers": {name: name for name in headers},
        }
    responses[str(endpoint.status)] = success
    operation["responses"] = dict(sorted(responses.items()))
    return operation


def _conventions(endpoint: Endpoint) -> list[str]:
    """Return what clients must know about an operation that follows conventions."""
    texts = []
    if "Link" in endpoint.headers:
        texts.append(NEXT_PAGE)
    if endpoint.idempotent:
        texts.append(REPEAT)
    if endpoint.conditional:
        texts.append(COMPARE)
    if endpoint.form:
        texts.append(FORM)
    return texts


def _body_types(endpoint: Endpoint) -> list[str]:
    """Return the media types that a body may have.

    The document has only the first, because some generators make broken clients from two.
    """
    if endpoint.form:
        return [request_body.FORM_TYPE]
    is_patch = endpoint.method == "PATCH"
    return sorted(request_body.PATCH_TYPES if is_patch else request_body.JSON_TYPES)


def _error_responses(
    spec: APISpec, endpoint: Endpoint, settings: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the responses to errors by status, with an example of each code.

    A response that depends on nothing but the classes of its errors is a component.
    """
    before_view, in_view = _possible_errors(endpoint)
    found: dict[int, list[tuple[DocumentedError, HTTPException]]] = {}
    for each in (*before_view, *in_view):
        error = each() if isinstance(each, type) else each(settings)
        if error is not None and error.code is not None:
            found.setdefault(error.code, []).append((each, error))
    # A limit that counts successes is announced only with 429. Others are announced with every
    # error that comes after the request was counted.
    limited = {429} & found.keys()
    if 429 in found and any(each.counts is not Counts.SUCCESSES for each in endpoint.limits):
        limited = {status for status, listed in found.items() if listed[-1][0] in in_view}
    responses: dict[str, Any] = {}
    for status, listed in sorted(found.items()):
        response = _error_response(endpoint, status, [error for _, error in listed])
        if status in limited:
            response["headers"] |= {name: name for name in RATE_HEADERS}
        names = [each.__name__ for each, _ in listed if isinstance(each, type)]
        if len(names) < len(listed) or status in limited or endpoint.error_type != MEDIA_TYPE:
            responses[str(status)] = response
            continue
        component = "Or".join(names)
        if component not in spec.components.responses:
            spec.components.response(component, response)
        responses[str(status)] = component
    return responses


def _possible_errors(endpoint: Endpoint) -> tuple[list[DocumentedError], list[DocumentedError]]:
    """Return the errors of the checks before the view, and those of the view and its limit.

    A view repeats the checks of access, since a session or an account may have ended meanwhile.
    """
    before_view: list[DocumentedError] = [OtherHost, UrlTooLong, HeadersTooLarge]
    before_view += _body_errors(endpoint)
    if endpoint.method != "GET":
        before_view += [CrossSiteWrite, *endpoint.current_access.write_errors]
        before_view += [] if endpoint.conditional else [UnsupportedPrecondition]
    in_view: list[DocumentedError] = [*endpoint.current_access.errors, *endpoint.errors]
    if endpoint.idempotent:
        in_view.append(idempotency.StillUnderWay)
    if endpoint.conditional:
        in_view += [ChangedSince, AlreadyCurrent]
    in_view += [limit.error for limit in endpoint.limits]
    in_view += [lambda _: _invalid_input(endpoint), InternalServerError]
    in_view += [DatabaseBusy, DatabaseMoved, QueryTimeout]
    in_view += [StorageFull] if endpoint.writes else []
    return before_view, in_view


def _error_response(
    endpoint: Endpoint, status: int, possible: list[HTTPException]
) -> dict[str, Any]:
    """Return the response to the errors of one status."""
    content: dict[str, Any] = {"schema": {"type": "string"}}
    if endpoint.error_type == MEDIA_TYPE:
        problems = [errors.problem_details(each, status, EXAMPLE_REQUEST_ID) for each in possible]
        examples = {problem["code"]: {"value": problem} for problem in problems}
        content = {"schema": errors.Problem, "examples": examples}
    sent = [{name for name, _ in each.get_headers()} - {"Content-Type"} for each in possible]
    headers: dict[str, Any] = {name: name for name in EVERY_RESPONSE}
    for name in sorted(set.union(*sent)):
        is_optional = not all(name in names for names in sent)
        headers[name] = HEADERS[name] | {"required": False} if is_optional else name
    return {
        "description": errors.title(status),
        "content": {endpoint.error_type: content},
        "headers": headers,
    }


def _invalid_input(endpoint: Endpoint) -> errors.InvalidInput | None:
    """Return the error of a request with the id "x", the body {}, or "page" in its query."""
    invalid: errors.Errors = []
    if "<nanoid" in endpoint.rule:
        invalid.append(errors.input_error(MALFORMED_ID, parameter="id"))
    if schema := endpoint.body or endpoint.form:
        invalid += errors.body_errors(schema.validate({}))
    if not invalid and endpoint.query:
        invalid += errors.parameter_errors(endpoint.query.validate({"page": "1"}))
    if not invalid and not endpoint.any_query:
        invalid.append(errors.input_error(UNKNOWN, parameter="page"))
    return errors.InvalidInput(invalid) if invalid else None


def _body_errors(endpoint: Endpoint) -> list[DocumentedError]:
    if not (endpoint.body or endpoint.form):
        return []
    types = " or ".join(_body_types(endpoint))
    wrong_type = UnsupportedMediaType(f"The body must be sent as {types}.")
    if endpoint.form:
        most = max_file_bytes(endpoint.form)
        no_form = "its Content-Type names no boundary of 1 to 100 characters"
        return [
            lambda _: BadRequest(f"The body is not a form: {no_form}."),
            lambda _: RequestEntityTooLarge(f"A file may have at most {most:,} bytes."),
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
    return field.configured_limits() if isinstance(field, InputField) else {}


def _types(_converter: Any, field: fields.Field[Any], *, ret: dict[str, Any]) -> dict[str, Any]:
    """Return the type of a field. Choices and files lose the limits of text.

    If a choice or a file has a limit of text, some generators make clients that throw.
    """
    if "enum" in ret or isinstance(field, File):
        for keyword in LIMITS_OF_TEXT & ret.keys():
            del ret[keyword]
    if isinstance(field, File):
        return {"type": "string", "format": "binary"}
    if isinstance(field, Listed):
        return {"type": "array"} | field.array
    return {}


def _known_words(_converter: Any, field: fields.Field[Any], **_options: Any) -> dict[str, Any]:
    """Return the words to which features add, such as codes, which are all known by now."""
    return extensible(field.known(), field.example) if isinstance(field, ExtensibleString) else {}


def _separator(_converter: Any, field: fields.Field[Any], **_options: Any) -> dict[str, Any]:
    """Document that the items of a query parameter are separated by commas."""
    return {"style": "form", "explode": False} if isinstance(field, Listed) else {}


def _schema_name(schema: Any) -> str:
    """Name a schema after its class. A partial schema, which requires no field, is a change."""
    if isinstance(schema, str):
        return schema
    name = (schema if isinstance(schema, type) else type(schema)).__name__
    partial = isinstance(schema, Schema) and schema.partial
    return f"{name.removesuffix('Input').removesuffix('Change')}Change" if partial else name
