"""The way of a request through a view: may they ask, and again? is the input valid? then the view.

A view declares its access rule and its inputs with decorators; `Blueprint` runs them, in the order
in which errors must answer: 401, 429, then 413, 415 and 400, then one 422 for all that is wrong.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, wraps
from time import monotonic
from typing import Any, Protocol, TypeVar

import flask_smorest
from flask import Response, jsonify, request
from marshmallow import Schema, ValidationError
from werkzeug.datastructures import Headers, MultiDict
from werkzeug.routing import BaseConverter, Map

from posting.db.types import ID_LENGTH, ID_PATTERN, ID_RULE
from posting.http import openapi, request_body
from posting.http.errors import UNKNOWN, Errors, InvalidInput, body_errors

View = TypeVar("View", bound=Callable[..., Any])
Messages = dict[str, list[str]]
BODIES = frozenset({"json", "files"})
MOMENT = 0.1  # seconds in which who may ask does not change
_is_id = re.compile(ID_PATTERN.removesuffix("$") + r"\Z").match


class Decorator(Protocol):
    """Takes a view and returns what stands for it."""

    def __call__(self, view: View, /) -> View: ...


class IdConverter(BaseConverter):
    """A path segment that should be an identifier; whether it is one is input, not routing.

    `<nanoid("me"):id>` leaves the segment `me` to another route.
    """

    def __init__(self, url_map: Map, but: str = "") -> None:
        super().__init__(url_map)
        self.regex = rf"(?!{but}$)[^/]+"


def public(view: View) -> View:
    """Let everyone ask, whoever they are."""
    return grant(view, anyone, security=[])


def anyone() -> None:
    """Refuse nobody."""


def grant(view: View, rule: Callable[[], None], **documentation: Any) -> View:
    """Attach an access rule to a view: a function that raises if the caller may not ask."""
    view.access = rule  # type: ignore[attr-defined]  # read where views are registered
    documented: View = openapi.noted(flask_smorest.Blueprint.doc(**documentation))(view)
    return documented


class _NoParser:
    """Stands in for webargs' parser: `_operation` reads what a view takes."""

    DEFAULT_VALIDATION_STATUS = 422

    @staticmethod
    def use_args(_schema: Schema, *, location: str) -> Decorator:
        return lambda view: view


class Blueprint(openapi.DocumentedBlueprint):
    """A resource's views: each must declare who may ask, and is documented as it behaves."""

    ARGUMENTS_PARSER = _NoParser()

    # flask-smorest has no type hints: these are the decorators that views use.
    get: Callable[..., Decorator]
    post: Callable[..., Decorator]
    patch: Callable[..., Decorator]
    delete: Callable[..., Decorator]

    def arguments(self, schema: Schema | type[Schema], *, location: str = "json") -> Decorator:
        """Take an input, checked by `schema`: `json`, `files` (a form), `query` or `headers`."""
        instance = schema() if isinstance(schema, type) else schema
        document = openapi.noted(super().arguments(instance, location=location))

        def note(view: View) -> View:
            inputs = ((location, instance), *getattr(view, "inputs", ()))
            view.inputs = inputs  # type: ignore[attr-defined]  # read where views are registered
            documented: View = document(view)
            return documented

        return note

    def response(self, status: int, schema: Any = None, **documentation: Any) -> Decorator:
        """Answer what a view returns: a response, or a body, which `schema` dumps, and headers."""
        instance = schema() if isinstance(schema, type) else schema
        document = super().response(status, instance, **documentation)

        def decorate(view: Any) -> Any:
            @wraps(document(view))
            def answer(*values: Any, **path: str) -> Response:
                body, headers = _parts(view(*values, **path))
                if isinstance(body, Response):
                    return body
                response = jsonify(body if instance is None else instance.dump(body))
                response.status_code = status
                response.headers.extend(headers)
                return response

            return answer

        return decorate

    def add_url_rule(
        self,
        rule: str,
        endpoint: str | None = None,
        view_func: Any = None,
        *args: Any,
        documented: bool = True,
        **options: Any,
    ) -> None:
        if not hasattr(view_func, "access"):
            raise TypeError(f"{view_func} declares no access rule")
        name = endpoint or view_func.__name__
        view_func = self.answers(lambda _: _invalid(view_func, rule))(view_func)
        checked = _operation(view_func, documented=documented)
        operation = openapi.noted(self.doc(operationId=name))(checked)
        super().add_url_rule(rule, name, operation, *args, **options)
        if not documented:
            del self._docs[name]


def _invalid(view: Any, rule: str) -> InvalidInput:
    """Return a view's error, for the document: for "x" as id, and {} as body or "page" as query."""
    errors: Errors = [{"detail": ID_RULE, "parameter": "id"}] if ":id>" in rule else []
    for location, schema in getattr(view, "inputs", ()):
        if location in BODIES:
            errors += body_errors(schema.validate({}))
    return InvalidInput(errors or [{"detail": UNKNOWN, "parameter": "page"}])


def _parts(returned: Any) -> tuple[Any, Mapping[str, str]]:
    body, headers = returned if isinstance(returned, tuple) else (returned, {})
    return body, headers


def _operation(view: Any, *, documented: bool) -> Callable[..., Any]:
    access: Callable[[], None] = view.access
    limit: Callable[[], None] = getattr(view, "limit", anyone)
    inputs: tuple[tuple[str, Schema], ...] = getattr(view, "inputs", ())
    locations = {location for location, _ in inputs}
    takes_body = not locations.isdisjoint(BODIES)
    takes_query = "query" in locations or not documented

    @wraps(view)
    def operation(**path: str) -> Any:
        asked = monotonic()
        access()
        limit()
        values = _read(inputs, path, takes_query=takes_query)
        if takes_body and monotonic() - asked > MOMENT:
            access()  # a body can take hours to arrive, in which a session ends
        return view(*values, **path)

    return operation


def _read(
    inputs: Iterable[tuple[str, Schema]], path: dict[str, str], *, takes_query: bool
) -> list[Any]:
    """Return what a view takes; raise one 422 that names everything wrong in path and inputs."""
    errors: Errors = []
    if not takes_query and request.query_string:
        names = request.args or [""]  # "?&" has no name, but caches see another URL
        errors += [{"detail": UNKNOWN, "parameter": name} for name in names]
    if not _is_id(path.get("id", "a" * ID_LENGTH)):
        errors.append({"detail": ID_RULE, "parameter": "id"})
    taken = [(_LOCATIONS[name], schema, _LOCATIONS[name].take()) for name, schema in inputs]
    values = []
    for location, schema, data in taken:
        try:
            values.append(location.load(schema, data))
        except ValidationError as error:
            errors.extend(location.errors(error.normalized_messages()))
    if errors:
        raise InvalidInput(errors)
    return values


def _load_once(schema: Schema, named: MultiDict[str, Any]) -> Any:
    if not named:
        return dict(_load_nothing(schema))
    if repeated := [name for name, values in named.lists() if len(values) > 1]:
        raise ValidationError({name: ["Given more than once."] for name in repeated})
    return schema.load(named.to_dict())


@cache
def _load_nothing(schema: Schema) -> Any:
    return schema.load({})


def _load_headers(schema: Schema, headers: Headers) -> Any:
    names = (str(field.data_key) for field in schema.fields.values())
    sent = {name: headers[name] for name in names if name in headers}
    return schema.load(sent) if sent else dict(_load_nothing(schema))


def _errors_of(place: str) -> Callable[[Messages], Iterable[dict[str, str]]]:
    def errors(messages: Messages) -> Iterable[dict[str, str]]:
        for name, details in messages.items():
            yield from ({"detail": detail, place: name} for detail in details)

    return errors


@dataclass(frozen=True)
class _Location:
    """Where an input comes from: how it is taken and loaded, and what its errors point at."""

    take: Callable[[], Any]
    load: Callable[[Schema, Any], Any]
    errors: Callable[[Messages], Iterable[dict[str, str]]]


_LOCATIONS = {
    "json": _Location(request_body.read_json, Schema.load, body_errors),
    "files": _Location(request_body.read_form, _load_once, body_errors),
    "query": _Location(lambda: request.args, _load_once, _errors_of("parameter")),
    "headers": _Location(lambda: request.headers, _load_headers, _errors_of("header")),
}
