"""Cache of the responses that are the same for all who may read them.

A cached response is served only while the version of the database is the same as when its request
began. So no client sees data older than the last commit, whichever process made it.

If only members may read, the session or token of each request is looked up in the database before a
cached response is served.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from threading import Lock
from time import perf_counter
from typing import Any
from urllib.parse import unquote_plus

import sqlalchemy as sa
from flask import Flask, Request, Response, current_app, request

from posting.db.commits import Version
from posting.db.engine import is_in_memory
from posting.site.settings import VERSION
from posting.web import etags, logs
from posting.web.endpoint import SHARED, Endpoint, current_endpoint

MAX_BYTES = 8 * 2**20  # of all entries
MAX_BODY = MAX_BYTES // 4
OVERHEAD = 4096  # bytes per entry, without its body; a high estimate
MAX_PAGES = 1000  # whose known names are kept
EXTENSION = LOOKUP = "posting.response_cache"
VISITOR = "posting.visitor"  # in the environ: whether the cache has looked for a user in vain

Environ = dict[str, Any]
Key = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CachedResponse:
    """A response, complete except for its request id."""

    body: bytes
    headers: list[tuple[str, str]]
    etag: str
    route: str
    checks_token: bool
    find_reader: Callable[[Request], str | None] | None  # if only members may read


class ResponseCache:
    """WSGI middleware that replays cached responses, and else passes the request on to the app."""

    def __init__(self, app: Flask) -> None:
        self._app, self._flask, self._config = app.wsgi_app, app, app.config
        self._lock = Lock()
        self._version: Version | None = None
        self._entries: dict[Key, CachedResponse] = {}
        self._bytes = 0
        self._known_names: dict[Key, frozenset[str]] = {}  # in the query of a page

    def __call__(self, environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        if environ["REQUEST_METHOD"] != "GET":
            return self._app(environ, start_response)
        started = perf_counter()
        # A shared response depends on nothing but the URL, which it repeats in absolute URLs.
        key = self._without_unknown_names(
            (
                environ["wsgi.url_scheme"],
                environ.get("HTTP_HOST", ""),
                environ["SCRIPT_NAME"],
                environ["PATH_INFO"],
                environ["QUERY_STRING"],
            )
        )
        version = environ.get(VERSION)
        cached = self._look_up(key, version)
        reader = None
        if cached and cached.find_reader:
            reader = self._find_reader(cached.find_reader, environ)
            may_replay = reader is not None
        else:
            may_replay = not (cached and cached.checks_token and "HTTP_AUTHORIZATION" in environ)
        if cached is None or not may_replay:
            environ[LOOKUP] = key, version
            return self._app(environ, start_response)
        return [self._replay(cached, environ, start_response, started, reader)]

    def _without_unknown_names(self, key: Key) -> Key:
        """Return a key without the names in its query that a page ignores."""
        *url, query = key
        known = self._known_names.get(tuple(url)) if query else None
        if known is None:
            return key
        parts = query.split("&")
        parts = [part for part in parts if unquote_plus(part.partition("=")[0]) in known]
        return *url, "&".join(parts)

    def _look_up(self, key: Key, version: Version | None) -> CachedResponse | None:
        """Return the response if it is cached for this version of the database."""
        if version is None:  # the database does not answer
            return None
        with self._lock:
            if version != self._version:
                self._entries.clear()
                self._bytes, self._version = 0, version
            return self._entries.get(key)

    def _find_reader(
        self, find_reader: Callable[[Request], str | None], environ: Environ
    ) -> str | None:
        """Return the id of the user of a request, as the database has it now.

        If there is no user, the app responds. It is told so and does not look again, because the
        extra time would show visitors which responses are cached.
        """
        try:
            with self._flask.app_context():
                reader = find_reader(self._flask.request_class(environ, populate_request=False))
        except sa.exc.SQLAlchemyError:  # the app responds to it
            return None
        environ[VISITOR] = reader is None
        return reader

    def _replay(
        self,
        cached: CachedResponse,
        environ: Environ,
        start_response: Callable[..., Any],
        started: float,
        reader: str | None,
    ) -> bytes:
        request_id = logs.request_id_for(environ.get("HTTP_X_REQUEST_ID", ""))
        if_none_match = environ.get("HTTP_IF_NONE_MATCH")
        if if_none_match and etags.etag_matches(if_none_match, cached.etag):
            status, body = "304 NOT MODIFIED", b""
            fields = [pair for pair in cached.headers if pair[0] not in etags.CONTENT_HEADERS]
        else:
            status, body, fields = "200 OK", cached.body, cached.headers
        seconds = perf_counter() - started
        completed = logs.RequestRecord(
            "GET", cached.route, int(status[:3]), seconds, request_id, reader
        )
        logs.emit(self._config, completed)
        start_response(status, [*fields, (logs.REQUEST_ID, request_id)])
        return body

    def store(self, response: Response) -> None:
        """Store a response that is shared and short, unless there was a commit since its lookup."""
        key, version = request.environ.get(LOOKUP, (None, None))
        endpoint = current_endpoint()
        if key is None or version is None or endpoint is None:
            return
        if not _may_store(response, endpoint):
            return
        *url, query = key
        if query and endpoint.known_names is not None:
            if len(self._known_names) >= MAX_PAGES:
                self._known_names.clear()
            self._known_names[tuple(url)] = endpoint.known_names
            key = self._without_unknown_names(key)
        body = response.get_data()
        cached = CachedResponse(
            body,
            [(name, value) for name, value in response.headers if name != logs.REQUEST_ID],
            response.headers["ETag"].strip('"'),
            logs.route(),
            bool(endpoint.current_access.security),
            endpoint.current_access.find_reader,
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


def store_shared(response: Response) -> Response:
    """Store a shared response; call it when the response is complete."""
    cache: ResponseCache | None = current_app.extensions.get(EXTENSION)
    if cache:
        cache.store(response)
    return response


def is_visitor(environ: Environ) -> bool:
    """Return whether the cache has found no user of a request."""
    return bool(environ.get(VISITOR))


def _may_store(response: Response, endpoint: Endpoint) -> bool:
    return (
        endpoint.cache is SHARED
        and response.status_code == 200
        and response.headers["Cache-Control"] == endpoint.cache_control
        and not response.is_streamed
        and "Set-Cookie" not in response.headers
        and len(response.get_data()) <= MAX_BODY
    )


def init_app(app: Flask) -> None:
    """Put the cache before the app, unless it is disabled or the database is in memory."""
    with app.app_context():
        is_useful = app.config["RESPONSE_CACHE"] and not is_in_memory()
    if is_useful:
        cache = ResponseCache(app)
        app.extensions[EXTENSION] = cache
        app.wsgi_app = cache  # type: ignore[method-assign]  # as Flask documents
