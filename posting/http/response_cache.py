"""Answers to public GETs, kept for exactly as long as nothing is committed; on SQLite alone.

`PRAGMA data_version` on a connection that never writes stands still until any other connection of
any process commits (https://www.sqlite.org/pragma.html#pragma_data_version). What is kept was begun
to be made when the version was what it still is. So nobody is shown anything older than the last
commit, whichever worker made it.
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

MOST_BYTES = 8 * 2**20
LARGEST = 256 * 2**10
OVERHEAD = 4096  # bytes that an entry takes beside its body, rather more than less
EXTENSION = _WANTED = "posting.response_cache"

Environ = dict[str, Any]
Key = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Kept:
    """A whole answer but for its request id."""

    body: bytes
    headers: list[tuple[str, str]]
    tag: str
    route: str


class CommitWatch:
    """Tells whether anybody has committed to an SQLite file, by a number that then changes."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._process = 0
        self._connection: Any = None

    def version(self) -> int | None:
        """Return the number; None if the file cannot be asked. One thread at a time may."""
        try:
            if self._process != os.getpid():  # a connection must not cross a fork
                self._connection = sqlite.connect(self._file, check_same_thread=False)
                self._process = os.getpid()
            [(version,)] = self._connection.execute("PRAGMA data_version").fetchall()
        except sqlite.Error:
            return None
        return int(version)


class ResponseCache:
    """WSGI middleware that answers from what is kept, and else lets the app answer."""

    def __init__(self, app: Flask, watch: CommitWatch) -> None:
        self._answer, self._config = app.wsgi_app, app.config
        self._watch = watch
        self._lock = Lock()
        self._version: int | None = None
        self._kept: dict[Key, Kept] = {}
        self._bytes = 0

    def __call__(self, environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        if environ["REQUEST_METHOD"] != "GET":
            return self._answer(environ, start_response)
        began = perf_counter()
        key = _key(environ)
        with self._lock:
            self._forget_if_committed()
            kept = self._kept.get(key)
            environ[_WANTED] = key, self._version
        if kept is None:
            return self._answer(environ, start_response)
        request_id = headers.request_id_for(environ.get("HTTP_X_REQUEST_ID", ""))
        status, body, own = _again(kept, environ.get("HTTP_IF_NONE_MATCH"))
        seconds = perf_counter() - began
        answered = access_log.Answered("GET", kept.route, int(status[:3]), seconds, request_id)
        access_log.observe(self._config, answered)
        start_response(status, [*own, (headers.REQUEST_ID, request_id)])
        return [body]

    def keep(self, response: Response) -> Response:
        """Keep what the app answers, if it is public and short and nobody has committed since."""
        key, version = request.environ.get(_WANTED, (None, None))
        if key and version is not None and _is_public(response):
            kept = Kept(
                response.get_data(),
                [(name, value) for name, value in response.headers if name != headers.REQUEST_ID],
                response.headers["ETag"].strip('"'),
                access_log.route(),
            )
            with self._lock:
                if version == self._version:
                    self._add(key, kept)
        return response

    def _forget_if_committed(self) -> None:
        version = self._watch.version()
        if version != self._version or version is None:
            self._kept.clear()
            self._bytes, self._version = 0, version

    def _add(self, key: Key, kept: Kept) -> None:
        size = len(kept.body) + OVERHEAD
        while self._kept and self._bytes + size > MOST_BYTES:
            oldest = self._kept.pop(next(iter(self._kept)))
            self._bytes -= len(oldest.body) + OVERHEAD
        if key not in self._kept:
            self._kept[key] = kept
            self._bytes += size


def init_app(app: Flask) -> None:
    with app.app_context():
        file = sqlite_file()
    if file and app.config["RESPONSE_CACHE"] == "on":
        cache = ResponseCache(app, CommitWatch(file))
        app.extensions[EXTENSION] = cache
        app.wsgi_app = cache  # type: ignore[method-assign]  # as Flask says to add middleware


def store(response: Response) -> Response:
    cache = current_app.extensions.get(EXTENSION)
    return cache.keep(response) if cache else response


def _key(environ: Environ) -> Key:
    """Return all that a public answer depends on: the whole target, as absolute URLs show it."""
    return (
        environ["wsgi.url_scheme"],
        environ.get("HTTP_HOST", ""),
        environ["SCRIPT_NAME"],
        environ["PATH_INFO"],
        environ["QUERY_STRING"],
    )


def _is_public(response: Response) -> bool:
    return (
        response.status_code == 200
        and response.headers["Cache-Control"] == headers.PUBLIC_CACHE
        and not response.is_streamed
        and "Set-Cookie" not in response.headers
        and len(response.get_data()) <= LARGEST
    )


def _again(kept: Kept, known: str | None) -> tuple[str, bytes, list[tuple[str, str]]]:
    """Return what is kept as an answer to one who knows a tag, or none."""
    if known and etags.etag_matches(known, kept.tag):
        without = etags.CONTENT_HEADERS
        return "304 NOT MODIFIED", b"", [pair for pair in kept.headers if pair[0] not in without]
    return "200 OK", kept.body, kept.headers
