"""Headers of every response: request id, caching and browser security."""

import re
import secrets
from collections.abc import Mapping
from typing import Any

from flask import Flask, Response, current_app, g, request
from werkzeug.http import parse_date

from posting.config import is_https
from posting.web import etags
from posting.web.endpoint import Cache, current_endpoint

REQUEST_ID = "X-Request-ID"
SECURITY = (
    ("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'"),
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
)
HTTPS = ("Strict-Transport-Security", "max-age=31536000")
DATES = ("HTTP_IF_MODIFIED_SINCE", "HTTP_IF_UNMODIFIED_SINCE", "HTTP_IF_RANGE")
EXTENSION = "posting.headers"

_is_request_id = re.compile(r"[A-Za-z0-9._-]{1,64}").fullmatch


def init_app(app: Flask) -> None:
    app.extensions[EXTENSION] = (*SECURITY, HTTPS) if is_https(app.config) else SECURITY


def request_id_for(sent: str) -> str:
    """Return the id that a client sent if it is well-formed, and otherwise a new one."""
    return sent if _is_request_id(sent) else secrets.token_urlsafe(10)


def has_bearer_token(environ: Mapping[str, Any]) -> bool:
    """Return whether a request has a bearer token, valid or not."""
    scheme: str = environ.get("HTTP_AUTHORIZATION", "").partition(" ")[0]
    return scheme.lower() == "bearer"


def assign_request_id() -> None:
    g.request_id = request_id_for(request.environ.get("HTTP_X_REQUEST_ID", ""))


def drop_invalid_dates() -> None:
    """Ignore preconditions with dates that are too large for `datetime`, as RFC 9110 says.

    Werkzeug ignores other invalid dates itself.
    """
    for name in DATES:
        if sent := request.environ.get(name):
            try:
                parse_date(sent)
            except OverflowError:
                del request.environ[name]


def add_headers(response: Response) -> Response:
    """Add the ETag and the headers that every response has."""
    etags.add_etag(response)
    headers = response.headers
    present = {name.lower() for name, _ in headers}  # faster than to search for each
    for name, value in current_app.extensions[EXTENSION]:
        if name.lower() not in present:
            headers.add(name, value)
    headers.add(REQUEST_ID, g.request_id)
    if "cache-control" not in present:
        headers.add("Cache-Control", _cache_control(response))
    return response


def _cache_control(response: Response) -> str:
    """Return what the endpoint declares for successful reads. Other responses are private."""
    endpoint = current_endpoint()
    if endpoint and request.method in etags.READS and response.status_code in {200, 304}:
        return endpoint.cache_control
    return Cache.PRIVATE.value
