"""The version of a database, which every commit changes and no reader."""

import os
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from time import monotonic, sleep

import psycopg
import pytest
import sqlalchemy as sa
from pysqlite3 import dbapi2 as sqlite

from posting.accounts.models import User
from posting.db import commits
from posting.db.base import db
from posting.db.commits import CommitWatch
from posting.db.transactions import begin_on, snapshot, transaction
from posting.posts.models import Post
from tests.conftest import POSTGRES

on_postgres = pytest.mark.skipif(not POSTGRES, reason="is for Postgres")


@pytest.fixture
def engine(app):
    with app.app_context():
        yield db.engine


@pytest.fixture
def watch(engine):
    return CommitWatch(engine)


def write(connection, name):
    connection.execute(sa.insert(User).values(username=name, password_hash="x"))


def is_unchanged_by(watch, action):
    """Return whether the version is the same after an action.

    Other tests commit to the same Postgres server, so one success in two minutes is enough.
    """
    end = monotonic() + (120 if POSTGRES else 0)
    while True:
        before = watch.version()
        action()
        if watch.version() == before is not None:
            return True
        if monotonic() > end:
            return False


def test_each_commit_changes_the_version(watch):
    versions = [watch.version()]
    for number in range(20):
        with transaction() as connection:
            write(connection, f"user-{number}")
        versions.append(watch.version())
    assert None not in versions
    assert len(set(versions)) == 21


def test_reading_does_not_change_the_version(engine, watch):
    def read():
        with engine.connect() as connection:
            connection.execute(sa.select(User)).all()

    assert is_unchanged_by(watch, read)
    with snapshot() as reader:  # an idle reader within a transaction
        reader.execute(sa.select(User)).all()
        assert is_unchanged_by(watch, lambda: None)


def test_what_is_committed_during_a_transaction_changes_the_version(watch):
    with transaction() as writer:
        write(writer, "first")
        before = watch.version()
        writer.commit()
    assert watch.version() != before


@on_postgres
def test_transactions_that_end_in_any_order_change_the_version(engine, watch):
    """Each has a savepoint, which is a transaction within it."""
    one, two, three = (engine.connect() for _ in range(3))
    for connection in (one, two, three):
        begin_on(connection, writes=True)
    seen = [watch.version()]
    for number, connection in enumerate((one, two, three)):
        write(connection, f"user-{number}")
        with connection.begin_nested():
            write(connection, f"nested-{number}")
    for connection in (two, three, one):
        seen.append(watch.version())
        connection.commit()
        connection.close()
    seen.append(watch.version())
    assert len(set(seen[1:])) == 4


@on_postgres
def test_a_standby_has_no_version(watch, monkeypatch):
    """Its snapshots do not list the transactions that run on the primary."""
    standby = commits.SNAPSHOT.replace(b"pg_is_in_recovery()", b"true")
    assert standby != commits.SNAPSHOT
    monkeypatch.setattr(commits, "SNAPSHOT", standby)
    assert watch.version() is None


@on_postgres
def test_a_lost_connection_makes_another_version(engine, watch):
    before = watch.version()
    [(_, connection)] = watch._connections.values()
    with psycopg.connect(POSTGRES, autocommit=True) as server:
        server.execute("SELECT pg_terminate_backend(%s)", [connection.info.backend_pid])
    while watch.version() is not None:  # until the server has ended it
        sleep(0.01)
    watch._retry_at = 0
    assert watch.version()[0] == before[0] + 1


def test_the_connection_can_be_closed(watch):
    """Otherwise the database of a test could not be dropped."""
    number, _ = watch.version()[:2]
    [(_, connection)] = watch._connections.values()
    watch.close()
    assert watch._connections == {}
    with pytest.raises((psycopg.OperationalError, sqlite.ProgrammingError)):
        connection.execute("SELECT 1")
    assert watch.version()[0] == number + 1


def test_a_database_that_cannot_be_opened_has_no_version(tmp_path, monkeypatch):
    url = "postgresql+psycopg://127.0.0.1:1/x" if POSTGRES else f"sqlite:///{tmp_path}/none/x.db"
    module = {} if POSTGRES else {"module": sqlite}
    watch = CommitWatch(sa.create_engine(url, **module))
    assert watch.version() is None
    attempts = []
    monkeypatch.setattr(watch._dialect, "connect", lambda *_, **__: attempts.append(1))
    assert watch.version() is None
    assert attempts == []  # the next one is only after RETRY_AFTER


def test_a_forked_process_has_a_connection_of_its_own(watch):
    watch.version()
    [(process, (_, connection))] = watch._connections.items()
    reader, writer = os.pipe()
    if (child := os.fork()) == 0:
        watch.version()
        own = watch._connections.get(os.getpid())
        os.write(writer, b"1" if own and own[1] is not connection else b"0")
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reader, 1) == b"1"
    assert watch.version() is not None
    assert watch._connections[process][1] is connection
    os.close(reader)
    os.close(writer)


def test_no_version_is_returned_before_a_commit_and_after_it(app, engine, watch):
    """A writer says what it has committed; a version asked for later is never an old one."""
    acknowledged, finished = [0], Event()

    def count_up():
        with app.app_context():
            while not finished.is_set():
                number = acknowledged[0] + 1
                with transaction() as connection:
                    connection.execute(sa.update(Post).values(comment_count=number))
                acknowledged[0] = number

    with transaction() as connection:
        connection.execute(sa.insert(Post).values(title="x", content="x"))
    counts = {}
    with ThreadPoolExecutor() as pool:
        counting = pool.submit(count_up)
        try:
            while (acknowledged[0] < 200 or len(counts) < 20) and not counting.done():
                oldest, version = acknowledged[0], watch.version()
                assert version is not None
                with engine.connect() as connection:
                    found = connection.scalar(sa.select(Post.comment_count))
                assert counts.setdefault(version, found) >= oldest
        finally:
            finished.set()
        counting.result()
