"""The access log and Prometheus metrics."""

import json
import logging
import re

import pytest
from prometheus_client import REGISTRY

from posting.web import logs
from tests.helpers.assertions import assert_problem


@pytest.fixture
def lines(caplog, monkeypatch):
    """Return the lines of the access log since the last call, parsed from JSON."""
    caplog.set_level(logging.INFO, "posting")
    monkeypatch.setattr(caplog.handler, "formatter", logs.JsonFormatter())

    def lines():
        entries = [json.loads(line) for line in caplog.text.splitlines()]
        caplog.clear()
        return [entry for entry in entries if entry["logger"] == "posting.requests"]

    return lines


@pytest.mark.parametrize(
    ("request_line", "route", "status"),
    [
        ("GET /posts?limit=1", "/posts", 200),
        ("GET /posts/AAAAAAAAAAAAAAAAAAAAA", "/posts/{id}", 404),
        ("GET /users/AAAAAAAAAAAAAAAAAAAAA", "/users/{id}", 404),
        ("GET /users/me", "/users/me", 401),
        ("GET /docs/no-such-file", "/docs/{filename}", 404),
        ("GET /secret?token=x", "none", 404),
        ("DELETE /posts", "none", 405),
        ("BREW\n /posts", "none", 405),
        ("POST /posts", "/posts", 401),
    ],
)
def test_a_line_names_the_route_and_not_the_path(anonymous, lines, request_line, route, status):
    method, path = request_line.split(" ")
    response = anonymous.open(path, method=method)
    [line] = lines()
    assert line["request_id"] == response.headers["X-Request-ID"]
    assert line["route"] == route
    assert line["status"] == status == response.status_code
    assert line["method"] == (method if method.isalpha() else "other")
    assert 0 <= line["milliseconds"] < 10_000
    assert "user" not in line


def test_a_line_names_the_user(alice, lines):
    lines()
    alice.get("/users/me")
    [line] = lines()
    assert line["user"] == alice.user["id"]


def test_the_access_log_can_be_disabled(make_app, lines):
    make_app(LOG_REQUESTS="off").test_client().get("/posts")
    assert lines() == []


def test_an_internal_error_is_logged(make_app, lines):
    app = make_app()
    app.config["PROPAGATE_EXCEPTIONS"] = False
    app.before_request(lambda: 1 / 0)
    assert_problem(app.test_client().get("/posts"), 500)
    [line] = lines()
    assert line["status"] == 500


class TestMetrics:
    def test_they_are_off_by_default(self, anonymous):
        assert_problem(anonymous.get("/metrics"), 404)

    def test_they_are_labelled_by_route_and_not_by_path(self, make_app):
        client = make_app(METRICS="on").test_client()
        labels = {"method": "GET", "route": "/posts/{id}", "status": "404"}
        before = REGISTRY.get_sample_value("posting_requests_total", labels) or 0
        for _ in range(3):
            client.get("/posts/AAAAAAAAAAAAAAAAAAAAA")
        client.open("/posts", method="BREW")
        response = client.get("/metrics")
        assert response.status_code == 200
        assert response.content_type.startswith("text/plain; version=")
        assert response.headers["Cache-Control"] == "no-store"
        line = 'posting_requests_total{method="GET",route="/posts/{id}",status="404"} '
        assert f"{line}{before + 3}" in response.text
        assert 'posting_request_seconds_count{method="GET",route="/posts/{id}"}' in response.text
        assert 'method="other",route="none",status="405"' in response.text
        assert not re.search("AAAA|BREW", response.text)
