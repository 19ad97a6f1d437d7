"""Response cache for public GETs, on SQLite.

On a connection that never writes, `PRAGMA data_version` changes when any other connection of any
process commits (https://www.sqlite.org/pragma.html#pragma_data_version). A cached response is
served only while `data_version` is the same as when its request began, so no client sees data older
than the last commit, whichever worker made it.
"""

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from time import perf_counter
from typing import Any

from flask import Flask, Response, current_app, request
from pysqlite3 import dbapi2 as sqlite

from posting.db.engine import sqlite_file
from posting.http import access_log, etags, headers

MAX_BYTES = 8 * 2**20  # of all entries
MAX_BODY = MAX_BYTES // 4
OVERHEAD = 4096  # bytes per entry besides its body, estimated high
EXTENSION = LOOKUP = "posting.response_cache"

Environ = dict[str, Any]
Key = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CachedResponse:
    """A response, complete except for its request id."""

    body: bytes
    headers: list[tuple[str, str]]
    etag: str
    route: str


class CommitWatch:
    """Detects commits of other connections to an SQLite file, by a number that they change."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._process = 0
        self._connection: Any = None

    def version(self) -> int | None:
        """Return the number, or None if the file cannot be read. This is not thread-safe."""
        try:
            if self._process != os.getpid():  # a connection must not cross a fork
                self._connection = sqlite.connect(self._file, check_same_thread=False)
                self._process = os.getpid()
            [(version,)] = self._connection.execute("PRAGMA data_version").fetchall()
        except sqlite.Error:
            return None
        return int(version)


class ResponseCache:
    """WSGI middleware that replays cached responses, and else passes the request on to the app."""

    def __init__(self, app: Flask, watch: CommitWatch) -> None:
        self._app, self._config = app.wsgi_app, app.config
        self._watch = watch
        self._lock = Lock()
        self._version: int | None = None
        self._entries: dict[Key, CachedResponse] = {}
        self._bytes = 0

    def __call__(self, environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        if environ["REQUEST_METHOD"] != "GET":
            return self._app(environ, start_response)
        started = perf_counter()
        # A public response depends on nothing but the URL, which it repeats in absolute URLs.
        key = (
            environ["wsgi.url_scheme"],
            environ.get("HTTP_HOST", ""),
            environ["SCRIPT_NAME"],
            environ["PATH_INFO"],
            environ["QUERY_STRING"],
        )
        with self._lock:
            version = self._watch.version()
            if version is None or version != self._version:
                self._entries.clear()
                self._bytes, self._version = 0, version
            cached = self._entries.get(key)
        if cached is None:
            environ[LOOKUP] = key, version
            return self._app(environ, start_response)
        return [self._replay(cached, environ, start_response, started)]

    def _replay(
        self,
        cached: CachedResponse,
        environ: Environ,
        start_response: Callable[..., Any],
        started: float,
    ) -> bytes:
        request_id = headers.request_id_for(environ.get("HTTP_X_REQUEST_ID", ""))
        if_none_match = environ.get("HTTP_IF_NONE_MATCH")
        if if_none_match and etags.etag_matches(if_none_match, cached.etag):
            status, body = "304 NOT MODIFIED", b""
            fields = [pair for pair in cached.headers if pair[0] not in etags.CONTENT_HEADERS]
        else:
            status, body, fields = "200 OK", cached.body, cached.headers
        seconds = perf_counter() - started
        completed = access_log.RequestRecord(
            "GET", cached.route, int(status[:3]), seconds, request_id
        )
        access_log.emit(self._config, completed)
        start_response(status, [*fields, (headers.REQUEST_ID, request_id)])
        return body

    def store(self, response: Response) -> None:
        """Store a response that is public and short, unless there was a commit since its lookup."""
        key, version = request.environ.get(LOOKUP, (None, None))
        if key is None or version is None or not _is_public(response):
            return
        body = response.get_data()
        cached = CachedResponse(
            body,
            [(name, value) for name, value in response.headers if name != headers.REQUEST_ID],
            response.headers["ETag"].strip('"'),
            access_log.route(),
        )
        size = len(body) + OVERHEAD
        with self._lock:
            if version != self._version or key in self._entries:
                return
            while self._entries and self._bytes + size > MAX_BYTES:
                oldest = self._entries.pop(next(iter(self._entries)))
                self._bytes -= len(oldest.body) + OVERHEAD
            self._entries[key] = cached
            self._bytes += size


def store(response: Response) -> Response:
    """Store a public response; call it when the response is complete."""
    cache: ResponseCache | None = current_app.extensions.get(EXTENSION)
    if cache:
        cache.store(response)
    return response


def _is_public(response: Response) -> bool:
    return (
        response.status_code == 200
        and response.headers["Cache-Control"] == headers.PUBLIC_CACHE
        and not response.is_streamed
        and "Set-Cookie" not in response.headers
        and len(response.get_data()) <= MAX_BODY
    )


def init_app(app: Flask) -> None:
    """Put the cache before the app, if it is enabled and the database is an SQLite file."""
    with app.app_context():
        file = sqlite_file()
    if file and app.config["RESPONSE_CACHE"] == "on":
        cache = ResponseCache(app, CommitWatch(file))
        app.extensions[EXTENSION] = cache
        app.wsgi_app = cache  # type: ignore[method-assign]  # as Flask documents
