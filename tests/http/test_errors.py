"""One shape for every error, and what every answer carries."""

import json
import logging

import pytest
import sqlalchemy as sa
from flask.logging import default_handler

from posting.db.engine import db
from tests.helpers.assertions import problem


@pytest.fixture
def failing(make_app):
    """A client of an app whose GET /fail raises what `failing.error` is."""
    app = make_app(PROPAGATE_EXCEPTIONS=False)
    client = app.test_client()

    @app.get("/fail")
    def fail():
        raise client.error

    return client


def test_an_unknown_path_is_a_problem(anonymous):
    assert problem(anonymous.get("/nothing"), 404)["detail"] == "There is nothing at this path."
    for path in ("/posts/", "/Posts", "/users", "/posts/" + "a" * 21 + "/"):
        problem(anonymous.get(path), 404)


def test_a_doubled_slash_is_no_redirect(anonymous):
    problem(anonymous.get("/users//me"), 404)


def test_an_unknown_method_is_a_problem(anonymous):
    answer = anonymous.put("/posts")
    problem(answer, 405)
    assert set(answer.headers["Allow"].split(", ")) == {"GET", "HEAD", "OPTIONS", "POST"}


def test_a_failure_tells_nothing_of_the_inside(failing, caplog):
    failing.error = RuntimeError("the secret inside")
    answer = failing.get("/fail", headers={"X-Request-ID": "find-me"})
    assert "secret" not in answer.text
    assert problem(answer, 500)["request_id"] == "find-me"
    assert "the secret inside" in caplog.text


@pytest.mark.parametrize(
    "error",
    [
        sa.exc.OperationalError("SELECT 1", {}, Exception("database is locked")),
        sa.exc.TimeoutError("QueuePool limit reached"),
    ],
)
def test_a_database_that_is_busy_or_away_is_503(failing, error):
    failing.error = error
    answer = failing.get("/fail")
    assert "locked" not in answer.text
    problem(answer, 503)
    assert answer.headers["Retry-After"] == "1"


def test_a_lost_connection_ends_with_its_request(anonymous):
    def lose(*_):
        raise sa.exc.OperationalError("SELECT 1", {}, Exception("connection lost"))

    sa.event.listen(sa.Engine, "before_cursor_execute", lose)
    try:
        problem(anonymous.get("/posts"), 503)
        problem(anonymous.get("/readyz"), 503)
        assert anonymous.get("/healthz").status_code == 200
    finally:
        sa.event.remove(sa.Engine, "before_cursor_execute", lose)
    assert anonymous.get("/posts").status_code == 200


def test_a_schema_that_is_not_current_is_not_ready(anonymous, monkeypatch):
    monkeypatch.setattr("posting.db.migrations.newest", lambda: "9999")
    assert "flask db upgrade" in problem(anonymous.get("/readyz"), 503)["detail"]


class TestRequestId:
    @pytest.mark.parametrize("sent", ["a", "A-b_c.9", "x" * 64])
    def test_a_well_formed_one_is_kept(self, anonymous, sent):
        assert anonymous.get("/", headers={"X-Request-ID": sent}).headers["X-Request-ID"] == sent

    @pytest.mark.parametrize("sent", ["", " ", "x" * 65, "a b", "é", "a\tb", "<script>"])
    def test_any_other_is_replaced(self, anonymous, sent):
        answers = [anonymous.get("/", headers={"X-Request-ID": sent}) for _ in range(2)]
        ids = {answer.headers["X-Request-ID"] for answer in answers}
        assert len(ids) == 2
        assert sent not in ids

    @pytest.mark.parametrize("form", ["text", "json"])
    def test_it_is_in_every_log_line(self, make_app, form, capsys):
        app = make_app(LOG_FORMAT=form, LOG_REQUESTS="off")
        app.logger.addHandler(default_handler)  # as where no others handle the root's lines

        @app.get("/log")
        def log():
            app.logger.warning("one line\nor two %s", "\x1b[31m")
            return ""

        app.test_client().get("/log", headers={"X-Request-ID": "find-me"})
        app.logger.removeHandler(default_handler)
        [line] = capsys.readouterr().err.splitlines()
        assert "find-me" in line
        assert "\x1b" not in line
        if form == "json":
            entry = json.loads(line)
            assert entry["message"] == "one line\nor two \x1b[31m"
            assert entry["request_id"] == "find-me"


class TestHeaders:
    def test_every_answer_is_guarded(self, alice, post):
        for url in ("/posts", f"/posts/{post['id']}", "/users/me", "/nothing", "/docs", "/"):
            headers = alice.get(url).headers
            assert headers["X-Content-Type-Options"] == "nosniff"
            assert headers["Referrer-Policy"] == "no-referrer"
            assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
            assert "default-src 'none'" in headers["Content-Security-Policy"]
            assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
            assert "Strict-Transport-Security" not in headers

    def test_https_is_kept_to(self, make_app):
        client = make_app(PUBLIC_URL="https://example.org").test_client()
        assert client.get("/healthz").headers["Strict-Transport-Security"] == "max-age=31536000"

    def test_what_depends_on_the_asker_is_not_stored(self, alice, post):
        for answer in (
            alice.get("/users/me"),
            alice.get("/sessions"),
            alice.post("/posts", json={"title": "a", "content": "b"}),
            alice.get("/nothing"),
            alice.delete(f"/posts/{post['id']}"),
        ):
            assert answer.headers["Cache-Control"] == "private, no-store"

    def test_what_is_public_is_revalidated(self, alice, post):
        for url in ("/posts", f"/posts/{post['id']}", f"/users/{alice.user['id']}"):
            answer = alice.get(url)
            assert answer.headers["Cache-Control"] == "public, max-age=0, must-revalidate"


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
    def test_other_hosts_are_refused_behind_a_public_url(self, make_app, host, status):
        client = make_app(PUBLIC_URL="https://example.org").test_client()
        answer = client.get("/healthz", headers={"Host": host})
        assert answer.status_code == status
        if status == 400:
            problem(answer, 400)
            problem(client.get("/nothing", headers={"Host": host}), 400)
            problem(client.post("/signin", json={}, headers={"Host": host}), 400)

    def test_forwarded_headers_are_ignored_without_proxies(self, alice):
        forged = {"X-Forwarded-Host": "evil.example", "X-Forwarded-Prefix": "/evil"}
        answer = alice.post("/posts", json={"title": "a", "content": "b"}, headers=forged)
        assert answer.headers["Location"].startswith("http://localhost/posts/")

    def test_a_configured_proxy_is_believed(self, make_app, alice):
        client = make_app(PROXY_HOPS=1).test_client()
        sent = {
            "X-Forwarded-Host": "example.org",
            "X-Forwarded-Proto": "https",
            "X-Forwarded-Prefix": "/community",
        }
        answer = client.get("/", headers=sent)
        assert answer.headers["Location"] == "https://example.org/community/docs"
        page = client.get("/docs", headers=sent).text
        assert 'src="/community/docs/swagger-ui-bundle.js"' in page
        assert client.get("/openapi.json", headers=sent).json["servers"] == [{"url": "/community"}]


def test_no_exception_forges_a_line_or_tells_what_was_sent(failing, capsys):
    """Indented, since the databases' messages hold texts of users with their line breaks."""
    failing.application.logger.addHandler(default_handler)
    forged = "2026-11-21T09:30:00.125Z INFO [x] event=sign-in"
    failing.error = RuntimeError(f"the row\n{forged}")
    problem(failing.get("/fail"), 500)
    lines = capsys.readouterr().err.splitlines()
    assert f"    {forged}" in lines
    assert forged not in lines
    with failing.application.app_context():
        assert db.engine.hide_parameters


def test_the_log_level_is_info(app):
    assert app.logger.level == logging.INFO
