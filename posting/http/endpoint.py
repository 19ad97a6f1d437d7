"""Endpoints: what a view declares, and the order in which a request is checked.

A view is registered with all of its declarations in one call, such as::

    @posts.post("/posts", access=SIGNED_IN, limit=LIMIT, body=PostInput(), idempotent=True,
                status=201, returns=Post(), headers=["ETag", "Location"])
    def create_post(body): ...

The checks of a request and the OpenAPI document are made from the same `Endpoint`.
"""

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from time import monotonic
from typing import Any

import flask
from flask import Response, g, request
from marshmallow import EXCLUDE, Schema, ValidationError
from werkzeug.datastructures import MultiDict
from werkzeug.exceptions import HTTPException
from werkzeug.routing import BaseConverter, Map

from posting.db.engine import SAFE_METHODS, is_in_transaction
from posting.db.types import ID_LENGTH, ID_PATTERN
from posting.http import idempotency, rate_limits, request_body
from posting.http.errors import Errors, InvalidInput, body_errors, input_error, parameter_errors
from posting.http.rate_limits import Counts, Limit
from posting.http.response_body import to_json
from posting.schemas.messages import MALFORMED_ID, REPEATED, UNKNOWN

# A reply is a response, or a body and perhaps headers, of which the endpoint makes a response.
Reply = Any
# A class has the same text wherever it is raised; a function of the settings returns the error of
# one endpoint, or None if the settings exclude it.
DocumentedError = type[HTTPException] | Callable[[Mapping[str, Any]], HTTPException | None]

MAX_ACCESS_AGE = 0.1  # seconds after which access is checked again, when a body took so long
_is_id = re.compile(ID_PATTERN.removesuffix("$") + r"\Z").match


class IdConverter(BaseConverter):
    """A path segment that should be an id; a malformed one is 422, as for other input.

    `<nanoid("me"):id>` leaves the segment `me` to another route.
    """

    def __init__(self, url_map: Map, exclude: str = "") -> None:
        super().__init__(url_map)
        self.regex = rf"(?!{exclude}$)[^/]+"


@dataclass(frozen=True)
class Access:
    """A rule on who may send a request: `check` raises an error if this client may not."""

    check: Callable[[], None]
    security: Sequence[Mapping[str, Any]]  # as OpenAPI has it
    errors: Sequence[type[HTTPException]] = ()


PUBLIC = Access(lambda: None, security=[])


@dataclass(frozen=True, eq=False, kw_only=True)
class Endpoint:
    """A view with what it declares.

    The view is called with the path's values and, if declared, `body`, `form`, `query` (as loaded
    by their schemas) and `if_match` (the header or None). It commits what it writes.

    Raise TypeError if the view's parameters are not those.
    """

    name: str
    rule: str
    method: str
    view: Callable[..., Reply]
    access: Access
    limit: Limit | None = None
    body: Schema | None = None
    form: Schema | None = None
    query: Schema | None = None
    if_match: bool = False
    idempotent: bool = False
    status: int = 200
    returns: Schema | Mapping[str, Any] | None = None  # a marshmallow or JSON schema; None: no body
    media_type: str = "application/json"
    headers: Sequence[str] = ()
    description: str = ""  # of the response; the status's phrase if empty
    errors: Sequence[DocumentedError] = ()
    documented: bool = True

    def __post_init__(self) -> None:
        declared = set(re.findall(r"(\w+)>", self.rule))
        declared |= {name for name in ("body", "form", "query", "if_match") if getattr(self, name)}
        taken = set(inspect.signature(self.view).parameters)
        if declared != taken:
            raise TypeError(f"{self.name} takes {sorted(taken)} but declares {sorted(declared)}")
        if self.limit and self.method in SAFE_METHODS:
            raise TypeError(f"{self.name} has a limit, but a {self.method} commits nothing")
        if self.idempotent and self.access is PUBLIC:
            raise TypeError(f"{self.name} is idempotent, but keys belong to users")

    def __call__(self, **path: str) -> Response:
        """Check the request in the order in which its errors are documented, and call the view."""
        started = monotonic()
        self.access.check()
        key = None
        if self.idempotent:
            g.idempotency_key, g.is_response_saved = None, False
            key = request.headers.get(idempotency.NAME)
        inputs = self._read_inputs(path, key)
        if (self.body or self.form) and monotonic() - started > MAX_ACCESS_AGE:
            self.access.check()  # a session may have ended while the body arrived
        if key is None:
            return self._call_view(path, inputs)
        return idempotency.respond_once(
            key, path, inputs.values(), self.status, lambda: self._call_view(path, inputs)
        )

    def _call_view(self, path: Mapping[str, str], inputs: Mapping[str, Any]) -> Response:
        if self.limit and self.limit.counts is not Counts.FAILURES:
            g.hits = rate_limits.hit((self.limit, self.limit.subject()))
            if self.limit.counts is Counts.ATTEMPTS:
                rate_limits.commit_and_announce(g.hits)
        reply = self.view(**path, **inputs)
        if self.method not in SAFE_METHODS and is_in_transaction():
            raise RuntimeError(f"{self.name} did not commit its transaction")
        if self.idempotent and not g.is_response_saved:
            raise RuntimeError(f"{self.name} did not call idempotency.save")
        if self.limit and self.limit.counts is Counts.SUCCESSES:
            rate_limits.announce(g.hits)
        return self._to_response(reply)

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

    def _read_inputs(self, path: Mapping[str, str], key: str | None) -> dict[str, Any]:
        """Return the inputs that the view declares.

        Raise 413, 415 and 400 for the body, then one 422 that lists everything invalid.
        """
        errors: Errors = []
        if not self.query and self.documented and request.query_string:
            names = request.args or [""]  # "?&" has no name, but is another URL to caches
            errors += [input_error(UNKNOWN, parameter=name) for name in names]
        if not _is_id(path.get("id", "a" * ID_LENGTH)):
            errors.append(input_error(MALFORMED_ID, parameter="id"))
        inputs: dict[str, Any] = {}
        if self.body:
            inputs["body"] = _load(self.body, request_body.read_json(), errors)
        if self.form:
            inputs["form"] = _load(self.form, request_body.read_form(), errors)
        if self.query:
            inputs["query"] = (
                _load(self.query, request.args, errors, parameter_errors)
                if request.args or self._default_query is None
                else dict(self._default_query)
            )
        if key is not None:
            errors += idempotency.key_errors(key)
        if errors:
            raise InvalidInput(errors)
        if self.if_match:
            inputs["if_match"] = request.headers.get("If-Match")
        return inputs

    @cached_property
    def _default_query(self) -> dict[str, Any] | None:
        """The query of a request that sends none, loaded once; None if that is not valid."""
        if self.query is None or self.query.validate({}):
            return None
        return dict(self.query.load({}))


def _load(
    schema: Schema,
    data: Any,
    errors: Errors,
    describe: Callable[[Any], Iterable[dict[str, str]]] = body_errors,
) -> Any:
    """Return what a schema loads; append its errors to `errors`.

    A form or query arrives as a multi-dict, in which no name that counts may be repeated.
    """
    try:
        if not isinstance(data, MultiDict):
            return schema.load(data)
        repeated = [name for name, values in data.lists() if len(values) > 1]
        if schema.unknown == EXCLUDE:
            repeated = [name for name in repeated if name in schema.fields]
        if repeated:
            raise ValidationError({name: [REPEATED] for name in repeated})
        return schema.load(data.to_dict())
    except ValidationError as error:
        errors += describe(error.normalized_messages())


class Blueprint(flask.Blueprint):
    """A blueprint whose routes are endpoints; `description` documents them as a group."""

    def __init__(self, name: str, import_name: str, *, description: str) -> None:
        super().__init__(name, import_name)
        self.description = description

    def add_url_rule(
        self,
        rule: str,
        endpoint: str | None = None,
        view_func: Any = None,
        provide_automatic_options: bool | None = None,
        *,
        methods: Iterable[str] = ("GET",),
        **declarations: Any,
    ) -> None:
        """Register a view as an `Endpoint`. Raise TypeError for incomplete declarations."""
        [method] = methods
        name = endpoint or view_func.__name__
        if "access" not in declarations:
            raise TypeError(f"{name} declares no access rule")
        operation = Endpoint(name=name, rule=rule, method=method, view=view_func, **declarations)
        super().add_url_rule(rule, name, operation, provide_automatic_options, methods=[method])
