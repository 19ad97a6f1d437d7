"""Problem details, request IDs, headers of every response, and host names."""

import json
import logging

import psycopg
import pytest
import sqlalchemy as sa
from flask.logging import default_handler
from pysqlite3 import dbapi2 as sqlite
from werkzeug.test import create_environ, run_wsgi_app

from posting.db.base import db
from posting.db.transactions import execute, transaction, unit_of_work
from posting.posts.store import NoSuchPost
from tests.conftest import POSTGRES
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


def test_an_unknown_path_gets_404(anonymous):
    assert (
        assert_problem(anonymous.get("/nothing"), 404)["detail"] == "There is nothing at this path."
    )
    for path in ("/posts/", "/Posts", "/user", "/posts/" + "a" * 21 + "/"):
        assert_problem(anonymous.get(path), 404)


def test_a_double_slash_gets_404_and_not_a_redirect(anonymous):
    assert_problem(anonymous.get("/users//me"), 404)


def test_an_unsupported_method_gets_405(anonymous):
    response = anonymous.put("/posts")
    assert_problem(response, 405)
    assert set(response.headers["Allow"].split(", ")) == {"GET", "HEAD", "OPTIONS", "POST"}


def test_a_server_error_reveals_nothing_internal(failing_client, caplog):
    failing_client.error = RuntimeError("the secret inside")
    response = failing_client.get("/fail", headers={"X-Request-ID": "find-me"})
    assert "secret" not in response.text
    assert assert_problem(response, 500)["request_id"] == "find-me"
    assert "the secret inside" in caplog.text


# The status, the code and Retry-After.
BUSY = 503, "database_busy", "1"
TIMEOUT = 503, "query_timeout", "10"
MOVED = 503, "database_moved", "60"
FULL = 507, "storage_full", None
INTERNAL = 500, "internal_server_error", None


def of_sqlite(name, text="…", kind=sqlite.OperationalError, statement="SELECT 1"):
    """Return an error of SQLite with the name of a result code."""
    error = kind(text)
    error.sqlite_errorname = name
    return sa.exc.DBAPIError.instance(statement, {}, error, sqlite.Error)


def of_postgres(name):
    """Return an error of Postgres by the name of its SQLSTATE."""
    return sa.exc.DBAPIError.instance(
        "SELECT 1", {}, getattr(psycopg.errors, name)("…"), psycopg.Error
    )


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (sa.exc.TimeoutError("QueuePool limit reached"), BUSY),
        (of_sqlite("SQLITE_BUSY", "database is locked"), BUSY),
        (of_sqlite("SQLITE_BUSY_SNAPSHOT"), BUSY),
        (of_sqlite("SQLITE_IOERR", "disk I/O error"), BUSY),
        (of_sqlite("SQLITE_IOERR_READ", statement="\n WITH found AS (SELECT 1)"), BUSY),
        (of_postgres("OperationalError"), BUSY),  # no connection
        (of_postgres("AdminShutdown"), BUSY),
        (of_postgres("DeadlockDetected"), BUSY),
        (of_postgres("LockNotAvailable"), BUSY),
        (of_postgres("ReadOnlySqlTransaction"), BUSY),
        (of_sqlite("SQLITE_INTERRUPT", "interrupted"), TIMEOUT),
        (of_postgres("QueryCanceled"), TIMEOUT),
        (of_sqlite("SQLITE_READONLY_DBMOVED"), MOVED),
        (of_sqlite("SQLITE_READONLY"), BUSY),
        (of_sqlite("SQLITE_FULL", "database or disk is full"), FULL),
        (of_sqlite("SQLITE_IOERR_SHMSIZE"), FULL),
        (of_sqlite("SQLITE_IOERR", "disk I/O error", statement="UPDATE posts"), FULL),
        (of_sqlite("SQLITE_IOERR", "disk I/O error", statement=None), FULL),  # at the commit
        (of_postgres("DiskFull"), FULL),
        (of_sqlite(None, "Could not decode to UTF-8"), INTERNAL),
        (of_sqlite("SQLITE_ERROR", "no such table"), INTERNAL),
        (of_sqlite("SQLITE_CORRUPT", kind=sqlite.DatabaseError), INTERNAL),
        (of_postgres("DataCorrupted"), INTERNAL),
        (of_postgres("ProgramLimitExceeded"), INTERNAL),
        (of_postgres("UndefinedTable"), INTERNAL),
        (of_postgres("DataError"), INTERNAL),
    ],
)
def test_only_a_database_that_may_answer_later_gets_503(failing_client, caplog, error, expected):
    status, code, retry_after = expected
    failing_client.error = error
    response = failing_client.get("/fail")
    assert str(getattr(error, "orig", error)) not in response.text
    assert assert_problem(response, status)["code"] == code
    assert response.headers.get("Retry-After") == retry_after
    [record] = [record for record in caplog.records if record.levelname == "ERROR"]
    assert str(error).partition("\n")[0] in caplog.text
    assert bool(record.exc_info) == (status == 500)


@pytest.mark.skipif(bool(POSTGRES), reason="SQLite stores any bytes")
@pytest.mark.parametrize(
    "damage",
    ["title = CAST(x'ff' AS TEXT)", "created_at = CAST(x'ff' AS TEXT)", "created_at = 'yesterday'"],
)
def test_a_damaged_row_gets_500(make_app, post, caplog, damage):
    app = make_app(PROPAGATE_EXCEPTIONS=False)
    with app.app_context(), transaction() as connection:
        connection.exec_driver_sql(f"UPDATE posts SET {damage}")
    for path in ("/posts", f"/posts/{post['id']}"):
        assert_problem(app.test_client().get(path), 500)
    assert "Traceback" in caplog.text


@pytest.mark.skipif(not POSTGRES, reason="is for Postgres")
@pytest.mark.parametrize(("error", "status"), [(None, 503), (NoSuchPost, 404)])
def test_a_connection_that_is_lost_at_the_end_of_a_request(make_app, error, status):
    """A commit that fails gets 503. If the view has failed anyway, nothing is lost."""
    app = make_app(PROPAGATE_EXCEPTIONS=False)

    @app.get("/lost")
    def lose_connection():
        with unit_of_work():
            process = execute(sa.text("SELECT pg_backend_pid()")).scalar()
            with psycopg.connect(POSTGRES) as other:
                other.execute("SELECT pg_terminate_backend(%s, 5000)", [process])
            if error:
                raise error
        return "done"

    client = app.test_client()
    assert_problem(client.get("/lost"), status)
    assert client.get("/posts").status_code == 200


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


@pytest.mark.skipif(not POSTGRES, reason="SQLite has no locks of tables")
def test_the_service_is_not_ready_if_the_database_takes_over_two_seconds(app, anonymous):
    with app.app_context(), transaction() as connection:
        connection.exec_driver_sql("LOCK TABLE alembic_version")
        assert assert_problem(anonymous.get("/readyz"), 503)["code"] == "query_timeout"


def test_the_service_is_not_ready_before_the_schema_is_current(anonymous, monkeypatch):
    monkeypatch.setattr("posting.db.migrations.revisions.head_revision", lambda: "9999")
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


# Domain names as browsers send them: straße.de, faß.de, ς.gr and one in Persian with a ZWNJ, which
# the former standard for such names refuses, and one in a script that is newer than it.
INTERNATIONALIZED = (
    *("xn--strae-oqa.de", "xn--fa-hia.de", "xn--3xa.gr", "xn--mgba3gch31f060k.com"),
    "xn--10cl1a0b660p.com",
)
HOST_PATHS = ("/posts", "/", "/p/{id}", "/feed.atom", "/feed.json", "/healthz")


def get(app, path, host):
    """Return the status and body of a GET for a host; without one, of a client of a Unix socket.

    Test clients cannot decode all hosts.
    """
    environ = create_environ(path, headers={"Host": host or ""})
    if host is None:  # as gunicorn does for HTTP/1.0
        del environ["HTTP_HOST"]
        environ |= {"SERVER_NAME": "/run/posting.sock", "SERVER_PORT": ""}
    body, status, _ = run_wsgi_app(app, environ)
    return status, b"".join(body).decode()


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
            ("[::1", 400),
            ("example.org:", 400),
            ("evil.example", 400),
            ("example.org.evil.example", 400),
            ("", 400),
        ],
    )
    def test_with_a_public_url_other_hosts_get_400(self, make_app, host, status):
        client = make_app(PUBLIC_URL="https://example.org").test_client()
        response = client.get("/healthz", headers={"Host": host})
        assert response.status_code == status
        if status == 400:
            assert_problem(response, 400)
            assert_problem(client.get("/nothing", headers={"Host": host}), 400)
            assert_problem(client.post("/signin", json={}, headers={"Host": host}), 400)

    @pytest.mark.parametrize("host", ["10.0.0.2", "10.0.0.2:8000", "[2001:db8::2]:8000", "[::2]"])
    def test_only_the_health_of_the_service_is_told_by_address(self, make_app, host):
        client = make_app(PUBLIC_URL="https://example.org").test_client()
        for path, status in {"/healthz": 200, "/readyz": 200, "/metrics": 400, "/": 400}.items():
            response = client.get(path, headers={"Host": host})
            assert response.status_code == status, path
        assert_problem(client.post("/signin", json={}, headers={"Host": host}), 400)

    @pytest.mark.parametrize("public_url", ["", "https://example.org"])
    def test_what_is_no_host_gets_400(self, app, post, monkeypatch, public_url):
        monkeypatch.setitem(app.config, "PUBLIC_URL", public_url)
        for host in (
            *("", "example.org:", "my_app:", "my_app:x", "my_app:99999", "[my_app]", "a/b", "a@b"),
            *("xn--", "XN--A", "a.xn--a-.b", "xn--a" * 12, "xn--" + "a" * 4000),
            *("xn--zva", "xn--a-pib", "xn--z3e", "xn--ddg", "xn--eb9b", "xn--ksa"),
            *("1.2.3.999", "a.1", "a.0X", "08.1.2.3"),
            *("[::1", "[1::2::3]", "[:]", "[::1.2.3]:80"),
        ):
            for path in HOST_PATHS:
                status, body = get(app, path.format(**post), host)
                assert status == "400 BAD REQUEST", (host, path)
                is_page = body.startswith("<!doctype html>")
                assert ("<h1>This " if is_page else "host") in body

    @pytest.mark.parametrize("host", [".", "a..b", "x" * 64])
    def test_a_name_with_a_label_of_an_invalid_length_gets_400(self, app, host):
        for path in HOST_PATHS:
            assert get(app, path, host)[0] == "400 BAD REQUEST"

    def test_without_a_public_url_any_host_is_served(self, app, post, caplog):
        for host in (
            *("localhost", "example.org:8000", "a.example.org.", "XN--BCHER-KVA.example", "7.dev"),
            *("127.0.0.1", "127.0.0.1:8000", "[::1]", "[2001:DB8::1]:8000", "0x.example"),
            *("my_app", "my_app:8000", "MY_APP.internal", "_", "1.2.3", "x." * 150),
            *INTERNATIONALIZED,
        ):
            for path in HOST_PATHS:
                status, body = get(app, path.format(**post), host)
                assert status == "200 OK", (host, path)
                assert not path.startswith("/feed") or f"http://{host}/p/{post['id']}" in body
        assert {record.levelname for record in caplog.records} == {"INFO"}

    def test_a_default_port_is_left_out_of_urls(self, app, post):
        for host in ("example.org:80", "my_app:80"):
            body = get(app, "/feed.json", host)[1]
            assert f"http://{host.removesuffix(':80')}/p/" in body

    @pytest.mark.parametrize("host", [*INTERNATIONALIZED, "[2001:db8::1]"])
    def test_the_host_of_the_public_url_is_served(self, make_app, post, host):
        app = make_app(PUBLIC_URL=f"https://{host}")
        for sent in (host, f"{host}:8443", host.upper()):
            for path in HOST_PATHS:
                assert get(app, path.format(**post), sent)[0] == "200 OK", (sent, path)

    @pytest.mark.parametrize("public_url", ["", "https://example.org"])
    def test_without_a_host_a_client_of_a_unix_socket_is_local(
        self, app, post, monkeypatch, public_url
    ):
        monkeypatch.setitem(app.config, "PUBLIC_URL", public_url)
        for path in HOST_PATHS:
            status, body = get(app, path.format(**post), None)
            assert status == "200 OK", path
            url = f"{public_url or 'http://localhost'}/p/{post['id']}"
            assert not path.startswith("/feed") or url in body

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
