"""Cross-origin reads and writes by pages of trusted origins (CORS).

The headers are those of the Fetch standard (https://fetch.spec.whatwg.org/#http-cors-protocol).
They are added outside of the response cache, so that one origin's headers never reach another.
"""

from collections.abc import Callable, Iterable
from typing import Any

from flask import Flask

from posting.web import headers, idempotency

EXPOSED = ", ".join(
    (
        *("ETag", "Link", "Location", "RateLimit", "RateLimit-Policy", "Retry-After"),
        *(headers.REQUEST_ID, idempotency.REPLAYED),
    )
)
PREFLIGHT = (
    ("Access-Control-Allow-Methods", "GET, POST, PATCH, DELETE"),
    (
        "Access-Control-Allow-Headers",
        "Authorization, Content-Type, If-Match, If-None-Match, "
        f"{idempotency.NAME}, {headers.REQUEST_ID}",
    ),
    ("Access-Control-Max-Age", "7200"),  # seconds, the most that Chromium accepts
)

Environ = dict[str, Any]


class Cors:
    """WSGI middleware that lets pages of some origins read responses, with their cookies."""

    def __init__(self, app: Flask) -> None:
        self._app, self._origins = app.wsgi_app, app.config["TRUSTED_ORIGINS"]

    def __call__(self, environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        added = [("Vary", "Origin")]
        if (origin := environ.get("HTTP_ORIGIN", "")) in self._origins:
            added += [
                ("Access-Control-Allow-Origin", origin),
                ("Access-Control-Allow-Credentials", "true"),
                ("Access-Control-Expose-Headers", EXPOSED),
            ]
            if environ["REQUEST_METHOD"] == "OPTIONS":
                added += PREFLIGHT

        def start(status: str, fields: list[tuple[str, str]], *exc_info: Any) -> Any:
            return start_response(status, [*fields, *added], *exc_info)

        return self._app(environ, start)


def init_app(app: Flask) -> None:
    """Put the middleware before the app, if an origin is trusted."""
    if app.config["TRUSTED_ORIGINS"]:
        app.wsgi_app = Cors(app)  # type: ignore[method-assign]  # as Flask documents
