"""Connections to SQLite, its write lock, and full disks."""

import subprocess
import sys
from contextlib import closing

import pytest
import sqlalchemy as sa
from pysqlite3 import dbapi2 as sqlite

from posting.accounts.models import User
from posting.db.base import db
from posting.db.engine import close_connections, sqlite_file
from posting.db.transactions import begin_on, transaction
from posting.db.types import now
from posting.testbed import sign_in
from tests.conftest import POSTGRES
from tests.helpers import ROOT
from tests.helpers.assertions import assert_problem

pytestmark = pytest.mark.skipif(bool(POSTGRES), reason="is for SQLite")
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


def test_sqlite_connections_are_configured(app):
    expected = {
        "busy_timeout": 5000,
        "journal_mode": "wal",
        "synchronous": 2,  # FULL
        "foreign_keys": 1,
        "journal_size_limit": 67108864,
        "wal_autocheckpoint": 4000,
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


@pytest.mark.usefixtures("short_lock_timeout")
def test_a_held_write_lock_blocks_writes_and_no_reads(app, alice, post):
    """While another process writes, requests can read. Writes get 503 with `Retry-After`."""
    with app.app_context(), transaction() as writer:
        writer.execute(sa.update(User).values(bio="x"))
        assert alice.get("/posts").status_code == 200
        assert alice.get("/users/me").json["bio"] is None
        response = alice.post("/posts", json={"title": "a", "content": "b"})
        assert_problem(response, 503)
        assert response.headers["Retry-After"] == "1"
    assert alice.patch(f"/posts/{post['id']}", json={"title": "b"}).status_code == 200


def test_a_full_disk_gets_507_for_writes_only(empty_app):
    """On a database of its own, since that of other tests has free pages."""

    def allow_no_new_page(connection, *_):
        connection.execute("PRAGMA max_page_count=1")  # or the present number, if it is larger

    client = sign_in(empty_app, "ada")
    body = {"title": "a", "content": "b" * 100_000}
    with empty_app.app_context():
        engine = db.engine
        close_connections()
    sa.event.listen(engine, "checkout", allow_no_new_page)
    for _ in range(2):
        response = client.post("/posts", json=body)
        assert assert_problem(response, 507)["code"] == "storage_full"
        assert "Retry-After" not in response.headers
        assert client.get("/posts").json == []
    sa.event.remove(engine, "checkout", allow_no_new_page)
    with empty_app.app_context():
        close_connections()
    assert client.post("/posts", json=body).status_code == 201


def test_a_disk_quota_gets_507_for_writes_only(tmp_path):
    """In a process of its own, whose files may not grow, which SQLite takes for an I/O error."""
    command = [sys.executable, "-c", EXCEED_QUOTA, f"sqlite:///{tmp_path / 'posting.db'}"]
    run = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    full, shown, written = "507 True None", "200 False None", "201 False None"
    assert run.stdout.splitlines() == [full, shown, full, shown, written]


@pytest.fixture
def engine(app):
    with app.app_context():
        yield db.engine


def suspend_everyone():
    with transaction() as connection:
        connection.execute(sa.update(User).values(suspended_at=now()))


def test_a_writer_tries_often_to_lock_while_another_process_writes(engine, monkeypatch):
    pauses = []
    with closing(sqlite.connect(sqlite_file(), isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")

        def pause(seconds):
            pauses.append(seconds)
            if len(pauses) == 100:
                other.execute("ROLLBACK")

        monkeypatch.setattr("posting.db.sqlite.sleep", pause)
        suspend_everyone()
    assert len(pauses) == 100
    assert max(pauses) < 0.01


def test_a_writer_that_has_waited_restores_the_timeout_of_its_connection(engine, monkeypatch):
    monkeypatch.setattr("posting.db.sqlite.WRITE_LOCK_SECONDS", 0.1)
    with closing(sqlite.connect(sqlite_file(), isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with engine.connect() as connection:
            with pytest.raises(sa.exc.OperationalError, match="database is locked"):
                begin_on(connection, writes=True)
            raw = connection.connection.driver_connection
            assert raw.execute("PRAGMA busy_timeout").fetchone() == (5000,)
