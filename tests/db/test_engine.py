"""Connection settings, the locks that requests take, and the indexes that they use."""

import select
import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime, timedelta
from unittest.mock import Mock

import pytest
import sqlalchemy as sa
from pysqlite3 import dbapi2 as sqlite

from posting import create_app
from posting.accounts import passwords
from posting.accounts.models import Session, User
from posting.comments.models import Comment
from posting.db.access import database_access, only_reads
from posting.db.base import db
from posting.db.engine import is_in_memory
from posting.db.errors import violated_constraint
from posting.db.transactions import (
    READER,
    execute,
    fetch_all,
    is_in_transaction,
    rollback,
    snapshot,
)
from posting.db.types import UtcDateTime, now
from posting.images.models import Image, ImageData
from posting.posts.models import Post
from posting.testbed import sign_in
from posting.web import request_body
from posting.web.endpoint import PUBLIC, Blueprint, Endpoint
from tests.conftest import PASSWORD, POSTGRES
from tests.helpers import ROOT
from tests.helpers.assertions import assert_problem

on_sqlite = pytest.mark.skipif(bool(POSTGRES), reason="is for SQLite")
on_postgres = pytest.mark.skipif(not POSTGRES, reason="is for Postgres")
# Write posts while no file may exceed 600 KiB, then without this limit, and print the responses.
EXCEED_QUOTA = """
import resource, sys
from posting import create_app, testbed

app = create_app({"TESTING": True, "DATABASE_URL": sys.argv[1]})
client = testbed.sign_in(app, "ada")
body = {"title": "a", "content": "b" * 100_000}
unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (600 * 1024, unlimited[1]))
while (response := client.post("/posts", json=body)).status_code == 201:
    pass
responses = [response, client.get("/posts"), client.post("/posts", json=body), client.get("/posts")]
resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
responses.append(client.post("/posts", json=body))
for response in responses:
    is_full = "storage_full" in response.text
    print(response.status_code, is_full, response.headers.get("Retry-After"))
"""


@pytest.fixture
def in_request(make_app):
    """Return a function that calls a function in the view of a request, and returns its result."""

    def in_request(method, function):
        results = []

        def view():
            results.append(function())
            rollback()

        blueprint = Blueprint("extra", __name__, description="Extra")
        registered = "GET" if method == "HEAD" else method
        endpoint = Endpoint("extra", "/extra", registered, view, access=PUBLIC, status=204)
        blueprint.add_url_rule("/extra", "extra", endpoint, methods=[registered])
        app = make_app()
        app.register_blueprint(blueprint)
        assert app.test_client().open("/extra", method=method).status_code == 204
        [result] = results
        return result

    return in_request


@on_sqlite
def test_sqlite_connections_are_configured(app):
    expected = {
        "busy_timeout": 5000,
        "journal_mode": "wal",
        "synchronous": 2,  # FULL
        "foreign_keys": 1,
        "journal_size_limit": 67108864,
        "cache_size": -500,
        "mmap_size": 0,
        "trusted_schema": 0,
    }
    with app.app_context(), db.engine.connect() as connection:
        found = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar_one() for name in expected
        }
        version = connection.exec_driver_sql("SELECT sqlite_version()").scalar_one()
    assert found == expected
    assert tuple(map(int, version.split("."))) >= (3, 51, 3)


@on_postgres
def test_postgres_connections_have_time_limits(app):
    with app.app_context(), db.engine.connect() as connection:
        for name, value in {
            "statement_timeout": "30s",
            "lock_timeout": "5s",
            "idle_in_transaction_session_timeout": "1min",
        }.items():
            assert connection.exec_driver_sql(f"SHOW {name}").scalar_one() == value
        parameters = connection.connection.driver_connection.info.get_parameters()
    assert parameters["tcp_user_timeout"] == "10000"
    assert (parameters["keepalives_idle"], parameters["keepalives_interval"]) == ("30", "10")


class TestTimeLimit:
    """Code that only reads has two seconds for each query."""

    LONG = (
        "WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n {}) SELECT max(x) FROM n"
    )

    @pytest.fixture
    def is_limited(self, monkeypatch):
        """Return a function that returns whether a function is interrupted in a long query."""
        monkeypatch.setattr("posting.db.sqlite.READ_SECONDS", -1)

        def is_limited(execute):
            if POSTGRES:
                [[timeout]] = execute("SHOW statement_timeout")
                return {"2s": True, "30s": False, "0": False}[timeout]
            try:
                return list(execute(self.LONG.format("LIMIT 20000"))) != [(20000,)]
            except sa.exc.OperationalError as error:
                return error.orig.sqlite_errorname == "SQLITE_INTERRUPT"

        return is_limited

    @staticmethod
    def fetch(sql):
        return fetch_all(sa.text(sql))

    @staticmethod
    def execute(sql):
        return execute(sa.text(sql))

    @pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS"])
    def test_requests_that_only_read_have_it(self, in_request, is_limited, method):
        assert in_request(method, lambda: is_limited(self.fetch))

    @pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
    def test_requests_that_write_do_not_have_it(self, in_request, is_limited, method):
        assert not in_request(method, lambda: is_limited(self.execute))

    def test_commands_do_not_have_it(self, app, is_limited):
        with app.app_context():
            assert not is_limited(self.execute)

    def test_a_snapshot_does_not_have_it(self, app, is_limited):
        with app.app_context(), database_access(writes=False), snapshot() as connection:
            assert not is_limited(connection.exec_driver_sql)

    def test_a_write_of_code_that_else_only_reads_does_not_have_it(self, app, is_limited):
        with app.app_context(), database_access(writes=False):
            with db.engine.execution_options(writes=True).begin() as connection:
                assert not is_limited(connection.exec_driver_sql)
            assert is_limited(self.fetch)

    @pytest.mark.parametrize("path", ["/posts?q=x", "/search?q=x"])
    def test_a_request_that_takes_longer_is_503(self, anonymous, monkeypatch, caplog, path):
        endless = "SELECT pg_sleep(30)" if POSTGRES else self.LONG.format("")
        monkeypatch.setattr(
            "posting.posts.search.results.find_posts", lambda *_: self.fetch(endless)
        )
        monkeypatch.setattr("posting.db.sqlite.READ_SECONDS", 0.05)  # on SQLite
        response = anonymous.get(path, headers={"Accept": "application/json"})
        assert response.status_code == 503
        assert response.headers["Retry-After"] == "10"
        assert "took too long" in response.text
        assert "The database did not answer" in caplog.text
        assert anonymous.get("/posts").status_code == 200


def test_the_pool_has_the_documented_size(app):
    with app.app_context():
        pool = db.engine.pool
    size = 8 if POSTGRES else 9  # one of them writes
    assert (pool.size(), pool._max_overflow, pool._timeout) == (size, 0, 5)


@pytest.mark.parametrize(
    "url",
    [
        "sqlite:///:memory:",
        "sqlite:///file::memory:?uri=true",
        "sqlite:///file:any?mode=memory&cache=shared&uri=true",
    ],
)
def test_every_in_memory_url_is_recognized(url):
    app = create_app({"TESTING": True, "DATABASE_URL": url})
    with app.app_context():
        assert is_in_memory()
    assert app.test_client().get("/readyz").status_code == 200


def test_creating_the_app_opens_no_connection(make_app):
    app = make_app()
    with app.app_context():
        assert db.engine.pool.checkedin() + db.engine.pool.checkedout() == 0


@on_postgres
def test_no_request_fails_after_a_restart_of_postgres(app, anonymous):
    assert anonymous.get("/posts").status_code == 200
    with app.app_context():
        engine = sa.create_engine(db.engine.url, poolclass=sa.NullPool)
    with engine.connect() as connection:
        connection.exec_driver_sql(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    assert anonymous.get("/posts").status_code == 200


@on_postgres
def test_only_connections_with_unread_data_are_tested(app, monkeypatch):
    with app.app_context():
        with db.engine.connect() as connection, db.engine.connect() as other:
            raw = connection.connection.driver_connection
            raw.execute("LISTEN news")
            other.connection.driver_connection.execute("NOTIFY news")
            assert select.select([raw], [], [], 10)[0]
        test = Mock(wraps=raw.execute)
        monkeypatch.setattr(raw, "execute", test)
        for _ in range(2):
            with db.engine.connect(), db.engine.connect():
                pass
        test.assert_called_once_with("SELECT 1")
        raw.execute("UNLISTEN news")


def test_reads_outside_a_transaction_share_the_pool(app):
    with app.app_context():
        for _ in range(2):
            assert fetch_all(sa.select(sa.literal(1))) == [(1,)]
            assert app.extensions[READER].pool is db.engine.pool
            db.engine.dispose()  # replaces the pool


@on_postgres
def test_a_change_of_a_columns_type_fails_at_most_one_request(app, anonymous):
    """Open connections hold statements that were prepared for the former type."""
    alter = "ALTER TABLE posts ALTER COLUMN title TYPE varchar({})"
    try:
        for _ in range(10):
            assert anonymous.get("/posts").status_code == 200
        with app.app_context(), db.engine.begin() as connection:
            connection.exec_driver_sql(alter.format(300))
        statuses = [anonymous.get("/posts").status_code for _ in range(10)]
    finally:
        with app.app_context(), db.engine.begin() as connection:
            connection.exec_driver_sql(alter.format(200))
    assert statuses[1:] == [200] * 9


@on_sqlite
def test_a_held_write_lock_blocks_writes_and_no_reads(alice, post, short_lock_timeout):
    """Reads succeed; writes are 503 with Retry-After."""
    with short_lock_timeout.begin() as writer:
        writer.execute(sa.update(User).values(bio="x"))
        assert alice.get("/posts").status_code == 200
        assert alice.get("/users/me").json["bio"] is None
        response = alice.post("/posts", json={"title": "a", "content": "b"})
        assert_problem(response, 503)
        assert response.headers["Retry-After"] == "1"
    assert alice.patch(f"/posts/{post['id']}", json={"title": "b"}).status_code == 200


@on_sqlite
def test_a_full_disk_is_507_for_writes_only(empty_app):
    """On a database of its own, since that of other tests has free pages."""

    def allow_no_new_page(connection, *_):
        connection.execute("PRAGMA max_page_count=1")  # or the present number, if it is larger

    client = sign_in(empty_app, "ada")
    body = {"title": "a", "content": "b" * 100_000}
    with empty_app.app_context():
        engine = db.engine
    engine.dispose()
    sa.event.listen(engine, "checkout", allow_no_new_page)
    for _ in range(2):
        response = client.post("/posts", json=body)
        assert assert_problem(response, 507)["code"] == "storage_full"
        assert "Retry-After" not in response.headers
        assert client.get("/posts").json == []
    sa.event.remove(engine, "checkout", allow_no_new_page)
    engine.dispose()
    assert client.post("/posts", json=body).status_code == 201


@on_sqlite
def test_a_disk_quota_is_507_for_writes_only(tmp_path):
    """In a process of its own, whose files may not grow, which SQLite takes for an I/O error."""
    command = [sys.executable, "-c", EXCEED_QUOTA, f"sqlite:///{tmp_path / 'posting.db'}"]
    run = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    full, shown, written = "507 True None", "200 False None", "201 False None"
    assert run.stdout.splitlines() == [full, shown, full, shown, written]


@pytest.fixture
def writing(app):
    """The app's engine, whose transactions write."""
    with app.app_context():
        return db.engine.execution_options(writes=True)


def suspend_everyone(engine):
    with engine.begin() as connection:
        connection.execute(sa.update(User).values(suspended_at=now()))


@on_sqlite
def test_a_writer_tries_often_to_lock_while_another_process_writes(writing, monkeypatch):
    pauses = []
    with closing(sqlite.connect(writing.url.database, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")

        def pause(seconds):
            pauses.append(seconds)
            if len(pauses) == 100:
                other.execute("ROLLBACK")

        monkeypatch.setattr("posting.db.sqlite.sleep", pause)
        suspend_everyone(writing)
    assert len(pauses) == 100
    assert max(pauses) < 0.01


@on_sqlite
def test_a_writer_that_has_waited_restores_the_timeout_of_its_connection(writing, monkeypatch):
    monkeypatch.setattr("posting.db.sqlite.WRITE_LOCK_SECONDS", 0.1)
    with closing(sqlite.connect(writing.url.database, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with writing.connect() as connection:
            with pytest.raises(sa.exc.OperationalError, match="database is locked"):
                connection.begin()
            raw = connection.connection.driver_connection
            assert raw.execute("PRAGMA busy_timeout").fetchone() == (5000,)


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_reading_begins_nothing(in_request, statements, method):
    def read():
        statements.clear()  # those of the start
        fetch_all(sa.select(User.id))
        assert not is_in_transaction()
        return list(statements)

    [statement] = in_request(method, read)
    assert statement.startswith("SELECT")


def test_the_first_write_begins(in_request, statements):
    def write():
        statements.clear()
        execute(sa.select(User.id).with_for_update())
        return is_in_transaction(), statements[0].startswith("BEGIN")

    assert in_request("POST", write) == (True, True)


def test_code_that_only_reads_cannot_write(in_request):
    def write():
        with pytest.raises(RuntimeError, match="only reads"):
            execute(sa.update(User).values(bio="x"))

    in_request("GET", write)


def test_code_only_reads_until_the_end_of_its_block():
    assert not only_reads()
    with database_access(writes=False):
        assert only_reads()
        with database_access(writes=True):
            assert not only_reads()
        with pytest.raises(KeyError), database_access(writes=False):
            raise KeyError
        assert only_reads()
    assert not only_reads()


@on_sqlite
def test_an_edit_is_one_transaction(alice, post, statements):
    alice.patch(f"/posts/{post['id']}", json={"title": "b"})
    assert [sql for sql in statements if sql.startswith("BEGIN")] == ["BEGIN IMMEDIATE"]


class TestNoLockIsHeld:
    @pytest.fixture
    def write_elsewhere(self, app):
        def write():
            with db.engine.begin() as connection:
                connection.execute(sa.update(User).values(bio="written meanwhile"))

        return write

    def test_while_a_password_is_hashed(self, app, alice, write_elsewhere, monkeypatch):
        for name in ("generate_password_hash", "check_password_hash"):
            real = getattr(passwords, name)

            def slow(*arguments, real=real):
                write_elsewhere()
                return real(*arguments)

            monkeypatch.setattr(passwords, name, slow)
        credentials = {"username": "alice", "password": PASSWORD}
        assert app.test_client().post("/signin", json=credentials).status_code == 200
        change = {"password": "another walk by the sea", "current_password": PASSWORD}
        assert alice.patch(f"/users/{alice.user['id']}", json=change).status_code == 200
        assert alice.get("/users/me").json["bio"] == "written meanwhile"

    @pytest.fixture
    def meanwhile(self, monkeypatch):
        """Call a function while a body arrives."""

        def meanwhile(function):
            def slow(data):
                function()
                return parse(data)

            parse = request_body.parse_json
            monkeypatch.setattr(request_body, "parse_json", slow)

        return meanwhile

    def test_while_a_body_arrives(self, alice, post, write_elsewhere, meanwhile):
        meanwhile(write_elsewhere)
        assert alice.patch(f"/posts/{post['id']}", json={"title": "b"}).status_code == 200

    def test_after_last_seen_at_could_not_be_updated(
        self, alice, post, write_elsewhere, meanwhile, short_lock_timeout
    ):
        with short_lock_timeout.connect() as writer:
            writer.execute(sa.update(Session).values(last_seen_at=now() - timedelta(hours=2)))
            writer.commit()
            writer.execute(sa.update(Session).values(user_agent="locked"))
            meanwhile(lambda: (writer.close(), write_elsewhere()))
            assert alice.patch(f"/posts/{post['id']}", json={"title": "b"}).status_code == 200


def test_timestamps_are_read_as_they_were_written(app):
    sample = datetime(2026, 11, 21, 9, 30, 0, 125000, UTC)
    with app.app_context():
        if POSTGRES:  # whatever the zone of the server is
            assert db.session.scalar(sa.text("SHOW timezone")) == "UTC"
        found = db.session.scalar(sa.select(sa.literal(sample, UtcDateTime())))
        assert found == sample
        assert found.tzinfo is UTC
    assert now().microsecond % 1000 == 0


@pytest.mark.parametrize(
    "row",
    [
        User(username="ab", password_hash="x"),
        User(username="x" * 33, password_hash="x"),
        User(username="abc", password_hash="x", bio="x" * 501),
        User(username="abc", password_hash="x", display_name="x" * 65),
        User(username="abc", password_hash="x", role="king"),
        Post(title="", content="x"),
        Post(title="x" * 201, content="x"),
        Post(title="x", content=""),
        Post(title="x", content="x" * 100_001),
        Post(title="x", content="x", comment_count=-1),
        Post(title="x", content="x", author_id="a" * 21),
        Session(user_id="a" * 21, token_hash="x", user_agent=""),
        Comment(post_id="p" * 21, content=""),
        Comment(post_id="p" * 21, content="x" * 10_001),
        Comment(post_id="a" * 21, content="x"),
        Comment(post_id="p" * 21, content="x", parent_id="a" * 21),
        Comment(post_id="p" * 21, content="x", author_id="a" * 21),
        Image(post_id="a" * 21, media_type="image/png", width=1, height=1, size=1),
        Image(post_id="p" * 21, media_type="image/svg+xml", width=1, height=1, size=1),
        Image(post_id="p" * 21, media_type="image/png", width=0, height=1, size=1),
        Image(post_id="p" * 21, media_type="image/png", width=1, height=1, size=1, alt="x" * 501),
        ImageData(image_id="a" * 21, data=b"x"),
    ],
    ids=range(22),
)
def test_the_database_refuses_rows_that_violate_a_constraint(app, row):
    with app.app_context():
        db.session.add(Post(id="p" * 21, title="x", content="x"))
        db.session.commit()
        db.session.merge(row)
        with pytest.raises((sa.exc.IntegrityError, sa.exc.DataError)):
            db.session.flush()


def test_a_violated_unique_constraint_is_named(app, alice):
    with app.app_context():
        db.session.add(User(username="ALICE", password_hash="x"))
        with pytest.raises(sa.exc.IntegrityError) as error:
            db.session.flush()
        assert violated_constraint(error.value) == "uq_users_username"
        db.session.rollback()
        db.session.add(Post(title="x", content="x", author_id="a" * 21))
        with pytest.raises(sa.exc.IntegrityError) as error:
            db.session.flush()
        assert violated_constraint(error.value) == ""
