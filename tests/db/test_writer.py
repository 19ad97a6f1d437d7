"""The threads of a process take turns to write to SQLite."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta
from threading import Event

import pytest
import sqlalchemy as sa
from pysqlite3 import dbapi2 as sqlite

from posting.db import sqlite as sqlite_module
from posting.db.base import db
from posting.db.engine import close_connections, sqlite_file
from posting.db.sqlite import FairLock
from posting.db.transactions import WRITER
from posting.db.types import now
from posting.web.limits import RateWindow
from tests.conftest import POSTGRES
from tests.live.load import wait_until

on_sqlite = pytest.mark.skipif(bool(POSTGRES), reason="is for SQLite")


@pytest.fixture
def pool():
    with ThreadPoolExecutor(40) as pool:
        yield pool


class TestFairLock:
    @pytest.fixture
    def lock(self):
        return FairLock()

    @pytest.fixture
    def queue(self, lock, pool):
        """Return a function that calls another in a thread, and returns when this waits."""

        def queue(function, *arguments):
            waiting = len(lock._queue)
            future = pool.submit(function, *arguments)
            wait_until(lambda: len(lock._queue) == waiting + 1)
            return future

        return queue

    def test_threads_get_it_in_the_order_in_which_they_asked(self, lock, queue):
        order = []

        def take(number):
            assert lock.acquire(60)
            order.append(number)
            lock.release()

        assert lock.acquire(60)
        threads = [queue(take, number) for number in range(8)]
        lock.release()
        for thread in threads:
            thread.result()
        assert order == [*range(8)]

    def test_a_thread_that_releases_it_waits_behind_the_others(self, lock, queue, pool):
        order = []

        def take(name):
            assert lock.acquire(60)
            order.append(name)
            lock.release()

        assert lock.acquire(60)
        other = queue(take, "other")
        lock.release()
        take("again")
        other.result()
        assert order == ["other", "again"]

    def test_a_wait_ends(self, lock):
        assert lock.acquire(60)
        assert not lock.acquire(0.01)
        lock.release()
        assert lock.acquire(0.01)

    def test_a_thread_that_stops_waiting_is_not_chosen(self, lock, pool):
        """Or the lock would be lost, and the others would wait forever."""
        taken = []

        def attempt(number):
            if lock.acquire(0.0001):
                taken.append(number)
                lock.release()

        list(pool.map(attempt, range(2000)))
        assert taken
        assert lock.acquire(0)


@on_sqlite
class TestWriter:
    @pytest.fixture
    def writer(self, app):
        return app.extensions[WRITER]

    @pytest.fixture
    def stored(self, app):
        """Return a function that returns the keys of the rows that another connection sees."""

        def stored():
            with app.app_context(), closing(sqlite.connect(sqlite_file())) as connection:
                rows = connection.execute("SELECT key FROM rate_windows").fetchall()
            return {key for (key,) in rows}

        return stored

    @pytest.fixture
    def write(self, writer):
        """Return a function that writes a row in a transaction."""

        def write(key, *, then=lambda _: None):
            with writer.transaction() as connection:
                values = {"key": key, "hits": 1, "ends_at": now() + timedelta(hours=1)}
                connection.execute(sa.insert(RateWindow), values)
                then(connection)

        return write

    def test_each_transaction_is_committed_at_its_end(self, write, stored):
        for key in "ab":
            write(key)
            assert key in stored()

    def test_no_thread_begins_before_another_has_committed(self, pool, write, stored):
        seen, may_end = [], Event()
        first = pool.submit(write, "first", then=lambda _: may_end.wait(60))
        second = pool.submit(write, "second", then=lambda _: seen.append(stored()))
        may_end.set()
        first.result(), second.result()
        assert seen in ([{"first"}], [set()])  # by which of them came first
        assert stored() == {"first", "second"}

    def test_an_error_rolls_back(self, write, stored):
        def fail(_connection):
            raise KeyError("a view has failed")

        with pytest.raises(KeyError):
            write("a", then=fail)
        write("b")
        assert stored() == {"b"}

    def test_a_commit_that_fails_rolls_back(self, app, write, stored):
        def fail(_connection):
            raise sa.exc.OperationalError("COMMIT", None, sqlite.OperationalError("disk is full"))

        with app.app_context():
            engine = db.engine
        sa.event.listen(engine, "commit", fail)
        with pytest.raises(sa.exc.OperationalError, match="disk is full"):
            write("a")
        sa.event.remove(engine, "commit", fail)
        write("b")
        assert stored() == {"b"}

    def test_a_rollback_that_is_interrupted_closes_the_connection(self, app, write, stored):
        def interrupt(_connection):
            raise SystemExit

        def fail(_connection):
            sa.event.listen(engine, "rollback", interrupt)
            raise KeyError("a view has failed")

        with app.app_context():
            engine = db.engine
        with pytest.raises(SystemExit):
            write("a", then=fail)
        sa.event.remove(engine, "rollback", interrupt)
        write("b")
        assert stored() == {"b"}

    def test_a_transaction_that_sqlite_has_rolled_back_is_an_error(self, write, stored):
        """SQLite does so after some errors, such as a full disk."""

        def end(connection):
            connection.connection.driver_connection.execute("ROLLBACK")

        with pytest.raises(sa.exc.OperationalError, match="rolled back"):
            write("a", then=end)
        write("b")
        assert stored() == {"b"}

    def test_a_connection_that_was_closed_is_an_error(self, app, write, stored):
        def close(_connection):
            with app.app_context():
                close_connections()

        with pytest.raises(sa.exc.SQLAlchemyError):
            write("a", then=close)
        write("b")
        assert stored() == {"b"}

    def test_a_thread_that_waits_too_long_fails(self, pool, write, stored, monkeypatch):
        monkeypatch.setattr(sqlite_module, "WRITE_LOCK_SECONDS", 0.05)
        begun, may_end = Event(), Event()
        first = pool.submit(write, "first", then=lambda _: (begun.set(), may_end.wait(60)))
        assert begun.wait(60)
        with pytest.raises(sa.exc.OperationalError, match="database is locked"):
            write("a")
        may_end.set()
        first.result()
        write("b")
        assert stored() == {"first", "b"}

    def test_a_turn_ends_if_another_process_has_the_lock(self, app, write, stored, monkeypatch):
        monkeypatch.setattr("posting.db.sqlite.WRITE_LOCK_SECONDS", 0.05)
        with app.app_context():
            file = sqlite_file()
        with closing(sqlite.connect(file, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(sa.exc.OperationalError, match="database is locked"):
                write("a")
        write("b")
        assert stored() == {"b"}
