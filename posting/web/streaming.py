"""Responses that are made while they are sent."""

import weakref
from collections.abc import Callable, Generator, Iterator
from io import RawIOBase
from itertools import chain
from typing import Any

from flask import Flask, Response, current_app


class Sink(RawIOBase):
    """A file that cannot be sought. It keeps what is written until it is taken."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        part = bytes(data)
        self._parts.append(part)
        return len(part)

    def take(self) -> bytes:
        """Return what was written since the last call."""
        taken = b"".join(self._parts)
        self._parts.clear()
        return taken


def stream(
    parts: Generator[bytes, None, None], *, mimetype: str, name: str, release: Callable[[], object]
) -> Response:
    """Return a response with a file of this name, whose parts are made while it is sent.

    The first part is made now, so that its errors are those of the view. Call `release` after an
    error, when the response has ended, or when the client has gone.
    """
    try:
        first = next(parts, b"")
    except BaseException:
        release()
        raise
    app: Flask = current_app._get_current_object()  # type: ignore[attr-defined]  # for later
    response = Response(chain([first], _in_app_context(app, parts)), mimetype=mimetype)
    response.headers["Content-Disposition"] = f'attachment; filename="{name}"'

    def end() -> None:
        parts.close()
        release()

    # A test may forget to close its response.
    response.call_on_close(weakref.finalize(response, end))
    return response


def _in_app_context(app: Flask, parts: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the parts that are not empty, each of which is made in an app context of its own."""
    while True:
        with app.app_context():
            part = next(parts, None)
        if part is None:
            return
        if part:
            yield part
