"""Writing to SQLite: the threads of a process take turns on one connection.

SQLite has one writer at a time. Its own wait for the write lock pauses between two tries, so a
thread could miss all gaps. Threads of one process wait in a queue instead.
"""

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Event, Lock
from time import sleep
from typing import Any

import sqlalchemy as sa
from pysqlite3 import dbapi2 as sqlite

from posting.db.sqlite import WRITE_LOCK_SECONDS, begin


class FairLock:
    """A lock that threads get in the order in which they have asked for it."""

    def __init__(self) -> None:
        self._lock = Lock()  # on the next two attributes
        self._is_taken = False
        self._queue: deque[Event] = deque()

    def acquire(self, timeout: float) -> bool:
        """Wait for the lock, and return whether this thread has got it within `timeout` seconds."""
        with self._lock:
            if not self._is_taken:
                self._is_taken = True
                return True
            is_next = Event()
            self._queue.append(is_next)
        try:
            is_next.wait(timeout)
        except BaseException:  # such as the end of the process
            if not self._leave(is_next):
                self.release()
            raise
        return not self._leave(is_next)

    def release(self) -> None:
        """Give the lock to the thread that has waited longest, if one waits."""
        with self._lock:
            if not self._queue:
                self._is_taken = False
                return
            self._queue.popleft().set()
        # Let the next thread run at once. Otherwise it has the lock, but waits for the interpreter
        # while this thread makes its response: eight writers would write a tenth less.
        sleep(0)

    def _leave(self, waiting: Event) -> bool:
        """Leave the queue, and return whether the thread was still in it."""
        with self._lock, suppress(ValueError):
            self._queue.remove(waiting)
            return True
        return False


class Writer:
    """The connection to SQLite with which the threads of a process write."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine
        self._turns = FairLock()
        self._connection: sa.Connection | None = None

    @contextmanager
    def transaction(self) -> Iterator[sa.Connection]:
        """Wait for the turn of this thread, and yield the connection in a transaction.

        Raise OperationalError after 5 seconds, and if another process holds the write lock for 5
        more.
        """
        if not self._turns.acquire(WRITE_LOCK_SECONDS):
            raise _operational_error("BEGIN IMMEDIATE", "database is locked", "SQLITE_BUSY")
        try:
            self._connection = self._connection or self._engine.connect()
            connection = self._connection
            begin(connection, writes=True)
            yield connection
            if not _is_open(connection):
                rolled_back = "the transaction has been rolled back"
                raise _operational_error("COMMIT", rolled_back, "SQLITE_FULL")
            connection.commit()
        except BaseException:
            self._roll_back()
            raise
        finally:
            self._turns.release()

    def _roll_back(self) -> None:
        """Roll back, or close the connection if that fails, so that no half of a change is left.

        After a failed commit, SQLAlchemy does not roll back, as it assumes that the transaction has
        ended.
        """
        if self._connection is None:
            return
        is_clean = False
        try:
            with suppress(sa.exc.SQLAlchemyError):
                self._connection.rollback()
                is_clean = not _is_open(self._connection)
        finally:  # even if the end of the process interrupts this
            if not is_clean:
                self.close()

    def close(self) -> None:
        """Close the connection, which rolls back. The next transaction opens another one."""
        if connection := self._connection:
            self._connection = None
            connection.invalidate()
            connection.close()


def _is_open(connection: sa.Connection) -> bool:
    """Return whether a transaction is open. SQLite itself rolls back if the disk is full."""
    raw: Any = connection.connection.driver_connection
    return bool(raw.in_transaction)


def _operational_error(statement: str, message: str, name: str) -> sa.exc.OperationalError:
    error = sqlite.OperationalError(message)
    error.sqlite_errorname = name
    return sa.exc.OperationalError(statement, None, error)
