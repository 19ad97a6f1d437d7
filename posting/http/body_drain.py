"""Read what a view has left of a request's body, so that the connection stays usable.

A server that answers before the body has arrived must close the connection, and a client or a proxy
that is still sending may then see a reset instead of the answer (RFC 9112, section 9.6).
"""

from collections.abc import Callable, Iterable
from typing import Any

from flask import Flask

from posting.config import max_form_bytes

CHUNK = 2**16

Environ = dict[str, Any]
Application = Callable[[Environ, Callable[..., Any]], Iterable[bytes]]


class BodyDrain:
    """WSGI middleware that reads the rest of a body of up to `max_bytes` before it answers.

    A connection with a longer one is closed after the answer.
    """

    def __init__(self, app: Application, max_bytes: int) -> None:
        self._app, self._max_bytes = app, max_bytes

    def __call__(self, environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        if not _has_body(environ):
            return self._app(environ, start_response)

        def start(status: str, headers: list[tuple[str, str]], *exc_info: Any) -> Any:
            if not self._drain(environ):
                headers = [*headers, ("Connection", "close")]
                # gunicorn drops that header; deploy/gunicorn.conf.py offers this instead.
                if close := getattr(environ["wsgi.input"], "close_connection", None):
                    close()
            return start_response(status, headers, *exc_info)

        return self._app(environ, start)

    def _drain(self, environ: Environ) -> bool:
        """Read the rest of the body, and return whether that was all of it."""
        left, body = self._max_bytes, environ["wsgi.input"]
        if int(environ.get("CONTENT_LENGTH") or 0) > left:
            return False
        if getattr(body, "failed", False):  # gunicorn's, after a timeout: do not wait once more
            return False
        try:
            while left > 0 and (chunk := body.read(min(left, CHUNK))):
                left -= len(chunk)
        except Exception:  # the server's own, for malformed chunks or a broken connection
            return False
        return left > 0


def _has_body(environ: Environ) -> bool:
    """Return whether the request has a body whose end the server detects."""
    return bool(
        ("CONTENT_LENGTH" in environ or "HTTP_TRANSFER_ENCODING" in environ)
        and environ.get("wsgi.input_terminated")
    )


def init_app(app: Flask) -> None:
    """Add the middleware. Call this last, so that it is around all others."""
    largest = max(app.config["MAX_JSON_BYTES"], max_form_bytes(app.config))
    drain = BodyDrain(app.wsgi_app, largest)
    app.wsgi_app = drain  # type: ignore[method-assign]  # as Flask says to add middleware
