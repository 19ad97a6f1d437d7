"""Reading by pages of other origins (CORS).

Pages of trusted origins may read all responses, with their cookies. While everyone may read, pages
of all origins may read what is public, and responses to requests with a token. Browsers then send
no cookies, or hide the response.

The headers are those of the Fetch standard (https://fetch.spec.whatwg.org/#http-cors-protocol).
They are added outside of the response cache, so that one origin's headers never reach another.
"""

from collections.abc import Callable, Iterable
from typing import Any

from flask import Flask

from posting.config import everyone_may_read
from posting.web import headers, idempotency
from posting.web.endpoint import SAFE_METHODS

EXPOSED = ", ".join(
    (
        *("ETag", "Link", "Location", "RateLimit", "RateLimit-Policy", "Retry-After"),
        *(headers.REQUEST_ID, idempotency.REPLAYED),
    )
)
EXPOSE = ("Access-Control-Expose-Headers", EXPOSED)
# Also without an `Origin`, since a cache keeps one response for all origins.
ANY_ORIGIN = (("Access-Control-Allow-Origin", "*"), EXPOSE)
PREFLIGHT = (
    ("Access-Control-Allow-Methods", "GET, POST, PUT, PATCH, DELETE"),
    (
        "Access-Control-Allow-Headers",
        "Authorization, Content-Type, If-Match, If-None-Match, "
        f"{idempotency.NAME}, {headers.REQUEST_ID}",
    ),
    ("Access-Control-Max-Age", "7200"),  # seconds, the most that Chromium accepts
)

Environ = dict[str, Any]


class Cors:
    """WSGI middleware that says which pages of other origins may read a response."""

    def __init__(self, app: Flask) -> None:
        self._app, self._origins = app.wsgi_app, app.config["TRUSTED_ORIGINS"]
        self._everyone_may_read = everyone_may_read(app.config)
        # The page of another origin may read why its write was refused: this error has no data.
        self._refusal = ANY_ORIGIN if self._everyone_may_read else ()

    def __call__(self, environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        added = self._added_headers(environ)
        if_refused = () if any(name == ANY_ORIGIN[0][0] for name, _ in added) else self._refusal

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
        elif self._everyone_may_read and (
            method in SAFE_METHODS or headers.has_bearer_token(environ)
        ):
            added += ANY_ORIGIN
        else:
            return added
        return [*added, *PREFLIGHT] if method == "OPTIONS" else added


def init_app(app: Flask) -> None:
    """Put the middleware before the app, if pages of other origins may read anything."""
    if app.config["TRUSTED_ORIGINS"] or everyone_may_read(app.config):
        app.wsgi_app = Cors(app)  # type: ignore[method-assign]  # as Flask documents
