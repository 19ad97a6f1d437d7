"""Protection of browsers: headers of every response, and requests of pages of other origins.

The latter are about which of these pages may write (CSRF), and which may read (CORS).

Browsers say where a write comes from, in Sec-Fetch-Site or at least in Origin. Other clients need
no protection. The rules are the same as in `http.CrossOriginProtection` of Go 1.25. A write with a
token needs no protection where the token counts and not the cookie: no browser adds a token by
itself.

Pages of trusted origins may read all responses, with their cookies. While everyone may read, pages
of all origins may read what is public, and responses to requests with a token. Browsers then send
no cookies, or hide the response. The headers are those of the Fetch standard
(https://fetch.spec.whatwg.org/#http-cors-protocol). They are added outside of the response cache,
so that one origin's headers never reach another.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

from flask import Flask, Response, current_app, g, request
from werkzeug.exceptions import Forbidden

from posting.config import everyone_may_read, is_https
from posting.web import etags, idempotency
from posting.web.endpoint import SAFE_METHODS, Cache, current_endpoint
from posting.web.errors import Coded
from posting.web.hosts import request_host
from posting.web.logs import REQUEST_ID

SECURITY = (
    ("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'"),
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
)
HTTPS = ("Strict-Transport-Security", "max-age=31536000")
EXTENSION = "posting.security"  # the headers of every response
EXPOSED = ", ".join(
    (
        *("ETag", "Link", "Location", "RateLimit", "RateLimit-Policy", "Retry-After"),
        *(REQUEST_ID, idempotency.REPLAYED),
    )
)
EXPOSE = ("Access-Control-Expose-Headers", EXPOSED)
# Also without an `Origin`, since a cache keeps one response for all origins.
ANY_ORIGIN = (("Access-Control-Allow-Origin", "*"), EXPOSE)
PREFLIGHT = (
    ("Access-Control-Allow-Methods", "GET, POST, PUT, PATCH, DELETE"),
    (
        "Access-Control-Allow-Headers",
        f"Authorization, Content-Type, If-Match, If-None-Match, {idempotency.NAME}, {REQUEST_ID}",
    ),
    ("Access-Control-Max-Age", "7200"),  # seconds, the most that Chromium accepts
)

Environ = dict[str, Any]


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


class CrossSiteWrite(Coded, Forbidden):
    error_code = "cross_origin"
    description = "A page of another site may not send writes."


def refuse_cross_site_writes() -> None:
    """Raise 403 for a write from an origin that is neither this service's own nor trusted."""
    if request.method in SAFE_METHODS:
        return
    site = request.headers.get("Sec-Fetch-Site", "")
    origin = request.headers.get("Origin", "")
    if site in {"same-origin", "none"} or origin in current_app.config["TRUSTED_ORIGINS"]:
        return
    if public_url := current_app.config["PUBLIC_URL"]:  # a proxy may pass on another Host
        url = urlsplit(public_url)
        if origin == f"{url.scheme}://{url.netloc}":
            return
    if not site and (not origin or _host(origin) == request_host()):
        return
    if everyone_may_read(current_app.config) and _is_by_token():
        return
    raise CrossSiteWrite


def _is_by_token() -> bool:
    """Return whether the request has a token, and the endpoint ignores its cookie for that."""
    endpoint = current_endpoint()
    takes_token = endpoint is not None and {"token": []} in endpoint.current_access.security
    return takes_token and has_bearer_token(request.environ)


def _host(origin: str) -> str | None:
    try:
        return urlsplit(origin).netloc or None
    except ValueError:
        return None


def has_bearer_token(environ: Mapping[str, Any]) -> bool:
    """Return whether a request has a bearer token, valid or not."""
    scheme: str = environ.get("HTTP_AUTHORIZATION", "").partition(" ")[0]
    return scheme.lower() == "bearer"


class Cors:
    """WSGI middleware that says which pages of other origins may read a response."""

    def __init__(self, app: Flask) -> None:
        self._app, self._origins = app.wsgi_app, app.config["TRUSTED_ORIGINS"]
        self._config = app.config

    def __call__(self, environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        added = self._added_headers(environ)
        is_open = everyone_may_read(self._config)
        # The page of another origin may read why its write was refused: this error has no data.
        is_added = any(name == ANY_ORIGIN[0][0] for name, _ in added)
        if_refused = ANY_ORIGIN if is_open and not is_added else ()

        def start(status: str, fields: list[tuple[str, str]], *exc_info: Any) -> Any:
            last = if_refused if status.startswith("403") else ()
            return start_response(status, [*fields, *added, *last], *exc_info)

        return self._app(environ, start)

    def _added_headers(self, environ: Environ) -> list[tuple[str, str]]:
        method = environ["REQUEST_METHOD"]
        added = [("Vary", "Origin")] if self._origins else []
        if (origin := environ.get("HTTP_ORIGIN", "")) in self._origins:
            added += [
                ("Access-Control-Allow-Origin", origin),
                ("Access-Control-Allow-Credentials", "true"),
                EXPOSE,
            ]
        elif everyone_may_read(self._config) and (
            method in SAFE_METHODS or has_bearer_token(environ)
        ):
            added += ANY_ORIGIN
        else:
            return added
        return [*added, *PREFLIGHT] if method == "OPTIONS" else added


def init_app(app: Flask) -> None:
    """Choose the headers of every response, and add the middleware for other origins."""
    app.extensions[EXTENSION] = (*SECURITY, HTTPS) if is_https(app.config) else SECURITY
    app.wsgi_app = Cors(app)  # type: ignore[method-assign]  # as Flask documents
