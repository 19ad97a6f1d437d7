"""Connections to SQLite: their settings, their deadline, and the turns of threads that write.

SQLite has one writer at a time. Its own wait for the write lock pauses between two tries, so a
thread could starve. The threads of a process wait in a queue instead, and write on one connection.
"""

import math
import os
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Lock
from time import monotonic, sleep
from typing import Any

import sqlalchemy as sa
from pysqlite3 import dbapi2 as sqlite
from sqlalchemy import event

from posting.config import READ_SECONDS
from posting.db.errors import FILE_MOVED, error_reason

BUSY_TIMEOUT_PRAGMA = "busy_timeout=5000"  # milliseconds, for everything but the write lock
# busy_timeout comes first, so that the other pragmas wait for a lock instead of failing.
SQLITE_PRAGMAS = (
    BUSY_TIMEOUT_PRAGMA,
    "journal_mode=WAL",
    "synchronous=FULL",
    "foreign_keys=ON",
    "journal_size_limit=67108864",
    # Pages. With 1,000, one post in 41 waits for a checkpoint, and 60 % more is written to disk.
    "wal_autocheckpoint=4000",
    "cache_size=-500",  # kilobytes per connection; the kernel caches the file anyway
    "mmap_size=0",
    "trusted_schema=OFF",
)
PRAGMA_TRIES = 20
PRAGMA_PAUSE = 0.05  # seconds between two tries

WRITE_LOCK_SECONDS = 5
WRITE_LOCK_PAUSE = 0.002  # seconds between two tries

STEPS_PER_CHECK = 10_000  # of SQLite's virtual machine: 1 ms, or 70 ms in a search of long texts

# In the `info` of a connection.
DEADLINE = "deadline"  # by the monotonic clock
FILES = "files"  # the paths of the files that it has opened, with their identities


Identity = tuple[int, int]  # of a file: its device and its number there


def listen(engine: sa.Engine, file: Path | None) -> None:
    """Register what happens to connections, in the order in which it happens.

    A database in memory has no `file`, and its only connection waits for no other.
    """
    event.listen(engine, "connect", _configure)
    if file:
        _watch_files(engine, file)
    event.listen(engine, "connect", _stop_at_deadline)
    event.listen(engine, "checkout", _set_deadline)
    event.listen(engine, "handle_error", _disconnect_if_read_only)


def _watch_files(engine: sa.Engine, file: Path) -> None:
    """Remember which files each connection has open, and let no other connection open others."""
    paths = [f"{file}{suffix}" for suffix in ("", "-wal", "-shm")]
    opened: dict[Any, dict[str, Identity]] = {}

    def refuse_other_files(*_: Any) -> None:
        for files in [*opened.values()]:
            _compare_files(files)

    def remember_files(_connection: Any, record: Any) -> None:
        found = {path: identity for path in paths if (identity := _identify(path))}
        record.info[FILES] = opened[record] = found

    def forget_files(_connection: Any, record: Any) -> None:
        opened.pop(record, None)

    event.listen(engine, "do_connect", refuse_other_files)
    event.listen(engine, "connect", remember_files)
    event.listen(engine, "close", forget_files)


def require_own_files(connection: sa.Connection) -> None:
    """Raise OperationalError if a file of the database was deleted or replaced.

    SQLite would continue to write into the files that it has open. What it writes would be lost
    when the process ends.
    """
    try:
        _compare_files(connection.info.get(FILES, {}))
    except sqlite.OperationalError as error:
        raise sa.exc.OperationalError("BEGIN IMMEDIATE", None, error) from None


def _compare_files(opened: Mapping[str, Identity]) -> None:
    for path, identity in opened.items():
        if _identify(path) != identity:
            error = sqlite.OperationalError(
                f"{path} was deleted or replaced while the service has it open; restart the service"
            )
            error.sqlite_errorname = FILE_MOVED
            raise error


def _identify(path: str) -> Identity | None:
    """Return the numbers of a file that no other file has, or None if there is no file."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _configure(connection: Any, _record: Any) -> None:
    """Set the pragmas, and retry each while the file is locked.

    When several connections switch a new file to WAL at once, SQLite detects a deadlock and fails
    one of them immediately, whatever busy_timeout is.
    """
    connection.isolation_level = None  # transactions begin in `begin`, not in the driver
    for pragma in SQLITE_PRAGMAS:
        for attempt in range(1, PRAGMA_TRIES + 1):
            try:
                connection.execute(f"PRAGMA {pragma}")
                break
            except sqlite.OperationalError:
                if attempt == PRAGMA_TRIES:
                    raise
                sleep(PRAGMA_PAUSE)
            except UnicodeDecodeError as error:  # SQLite quotes a damaged schema in its message
                damaged = sqlite.DatabaseError("malformed database schema")
                damaged.sqlite_errorname = "SQLITE_CORRUPT"
                raise damaged from error


def _stop_at_deadline(connection: Any, record: Any) -> None:
    """Interrupt queries after the deadline of the connection. SQLite has no timeout of its own."""
    info = record.info
    info[DEADLINE] = math.inf
    connection.set_progress_handler(lambda: monotonic() > info[DEADLINE], STEPS_PER_CHECK)


def _set_deadline(_connection: Any, record: Any, _proxy: Any) -> None:
    record.info[DEADLINE] = monotonic() + READ_SECONDS


def begin(connection: sa.Connection, *, writes: bool) -> None:
    """Begin a transaction. With `writes`, take the write lock now: to take it later could fail.

    Raise OperationalError if another process holds the write lock for five seconds.
    """
    raw: Any = connection.connection.driver_connection
    if raw.in_transaction:
        return  # an in-memory database has one connection, which nested app contexts share
    if not writes:
        connection.exec_driver_sql("BEGIN")
        return
    require_own_files(connection)
    connection.info[DEADLINE] = math.inf
    give_up = monotonic() + WRITE_LOCK_SECONDS
    # SQLite's own wait pauses for up to 0.1 seconds between tries, so a writer could miss all gaps.
    raw.execute("PRAGMA busy_timeout=0")
    try:
        while True:
            try:
                connection.exec_driver_sql("BEGIN IMMEDIATE")
                break
            except sa.exc.OperationalError as error:
                if error_reason(error) != "database is locked" or monotonic() >= give_up:
                    raise
            sleep(WRITE_LOCK_PAUSE)
    finally:
        if not connection.invalidated:
            raw.execute(f"PRAGMA {BUSY_TIMEOUT_PRAGMA}")


def _disconnect_if_read_only(context: sa.engine.ExceptionContext) -> None:
    """Replace connections that opened the file read-only: it may be writable by now."""
    if "readonly database" in str(context.original_exception):
        context.is_disconnect = True


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
