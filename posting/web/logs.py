"""The logs of the service: the formats of lines, the access log with metrics, and the audit log.

The access log and the metrics name the route, such as `/posts/{id}`, never the path: what clients
send must not become a label. The audit log has security events with the user and the client's IP,
never with input or secrets.
"""

import json
import logging
import re
import secrets
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from textwrap import indent
from time import perf_counter
from typing import Any, NamedTuple

import prometheus_client
from flask import Flask, Response, current_app, g, has_request_context, request
from flask.logging import default_handler
from prometheus_client import multiprocess

from posting.db.transactions import after_commit
from posting.web.hosts import client_ip, url_template

REQUEST_ID = "X-Request-ID"
AUDITED = {403: "refused", 429: "limit-reached"}
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_access_logger = logging.getLogger("posting.requests")
_audit_logger = logging.getLogger("posting.audit")
_is_request_id = re.compile(r"[A-Za-z0-9._-]{1,64}").fullmatch
_requests = prometheus_client.Counter(
    "posting_requests", "Completed requests", ["method", "route", "status"]
)
_seconds = prometheus_client.Histogram(
    "posting_request_seconds", "Duration of a request", ["method", "route"]
)


class TextFormatter(logging.Formatter):
    """One line of text. Line breaks in a message are escaped, so that it cannot forge a line."""

    def format(self, record: logging.LogRecord) -> str:
        message = record.getMessage().encode("unicode_escape").decode()
        line = f"{_timestamp(record)} {record.levelname} [{_request_id(record)}] {message}"
        if not record.exc_info:
            return line
        return f"{line}\n{indent(self.formatException(record.exc_info), '    ')}"


class JsonFormatter(logging.Formatter):
    """One JSON object per line, with the members of `record.fields` if it has any."""

    def format(self, record: logging.LogRecord) -> str:
        entry = {
            "time": _timestamp(record),
            "level": record.levelname,
            "logger": record.name,
            "request_id": _request_id(record),
            "message": record.getMessage(),
        } | getattr(record, "fields", {})
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        return json.dumps(entry)


class Stderr:
    """The current `sys.stderr`, which takes less time to look up than WSGI's error stream."""

    @staticmethod
    def write(text: str) -> None:
        sys.stderr.write(text)

    @staticmethod
    def flush() -> None:
        sys.stderr.flush()


def init_app(app: Flask) -> None:
    logging.getLogger("werkzeug").addFilter(is_not_access_log)
    default_handler.setStream(Stderr())
    is_json = app.config["LOG_FORMAT"] == "json"
    default_handler.setFormatter(JsonFormatter() if is_json else TextFormatter())
    app.logger.setLevel(logging.DEBUG if app.debug else logging.INFO)


def is_not_access_log(record: logging.LogRecord) -> bool:
    """Filter out the access log of werkzeug's server; POSTING_LOG_REQUESTS replaces it."""
    return not str(record.msg).endswith('] "%s" %s %s')


def _timestamp(record: logging.LogRecord) -> str:
    return f"{_format_seconds(int(record.created))}.{int(record.msecs):03d}Z"


@lru_cache(8)  # formatting takes 2 of the 100 microseconds of a cached response
def _format_seconds(seconds: int) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}"


def _request_id(record: logging.LogRecord) -> str:
    """Return the request id that the record carries, else that of the current request."""
    if request_id := getattr(record, "request_id", None):
        return str(request_id)
    return str(g.get("request_id", "-")) if has_request_context() else "-"


class RequestRecord(NamedTuple):
    """A completed request."""

    method: str
    route: str
    status: int
    seconds: float
    request_id: str
    user_id: str | None = None


def start_request() -> None:
    """Start the clock of a request, and give it an id. In tests `g` may outlive a request."""
    g.started, g.user_id = perf_counter(), None
    g.request_id = request_id_for(request.environ.get("HTTP_X_REQUEST_ID", ""))


def request_id_for(sent: str) -> str:
    """Return the id that a client sent if it is well-formed, and otherwise a new one."""
    return sent if _is_request_id(sent) else secrets.token_urlsafe(10)


def log_request(response: Response) -> Response:
    """Log and count the request, after any other hook."""
    config = current_app.config
    if event := AUDITED.get(response.status_code):
        audit(event)
    if config["LOG_REQUESTS"] or config["METRICS"]:
        status, seconds = response.status_code, perf_counter() - g.started
        completed = RequestRecord(request.method, route(), status, seconds, g.request_id, g.user_id)
        emit(config, completed)
    return response


def emit(config: Mapping[str, Any], completed: RequestRecord) -> None:
    """Log and count a request, as the settings say."""
    method = completed.method if completed.method in METHODS else "other"
    if config["LOG_REQUESTS"] and _access_logger.isEnabledFor(logging.INFO):
        fields: dict[str, Any] = {
            "method": method,
            "route": completed.route,
            "status": completed.status,
            "milliseconds": round(completed.seconds * 1000, 1),
        }
        if completed.user_id:
            fields["user"] = completed.user_id
        line = " ".join([f"{name}={value}" for name, value in fields.items()])
        # Unlike `info`, this does not search the stack for its caller.
        entry = logging.LogRecord(_access_logger.name, logging.INFO, __file__, 0, line, None, None)
        entry.fields, entry.request_id = fields, completed.request_id
        _access_logger.handle(entry)
    if config["METRICS"]:
        _requests.labels(method, completed.route, str(completed.status)).inc()
        _seconds.labels(method, completed.route).observe(completed.seconds)


def route() -> str:
    """Return the route of the request, such as `/posts/{id}`."""
    return url_template(request.url_rule.rule) if request.url_rule else "none"


def render_metrics() -> bytes:
    """Return the metrics in Prometheus's text format, summed over all workers.

    Workers share a folder, which `deploy/gunicorn.conf.py` creates.
    """
    registry = prometheus_client.CollectorRegistry()
    try:
        multiprocess.MultiProcessCollector(registry)  # type: ignore[no-untyped-call]  # untyped
    except ValueError:  # there is no folder, and so only one process
        registry = prometheus_client.REGISTRY
    return prometheus_client.generate_latest(registry)


def audit(event: str, **fields: str | None) -> None:
    """Log an event. Within a unit of work, log it after the commit, since an error undoes it.

    In a request, add the user, the client's IP and the endpoint.
    """
    if has_request_context():
        user: str | None = g.get("user_id")
        fields = {"user": user, "address": client_ip(), "endpoint": request.endpoint} | fields
    logged = {"event": event} | {name: value for name, value in fields.items() if value}
    line = " ".join(f"{name}={_quote(value)}" for name, value in logged.items())
    after_commit(lambda: _audit_logger.info("%s", line, extra={"fields": logged}))


def _quote(value: str) -> str:
    """Quote a value that contains spaces. Quotes in it become apostrophes."""
    if re.fullmatch(r'[^\s"=]+', value):
        return value
    without_quotes = value.replace('"', "'")
    return f'"{without_quotes}"'
