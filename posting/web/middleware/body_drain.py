"""Read what a view has left of the request body, so that the connection stays usable.

A server that responds before the body has arrived must close the connection, and a client or proxy
that is still sending may then see a reset instead of the response (RFC 9112, section 9.6).
"""

from collections.abc import Callable, Iterable
from typing import Any

from flask import Flask

from posting.config import max_form_bytes

CHUNK = 2**16

Environ = dict[str, Any]
Application = Callable[[Environ, Callable[..., Any]], Iterable[bytes]]


class BodyDrain:
    """WSGI middleware that reads the rest of a body before it starts the response.

    If the rest is over `max_bytes` or does not arrive, the connection is closed afterwards.
    """

    def __init__(self, app: Application, max_bytes: int) -> None:
        self._app, self._max_bytes = app, max_bytes

    def __call__(self, environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        has_body = "CONTENT_LENGTH" in environ or "HTTP_TRANSFER_ENCODING" in environ
        if not has_body or not environ.get("wsgi.input_terminated"):
            return self._app(environ, start_response)

        def start(status: str, headers: list[tuple[str, str]], *exc_info: Any) -> Any:
            if not self._drain(environ):
                headers = [*headers, ("Connection", "close")]
                # gunicorn ignores that header; deploy/gunicorn.conf.py adds this function instead.
                if close := getattr(environ["wsgi.input"], "close_connection", None):
                    close()
            return start_response(status, headers, *exc_info)

        return self._app(environ, start)

    def _drain(self, environ: Environ) -> bool:
        """Read the rest of the body; return whether it ended."""
        left, body = self._max_bytes, environ["wsgi.input"]
        if int(environ.get("CONTENT_LENGTH") or 0) > left:
            return False
        if getattr(body, "failed", False):  # set by gunicorn after a timeout: do not wait again
            return False
        try:
            while left > 0 and (chunk := body.read(min(left, CHUNK))):
                left -= len(chunk)
        except Exception:  # the server's own, for malformed chunks or a broken connection
            return False
        return left > 0


def init_app(app: Flask) -> None:
    """Wrap the app and all other middleware; call this last."""
    max_bytes = max(app.config["MAX_JSON_BYTES"], max_form_bytes(app.config))
    drain = BodyDrain(app.wsgi_app, max_bytes)
    app.wsgi_app = drain  # type: ignore[method-assign]  # as Flask documents
