"""Connections to SQLite: their settings, their deadline, and how their transactions begin."""

import math
import os
from contextlib import suppress
from time import monotonic, sleep
from typing import Any

import sqlalchemy as sa
from pysqlite3 import dbapi2 as sqlite
from sqlalchemy import event

from posting.db.access import READ_SECONDS, only_reads
from posting.db.errors import error_reason

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

DEADLINE = "deadline"  # by the monotonic clock, in a connection's `info`


def listen(engine: sa.Engine, *, in_memory: bool) -> None:
    """Register what happens to connections, in the order in which it happens.

    A database in memory has no file, and its only connection waits for no other.
    """
    if not in_memory:
        event.listen(engine, "do_connect", _create_private_file)  # before SQLite creates it
    event.listen(engine, "connect", _configure)
    event.listen(engine, "connect", _stop_at_deadline)
    event.listen(engine, "checkout", _set_deadline)
    event.listen(engine, "handle_error", _disconnect_if_read_only)


def _create_private_file(_dialect: Any, _record: Any, cargs: list[str], cparams: Any) -> None:
    """Create a new database for its owner alone; SQLite gives the files beside it the same mode."""
    if not cparams.get("uri"):  # which may forbid creating it
        with suppress(OSError):  # SQLite raises an error of its own
            os.close(os.open(cargs[0], os.O_CREAT, 0o600))


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
    record.info[DEADLINE] = monotonic() + READ_SECONDS if only_reads() else math.inf


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
