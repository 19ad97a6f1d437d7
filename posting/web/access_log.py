"""Access log and Prometheus metrics.

Both name the route, such as `/posts/{id}`, never the path: what clients send must not become a
label.
"""

import logging
from collections.abc import Mapping
from time import perf_counter
from typing import Any, NamedTuple

import prometheus_client
from flask import Response, current_app, g, request
from prometheus_client import multiprocess

from posting.web.urls import url_template

MEDIA_TYPE = prometheus_client.CONTENT_TYPE_LATEST
NO_ROUTE = "none"
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})

_logger = logging.getLogger("posting.requests")
_requests = prometheus_client.Counter(
    "posting_requests", "Completed requests", ["method", "route", "status"]
)
_seconds = prometheus_client.Histogram(
    "posting_request_seconds", "Duration of a request", ["method", "route"]
)


class RequestRecord(NamedTuple):
    """A completed request."""

    method: str
    route: str
    status: int
    seconds: float
    request_id: str
    user_id: str | None = None


def start_timer() -> None:
    """Start the clock, before any other hook of a request. In tests `g` may outlive a request."""
    g.started, g.user_id = perf_counter(), None


def record(response: Response) -> Response:
    """Log and count the request, after any other hook."""
    config = current_app.config
    if config["LOG_REQUESTS"] or config["METRICS"]:
        status, seconds = response.status_code, perf_counter() - g.started
        completed = RequestRecord(request.method, route(), status, seconds, g.request_id, g.user_id)
        emit(config, completed)
    return response


def emit(config: Mapping[str, Any], completed: RequestRecord) -> None:
    """Log and count a request, as the settings say."""
    method = completed.method if completed.method in METHODS else "other"
    if config["LOG_REQUESTS"] and _logger.isEnabledFor(logging.INFO):
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
        entry = logging.LogRecord(_logger.name, logging.INFO, __file__, 0, line, None, None)
        entry.fields, entry.request_id = fields, completed.request_id
        _logger.handle(entry)
    if config["METRICS"]:
        _requests.labels(method, completed.route, str(completed.status)).inc()
        _seconds.labels(method, completed.route).observe(completed.seconds)


def route() -> str:
    """Return the route of the request, such as `/posts/{id}`."""
    return url_template(request.url_rule.rule) if request.url_rule else NO_ROUTE


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
