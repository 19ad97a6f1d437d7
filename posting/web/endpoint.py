"""Endpoints: what a view declares, and the order in which a request is checked.

A view is registered with all of its declarations in one call, such as::

    @posts.post("/posts", access=SIGNED_IN, limits=[POST_LIMIT], body=PostInput(),
                prepare=find_words, idempotent=True, status=201, returns=Post())
    def create_post(body, prepared): ...

The checks of a request and the OpenAPI document are made from the same `Endpoint`.
"""

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from enum import Enum
from functools import cached_property
from time import monotonic
from typing import Any, Concatenate, ParamSpec, TypeVar

import flask
import sqlalchemy as sa
from flask import Request, Response, current_app, request
from marshmallow import EXCLUDE, Schema, ValidationError
from werkzeug.datastructures import MultiDict
from werkzeug.exceptions import HTTPException
from werkzeug.routing import BaseConverter, Map

from posting.config import everyone_may_read
from posting.db.transactions import unit_of_work
from posting.db.types import ID_LENGTH, ID_PATTERN
from posting.web import idempotency, request_body
from posting.web.errors import (
    MALFORMED_ID,
    MEDIA_TYPE,
    REPEATED,
    UNKNOWN,
    Errors,
    InvalidInput,
    body_errors,
    input_error,
    parameter_errors,
)
from posting.web.etags import Condition, to_json
from posting.web.limits import Counts, Hits, Limit, require_space
from posting.web.schemas import Listed, max_file_bytes

# The body of a response as JSON: an object, a list of objects, or None for no body.
Body = dict[str, Any] | list[dict[str, Any]] | None
# What a view returns: a response, or a body and perhaps headers, from which the endpoint makes one.
Reply = Response | Body | tuple[Body, Mapping[str, str]]
View = TypeVar("View", bound=Callable[..., Reply])
Declarations = ParamSpec("Declarations")
# A class has the same text wherever it is raised; a function of the settings returns the error of
# one endpoint, or None if the settings exclude it.
DocumentedError = type[HTTPException] | Callable[[Mapping[str, Any]], HTTPException | None]

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
MAX_ACCESS_AGE = 0.1  # seconds after which access is checked again, when a body took so long
_is_id = re.compile(ID_PATTERN.removesuffix("$") + r"\Z").match


class IdConverter(BaseConverter):
    """A path segment that should be an id; a malformed id gets 422, as other input does.

    `<nanoid("me"):id>` leaves the segment `me` to another route. Files such as `feed.json` are left
    to other routes, too.
    """

    def __init__(self, url_map: Map, exclude: str = "") -> None:
        super().__init__(url_map)
        self.regex = rf"(?!{exclude}$|[a-z]+\.(?:atom|json)$)[^/]+"


@dataclass(frozen=True)
class Access:
    """A rule on who may send a request: `check` raises an error if this client may not.

    If only members may read, the rule `for_members` takes the place of this one. If a rule has
    `find_reader`, all clients that it admits get the same response. The response cache sends this
    response if `find_reader` returns the id of a user for the request.
    """

    check: Callable[[], None]
    security: Sequence[Mapping[str, Any]]  # as OpenAPI has it
    errors: Sequence[type[HTTPException]] = ()
    write_errors: Sequence[type[HTTPException]] = ()  # where the method is not safe
    for_members: "Access | None" = None
    find_reader: Callable[[Request], str | None] | None = None

    @property
    def allows_anonymous(self) -> bool:
        """Return whether a request needs no session or token, which OpenAPI writes as `{}`."""
        return not self.security or {} in self.security


PUBLIC = Access(lambda: None, security=[])  # even if only members may read


class Cache(Enum):
    """The `Cache-Control` of successful reads, unless the view sets another."""

    PRIVATE = "private, no-store"
    CLIENT = "private, no-cache"  # a client may keep its own copy, and asks whether it is current
    SHARED = "public, max-age=0, must-revalidate"  # the response is the same for all who may read


CLIENT, SHARED = Cache.CLIENT, Cache.SHARED


@dataclass(frozen=True, eq=False)
class Endpoint:
    """A view with what it declares.

    The view is called with the path's values and, if declared, `body`, `form`, `query` (as loaded
    by their schemas), and `condition` (the preconditions). It can take `prepared` as well: what
    `prepare` returns.

    A view that writes is a unit of work. The endpoint counts the limits, calls the view, stores the
    response of an idempotent request, and commits all of this, or nothing after an error.

    `prepare` does what takes long, such as hashing a password, before that begins. It is called
    with the other arguments, and first raises the errors of the view that it can find without a
    lock. With a limit of failures, it is also called with `hits`, in which it counts an attempt
    before it knows the result. If it writes, it does so in units of work of its own.

    Raise TypeError if the view cannot be called with what is declared.
    """

    name: str
    rule: str
    method: str
    view: Callable[..., Reply]
    _: KW_ONLY
    access: Access
    cache: Cache = Cache.PRIVATE
    limits: Sequence[Limit] = ()
    body: Schema | None = None
    form: Schema | None = None
    query: Schema | None = None
    any_query: bool = False  # whether unknown names in the query are ignored, without a schema
    conditional: bool = False  # whether the view checks preconditions; other writes refuse them
    prepare: Callable[..., Any] | None = None
    idempotent: bool = False
    streams: bool = (
        False  # whether a read has no ETag, because its response is made while it is sent
    )
    status: int = 200
    returns: Schema | Mapping[str, Any] | None = None  # a marshmallow or JSON schema; None: no body
    media_type: str = "application/json"
    error_type: str = MEDIA_TYPE  # of responses to errors
    headers: Sequence[str] = ()
    description: str = ""  # of the response; the status's phrase if empty
    errors: Sequence[DocumentedError] = ()
    documented: bool = True

    def __post_init__(self) -> None:
        declared = set(re.findall(r"(\w+)>", self.rule))
        declared |= {name for name in ("body", "form", "query") if getattr(self, name)}
        declared |= {"condition"} if self.conditional else set()
        if self.prepare:
            if not self.writes:
                raise TypeError(f"{self.name} is a {self.method}, for which nothing is prepared")
            hits = {"hits"} if self._counts_failures else set()
            _require_parameters(f"`prepare` of {self.name}", self.prepare, declared | hits)
            declared |= {"prepared"} if self._takes_prepared else set()
        _require_parameters(self.name, self.view, declared)
        if self.limits and not self.writes:
            raise TypeError(f"{self.name} has a limit, but a {self.method} commits nothing")
        if self._counts_failures and not self.prepare:
            raise TypeError(f"{self.name} has a limit of failures, but nothing counts them")
        if self._refunded and any(limit.counts is Counts.SUCCESSES for limit in self.limits):
            raise TypeError(f"{self.name} would refund hits that are rolled back")
        if self.idempotent and self.access.allows_anonymous:
            raise TypeError(f"{self.name} is idempotent, but keys belong to users")
        if self.cache is SHARED and self.method != "GET":
            raise TypeError(f"{self.name} has a shared cache, but no {self.method} is cached")
        if self.cache is SHARED and not (self.access.allows_anonymous or self.access.find_reader):
            raise TypeError(f"{self.name} has a shared cache, but is for one user")

    @property
    def current_access(self) -> Access:
        """The access rule that the settings of the site require now."""
        for_members = self.access.for_members
        if for_members is None or everyone_may_read(current_app.config):
            return self.access
        return for_members

    @property
    def cache_control(self) -> str:
        """The `Cache-Control` of successful reads: what only members may read is private."""
        return (self.cache if self.current_access.allows_anonymous else Cache.PRIVATE).value

    @property
    def writes(self) -> bool:
        return self.method not in SAFE_METHODS

    def __call__(self, **path: str) -> Response:
        """Check the request in the order in which its errors are documented, and call the view."""
        started = monotonic()
        self.current_access.check()
        inputs = self._read_inputs(path)
        if (self.body or self.form) and monotonic() - started > MAX_ACCESS_AGE:
            self.current_access.check()  # a session may have ended while the body arrived
        if not self.writes:
            return self._to_response(self.view(**path, **inputs))
        if not self.idempotent or (sent := idempotency.find_sent_key(path, inputs)) is None:
            return self._write({**path, **inputs})
        if stored := idempotency.replay(sent, self.status):
            return stored
        try:
            return self._write({**path, **inputs}, sent)
        except (sa.exc.IntegrityError, HTTPException):
            # A faster request with this key may have created what caused the error.
            if stored := idempotency.replay(sent, self.status):
                return stored
            raise

    def _write(
        self, arguments: dict[str, Any], sent: idempotency.SentKey | None = None
    ) -> Response:
        """Call `prepare`, and then the view in a unit of work with its hits and its sent key."""
        hits = Hits()
        if attempts := self._subjects(Counts.ATTEMPTS):
            hits.count_before(*attempts)
        try:
            arguments |= self._prepare(arguments, hits)
            with unit_of_work():
                hits.count(*self._subjects(Counts.SUCCESSES))
                response = self._to_response(self.view(**arguments))
                if sent:
                    idempotency.store_response(sent, response)
        except self._refunded:
            with unit_of_work():
                hits.refund()
            raise
        return hits.add_headers(response)

    def _prepare(self, arguments: Mapping[str, Any], hits: Hits) -> dict[str, Any]:
        """Call `prepare`, and return the further arguments of the view."""
        if self.prepare is None:
            return {}
        require_space(*self._subjects(Counts.SUCCESSES))  # nothing is prepared beyond a limit
        of_failures = {"hits": hits} if self._counts_failures else {}
        prepared = self.prepare(**arguments, **of_failures)
        if self._counts_failures and hits.are_counted:
            raise RuntimeError(f"{self.name} did not refund the hits of a success")
        return {"prepared": prepared} if self._takes_prepared else {}

    @cached_property
    def _takes_prepared(self) -> bool:
        return "prepared" in inspect.signature(self.view).parameters

    def _subjects(self, counts: Counts) -> list[tuple[Limit, str]]:
        """Return the limits that count this kind of requests, with their subjects."""
        return [(limit, limit.subject()) for limit in self.limits if limit.counts is counts]

    @cached_property
    def _counts_failures(self) -> bool:
        return any(limit.counts is Counts.FAILURES for limit in self.limits)

    @cached_property
    def _refunded(self) -> tuple[type[Exception], ...]:
        """The errors after which attempts do not count."""
        return tuple(error for limit in self.limits for error in limit.refunded)

    def _to_response(self, reply: Reply) -> Response:
        body, headers = reply if isinstance(reply, tuple) else (reply, {})
        if isinstance(body, Response):
            return body
        if (body is None) != (self.returns is None):
            raise RuntimeError(f"{self.name} returned another body than it declares")
        if body is None:
            response = Response(status=self.status)
            del response.headers["Content-Type"]
        else:
            response = Response(to_json(body), self.status, content_type="application/json")
        response.headers.extend(headers)
        return response

    def _read_inputs(self, path: Mapping[str, str]) -> dict[str, Any]:
        """Return the inputs that the view declares.

        Raise 413, 415 and 400 for the body, then one 422 that lists everything invalid. Last, raise
        412 for preconditions that the view does not check.
        """
        errors: Errors = []
        if not self.query and self.known_names is None and request.query_string:
            names = request.args or [""]  # "?&" has no name, but is another URL to caches
            errors += [input_error(UNKNOWN, parameter=name) for name in names]
        if not _is_id(path.get("id", "a" * ID_LENGTH)):
            errors.append(input_error(MALFORMED_ID, parameter="id"))
        inputs: dict[str, Any] = {}
        if self.body:
            inputs["body"] = _load(self.body, request_body.read_json(), errors)
        if self.form:
            inputs["form"] = _load(
                self.form, request_body.read_form(max_file_bytes(self.form)), errors
            )
        if self.query:
            inputs["query"] = (
                _load(self.query, request.args, errors, parameter_errors)
                if request.args or self._default_query is None
                else dict(self._default_query)
            )
        if self.idempotent:
            errors += idempotency.key_errors()
        if errors:
            raise InvalidInput(errors)
        if self.conditional:
            inputs["condition"] = Condition.of_request()
        elif self.writes:
            Condition.of_request().refuse()
        return inputs

    @cached_property
    def known_names(self) -> frozenset[str] | None:
        """The names in a query that count, or None if others are refused."""
        if self.query:
            return frozenset(self.query.fields) if self.query.unknown == EXCLUDE else None
        return frozenset() if self.any_query else None

    @cached_property
    def _default_query(self) -> dict[str, Any] | None:
        """The query of a request that sends none, loaded once; None if that is not valid."""
        if self.query is None or self.query.validate({}):
            return None
        return dict(self.query.load({}))


def current_endpoint() -> Endpoint | None:
    """Return the endpoint of the request, or None if no route matches."""
    view = current_app.view_functions.get(request.endpoint or "")
    return view if isinstance(view, Endpoint) else None


def _require_parameters(name: str, function: Callable[..., Any], declared: set[str]) -> None:
    """Raise TypeError unless a function can be called with what is declared."""
    signature = inspect.signature(function)
    try:
        signature.bind(**dict.fromkeys(declared))
    except TypeError:
        taken = sorted(signature.parameters)
        raise TypeError(f"{name} takes {taken} but declares {sorted(declared)}") from None


def _load(
    schema: Schema,
    data: Any,
    errors: Errors,
    describe: Callable[[Any], Iterable[dict[str, str]]] = body_errors,
) -> Any:
    """Return what a schema loads; append its errors to `errors`.

    A form or query arrives as a multi-dict. In it, no field may be repeated, except one of type
    `Listed`, whose values are joined by commas.
    """
    try:
        if not isinstance(data, MultiDict):
            return schema.load(data)
        listed = {
            name: ",".join(values)
            for name, values in data.lists()
            if isinstance(schema.fields.get(name), Listed)
        }
        repeated = [name for name, values in data.lists() if len(values) > 1 and name not in listed]
        if schema.unknown == EXCLUDE:
            repeated = [name for name in repeated if name in schema.fields]
        if repeated:
            raise ValidationError({name: [REPEATED] for name in repeated})
        return schema.load(data.to_dict() | listed)
    except ValidationError as error:
        errors += describe(error.normalized_messages())


def _takes_declarations(
    _of: Callable[Concatenate[str, str, str, Callable[..., Reply], Declarations], Endpoint],
) -> Callable[
    [Callable[..., Any]],
    Callable[Concatenate["Blueprint", str, Declarations], Callable[[View], View]],
]:
    """Tell mypy that a method takes a rule and the declarations of an endpoint."""
    return lambda method: method


class Blueprint(flask.Blueprint):
    """A blueprint whose routes are endpoints; `description` documents them as a group."""

    def __init__(self, name: str, import_name: str, *, description: str) -> None:
        super().__init__(name, import_name)
        self.description = description

    # Those of Flask take any options.

    @_takes_declarations(Endpoint)
    def get(self, rule: str, **declarations: Any) -> Any:  # type: ignore[override]
        return self._register("GET", rule, declarations)

    @_takes_declarations(Endpoint)
    def post(self, rule: str, **declarations: Any) -> Any:  # type: ignore[override]
        return self._register("POST", rule, declarations)

    @_takes_declarations(Endpoint)
    def put(self, rule: str, **declarations: Any) -> Any:  # type: ignore[override]
        return self._register("PUT", rule, declarations)

    @_takes_declarations(Endpoint)
    def patch(self, rule: str, **declarations: Any) -> Any:  # type: ignore[override]
        return self._register("PATCH", rule, declarations)

    @_takes_declarations(Endpoint)
    def delete(self, rule: str, **declarations: Any) -> Any:  # type: ignore[override]
        return self._register("DELETE", rule, declarations)

    def _register(
        self, method: str, rule: str, declarations: Mapping[str, Any]
    ) -> Callable[[View], View]:
        """Return the decorator that registers a view. Raise TypeError for wrong declarations."""

        def register(view: View) -> View:
            endpoint = Endpoint(view.__name__, rule, method, view, **declarations)
            self.add_url_rule(rule, endpoint.name, endpoint, methods=[method])
            return view

        return register

    def add_url_rule(
        self,
        rule: str,
        endpoint: str | None = None,
        view_func: Any = None,
        provide_automatic_options: bool | None = None,
        **options: Any,
    ) -> None:
        """Refuse a view that another method of Flask registers, such as `route`."""
        if not isinstance(view_func, Endpoint):
            raise TypeError(f"{rule} is registered without an access rule")
        options["provide_automatic_options"] = provide_automatic_options
        super().add_url_rule(rule, endpoint, view_func, **options)
