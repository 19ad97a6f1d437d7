"""What is told of each request: a log line, and figures for Prometheus.

Both name the route, such as /posts/{id}, and never the path: what clients send is no label.
"""

import logging
import re
from collections.abc import Mapping
from functools import cache
from time import perf_counter
from typing import Any, NamedTuple

import prometheus_client
from flask import Response, current_app, g, request
from prometheus_client import multiprocess

MEDIA_TYPE = prometheus_client.CONTENT_TYPE_LATEST
NO_ROUTE = "none"
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})

_logger = logging.getLogger("posting.requests")
_requests = prometheus_client.Counter(
    "posting_requests", "Requests answered", ["method", "route", "status"]
)
_seconds = prometheus_client.Histogram(
    "posting_request_seconds", "How long it took to answer", ["method", "route"]
)


class Answered(NamedTuple):
    """What is told of a request."""

    method: str
    route: str
    status: int
    seconds: float
    request_id: str
    user: str | None = None


def exposition() -> bytes:
    """Return the figures as Prometheus reads them: those of all workers, where there are several.

    Workers share a folder, which `deploy/gunicorn.conf.py` makes.
    """
    registry = prometheus_client.CollectorRegistry()
    try:
        # It has no type hints.
        multiprocess.MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    except ValueError:  # there is no folder, and so but one process
        registry = prometheus_client.REGISTRY
    return prometheus_client.generate_latest(registry)


def observe(config: Mapping[str, Any], answered: Answered) -> None:
    """Log a request and count it, as far as either is switched on."""
    method = answered.method if answered.method in METHODS else "other"
    if config["LOG_REQUESTS"] == "on":
        _log(method, answered)
    if config["METRICS"] == "on":
        _requests.labels(method, answered.route, str(answered.status)).inc()
        _seconds.labels(method, answered.route).observe(answered.seconds)


def route() -> str:
    """Return the route of the request, such as /posts/{id}."""
    rule = request.url_rule
    return _named(rule.rule) if rule else NO_ROUTE


@cache
def _named(rule: str) -> str:
    return re.sub(r"<(?:[^<>]*:)?(\w+)>", r"{\1}", rule)


def start_timer() -> None:
    g.began, g.user_id = perf_counter(), None


def record(response: Response) -> Response:
    user, seconds = g.get("user_id"), perf_counter() - g.began
    answered = Answered(request.method, route(), response.status_code, seconds, g.request_id, user)
    observe(current_app.config, answered)
    return response


def _log(method: str, answered: Answered) -> None:
    if not _logger.isEnabledFor(logging.INFO):
        return
    milliseconds = round(answered.seconds * 1000, 1)
    facts: dict[str, Any] = {
        "method": method,
        "route": answered.route,
        "status": answered.status,
        "milliseconds": milliseconds,
    }
    if answered.user:
        facts["user"] = answered.user
    line = " ".join([f"{name}={value}" for name, value in facts.items()])
    # As `info` does, without a look at the stack for who is calling.
    entry = logging.LogRecord(_logger.name, logging.INFO, __file__, 0, line, None, None)
    entry.facts, entry.request_id = facts, answered.request_id
    _logger.handle(entry)
