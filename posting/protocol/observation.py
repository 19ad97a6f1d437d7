"""What is told of each request: a log line, and figures for Prometheus.

Both name the route, such as /posts/{id}, and never the path: what clients send is no label.
"""

import logging
import re
from time import perf_counter

import prometheus_client
from flask import Flask, Response, current_app, g, request
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


def init_app(app: Flask) -> None:
    if app.config["LOG_REQUESTS"] == "on" or app.config["METRICS"] == "on":
        app.before_request(_begin)
        app.after_request(_observe)


def exposition() -> bytes:
    """Return the figures as Prometheus reads them: those of all workers, where there are several.

    Workers share a folder, which `deploy/gunicorn.conf.py` makes.
    """
    registry = prometheus_client.CollectorRegistry()
    try:
        multiprocess.MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    except ValueError:  # there is no folder, and so but one process
        registry = prometheus_client.REGISTRY
    return prometheus_client.generate_latest(registry)


def _begin() -> None:
    g.began = perf_counter()


def _observe(response: Response) -> Response:
    seconds = perf_counter() - g.began
    method = request.method if request.method in METHODS else "other"
    route, status = _route(), str(response.status_code)
    if current_app.config["LOG_REQUESTS"] == "on":
        _log(method, route, status, seconds)
    if current_app.config["METRICS"] == "on":
        _requests.labels(method, route, status).inc()
        _seconds.labels(method, route).observe(seconds)
    return response


def _log(method: str, route: str, status: str, seconds: float) -> None:
    milliseconds = round(seconds * 1000, 1)
    facts = {"method": method, "route": route, "status": status, "milliseconds": milliseconds}
    if user_id := g.get("user_id"):
        facts["user"] = user_id
    line = " ".join(f"{name}={value}" for name, value in facts.items())
    _logger.info("%s", line, extra={"facts": facts})


def _route() -> str:
    rule = request.url_rule
    return re.sub(r"<(?:[^<>]*:)?(\w+)>", r"{\1}", rule.rule) if rule else NO_ROUTE
