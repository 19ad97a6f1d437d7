"""Problem details, request IDs, headers of every response, and host names."""

import json
import logging

import pytest
import sqlalchemy as sa
from flask.logging import default_handler

from posting.db.engine import db
from tests.helpers.assertions import assert_problem


@pytest.fixture
def failing_client(make_app):
    """A client of an app on which `GET /fail` raises the client's `error`."""
    app = make_app(PROPAGATE_EXCEPTIONS=False)
    client = app.test_client()

    @app.get("/fail")
    def fail():
        raise client.error

    return client


@pytest.fixture
def log_to_stderr():
    """Log to stderr, which Flask does only if there are no handlers such as those of pytest."""
    logger = logging.getLogger("posting")
    logger.addHandler(default_handler)
    yield
    logger.removeHandler(default_handler)


def test_an_unknown_path_is_404(anonymous):
    assert (
        assert_problem(anonymous.get("/nothing"), 404)["detail"] == "There is nothing at this path."
    )
    for path in ("/posts/", "/Posts", "/user", "/posts/" + "a" * 21 + "/"):
        assert_problem(anonymous.get(path), 404)


def test_a_double_slash_is_404_and_not_a_redirect(anonymous):
    assert_problem(anonymous.get("/users//me"), 404)


def test_an_unsupported_method_is_405(anonymous):
    response = anonymous.put("/posts")
    assert_problem(response, 405)
    assert set(response.headers["Allow"].split(", ")) == {"GET", "HEAD", "OPTIONS", "POST"}


def test_a_server_error_reveals_nothing_internal(failing_client, caplog):
    failing_client.error = RuntimeError("the secret inside")
    response = failing_client.get("/fail", headers={"X-Request-ID": "find-me"})
    assert "secret" not in response.text
    assert assert_problem(response, 500)["request_id"] == "find-me"
    assert "the secret inside" in caplog.text


@pytest.mark.parametrize(
    "error",
    [
        sa.exc.OperationalError("SELECT 1", {}, Exception("database is locked")),
        sa.exc.TimeoutError("QueuePool limit reached"),
    ],
)
def test_a_busy_or_unavailable_database_is_503(failing_client, error):
    failing_client.error = error
    response = failing_client.get("/fail")
    assert "locked" not in response.text
    assert_problem(response, 503)
    assert response.headers["Retry-After"] == "1"


def test_a_lost_connection_does_not_affect_later_requests(anonymous):
    def lose_connection(*_):
        raise sa.exc.OperationalError("SELECT 1", {}, Exception("connection lost"))

    sa.event.listen(sa.Engine, "before_cursor_execute", lose_connection)
    try:
        assert_problem(anonymous.get("/posts"), 503)
        assert_problem(anonymous.get("/readyz"), 503)
        assert anonymous.get("/healthz").status_code == 200
    finally:
        sa.event.remove(sa.Engine, "before_cursor_execute", lose_connection)
    assert anonymous.get("/posts").status_code == 200


def test_the_service_is_not_ready_before_the_schema_is_current(anonymous, monkeypatch):
    monkeypatch.setattr("posting.db.migrations.head_revision", lambda: "9999")
    assert "flask db upgrade" in assert_problem(anonymous.get("/readyz"), 503)["detail"]


class TestRequestId:
    @pytest.mark.parametrize("sent", ["a", "A-b_c.9", "x" * 64])
    def test_a_valid_id_of_the_client_is_used(self, anonymous, sent):
        assert anonymous.get("/", headers={"X-Request-ID": sent}).headers["X-Request-ID"] == sent

    @pytest.mark.parametrize("sent", ["", " ", "x" * 65, "a b", "é", "a\tb", "<script>"])
    def test_an_invalid_id_of_the_client_is_replaced(self, anonymous, sent):
        responses = [anonymous.get("/", headers={"X-Request-ID": sent}) for _ in range(2)]
        ids = {response.headers["X-Request-ID"] for response in responses}
        assert len(ids) == 2
        assert sent not in ids

    @pytest.mark.parametrize("log_format", ["text", "json"])
    @pytest.mark.usefixtures("log_to_stderr")
    def test_it_is_in_every_log_line(self, make_app, log_format, capsys):
        app = make_app(LOG_FORMAT=log_format, LOG_REQUESTS="off")

        @app.get("/log")
        def log():
            app.logger.warning("one line\nor two %s", "\x1b[31m")
            return ""

        app.test_client().get("/log", headers={"X-Request-ID": "find-me"})
        [line] = capsys.readouterr().err.splitlines()
        assert "find-me" in line
        assert "\x1b" not in line
        if log_format == "json":
            entry = json.loads(line)
            assert entry["message"] == "one line\nor two \x1b[31m"
            assert entry["request_id"] == "find-me"


class TestHeaders:
    def test_every_response_has_security_headers(self, alice, post):
        for url in ("/posts", f"/posts/{post['id']}", "/users/me", "/nothing", "/docs", "/"):
            headers = alice.get(url).headers
            assert headers["X-Content-Type-Options"] == "nosniff"
            assert headers["Referrer-Policy"] == "no-referrer"
            assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
            assert "default-src 'none'" in headers["Content-Security-Policy"]
            assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
            assert "Strict-Transport-Security" not in headers

    def test_any_site_may_show_an_image(self, alice, post):
        with alice.get(f"/images/{alice.add_image(post)['id']}") as image:
            assert image.headers.getlist("Cross-Origin-Resource-Policy") == ["cross-origin"]

    def test_behind_https_hsts_is_set(self, make_app):
        client = make_app(PUBLIC_URL="https://example.org").test_client()
        assert client.get("/healthz").headers["Strict-Transport-Security"] == "max-age=31536000"

    def test_responses_that_depend_on_the_user_are_not_stored(self, alice, post):
        for response in (
            alice.get("/users/me"),
            alice.get("/sessions"),
            alice.post("/posts", json={"title": "a", "content": "b"}),
            alice.get("/nothing"),
            alice.delete(f"/posts/{post['id']}"),
        ):
            assert response.headers["Cache-Control"] == "private, no-store"

    def test_public_responses_are_revalidated(self, alice, post):
        for url in ("/posts", f"/posts/{post['id']}", f"/users/{alice.user['id']}"):
            response = alice.get(url)
            assert response.headers["Cache-Control"] == "public, max-age=0, must-revalidate"


class TestHosts:
    @pytest.mark.parametrize(
        ("host", "status"),
        [
            ("example.org", 200),
            ("example.org:8443", 200),
            ("localhost:8000", 200),
            ("127.0.0.1", 200),
            ("[::1]", 200),
            ("[::1]:8000", 200),
            ("EXAMPLE.org", 200),
            ("LocalHost:8000", 200),
            ("[::2]", 400),
            ("[::1", 400),
            ("example.org:", 400),
            ("evil.example", 400),
            ("example.org.evil.example", 400),
            ("", 400),
        ],
    )
    def test_with_a_public_url_other_hosts_are_400(self, make_app, host, status):
        client = make_app(PUBLIC_URL="https://example.org").test_client()
        response = client.get("/healthz", headers={"Host": host})
        assert response.status_code == status
        if status == 400:
            assert_problem(response, 400)
            assert_problem(client.get("/nothing", headers={"Host": host}), 400)
            assert_problem(client.post("/signin", json={}, headers={"Host": host}), 400)

    def test_forwarded_headers_are_ignored_without_a_configured_proxy(self, alice):
        forged = {"X-Forwarded-Host": "evil.example", "X-Forwarded-Prefix": "/evil"}
        response = alice.post("/posts", json={"title": "a", "content": "b"}, headers=forged)
        assert response.headers["Location"].startswith("http://localhost/posts/")

    def test_forwarded_headers_of_a_configured_proxy_are_used(self, make_app, alice):
        client = make_app(PROXY_HOPS=1, PAGES="off").test_client()
        sent = {
            "X-Forwarded-Host": "example.org",
            "X-Forwarded-Proto": "https",
            "X-Forwarded-Prefix": "/community",
        }
        response = client.get("/", headers=sent)
        assert response.headers["Location"] == "https://example.org/community/docs"
        page = client.get("/docs", headers=sent).text
        assert 'src="/community/docs/swagger-ui-bundle.js"' in page
        assert client.get("/openapi.json", headers=sent).json["servers"] == [{"url": "/community"}]


@pytest.mark.usefixtures("log_to_stderr")
def test_a_logged_exception_cannot_forge_a_line_or_contain_parameters(failing_client, capsys):
    """Messages of databases contain texts of users with line breaks, so they are indented."""
    forged = "2026-11-21T09:30:00.125Z INFO [x] event=sign-in"
    failing_client.error = RuntimeError(f"the row\n{forged}")
    assert_problem(failing_client.get("/fail"), 500)
    lines = capsys.readouterr().err.splitlines()
    assert f"    {forged}" in lines
    assert forged not in lines
    with failing_client.application.app_context():
        assert db.engine.hide_parameters


def test_the_log_level_is_info(app):
    assert app.logger.level == logging.INFO
