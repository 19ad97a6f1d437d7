"""Writing to SQLite: the threads of a process take turns on one connection, and commit together.

SQLite has one writer at a time, and a write spends most of its time on the `fsync` of its commit.
So a request that is done does not commit while another thread waits for its turn. The waiting
thread goes on in the same transaction, and the last member of the group commits for all. No member
returns from its `commit` before that, so what has been acknowledged is on the disk.

Each member except the first has a savepoint, to which it returns if it fails::

    first   BEGIN IMMEDIATE  INSERT …  (waits)                                returns
    second                             SAVEPOINT  INSERT …  RELEASE  COMMIT   returns
"""

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Lock
from typing import Any

import sqlalchemy as sa
from pysqlite3 import dbapi2 as sqlite

from posting.db.sqlite import WRITE_LOCK_SECONDS, begin

MAX_MEMBERS = 16
SAVEPOINT = "SAVEPOINT member"
RELEASE = "RELEASE member"
ROLL_BACK = "ROLLBACK TO member"


class Group:
    """The transactions that are committed together."""

    def __init__(self) -> None:
        self.members = 0
        self.has_ended = Event()
        self.error: BaseException | None = None


class Waiting:
    """A thread that waits for its turn."""

    def __init__(self, *, alone: bool) -> None:
        self.alone = alone
        self.is_chosen = Event()


class Writer:
    """The connection to SQLite by which the threads of a process write."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine
        self._connection: sa.Connection | None = None
        self._group: Group | None = None  # of the open transaction
        self._lock = Lock()  # on the next two attributes
        self._is_taken = False  # whether a thread has its turn
        self._queue: deque[Waiting] = deque()  # the threads that wait for theirs

    def begin(self, *, alone: bool = False) -> "Member":
        """Wait for the turn of this thread, and begin its transaction, in a group if there is one.

        Raise OperationalError after 5 seconds, and if another process holds the write lock for 5
        more. The wait of a member that is done has no limit, because the others have theirs.
        """
        self._wait(alone=alone)
        try:
            return self._join(alone=alone)
        except BaseException:
            if group := self._group:
                self.commit(group)
            else:
                self._end_turn()
            raise

    def _wait(self, *, alone: bool) -> None:
        with self._lock:
            if not self._is_taken:
                self._is_taken = True
                return
            waiting = Waiting(alone=alone)
            self._queue.append(waiting)
        try:
            waiting.is_chosen.wait(WRITE_LOCK_SECONDS)
        finally:
            with self._lock:
                was_chosen = waiting not in self._queue
                if not was_chosen:
                    self._queue.remove(waiting)
        if was_chosen:
            return
        raise _operational_error("BEGIN IMMEDIATE", "database is locked", "SQLITE_BUSY")

    def _join(self, *, alone: bool) -> "Member":
        if self._group is None:
            self._connection = self._connection or self._engine.connect()
            with self.closed_on_error():
                begin(self._connection, writes=True)
            self._group = Group()
        elif self._connection is None or not is_open(self._connection):
            raise _lost(self._connection)
        else:
            self._connection.exec_driver_sql(SAVEPOINT)
        self._group.members += 1
        return Member(self, self._group, self._connection, alone=alone)

    def end(self, group: Group, *, alone: bool) -> None:
        """Let the next thread go on in the group, or commit for all of its members."""
        connection = self._connection
        is_last = alone or group.members == MAX_MEMBERS
        is_last = is_last or connection is None or not is_open(connection)
        with self._lock:
            goes_on = bool(self._queue) and not (is_last or self._queue[0].alone)
            if goes_on:
                self._queue.popleft().is_chosen.set()
        if not goes_on:
            self.commit(group)

    def commit(self, group: Group) -> None:
        """Commit the group. Its members see an error in `group.error`."""
        connection = self._connection
        try:
            with self.closed_on_error():
                if connection is None or not is_open(connection):
                    raise _lost(connection)
                connection.commit()
        except BaseException as error:
            group.error = error
        finally:
            self._end_group(group)

    def roll_back(self, group: Group) -> None:
        """Roll back the group, whose only member has failed."""
        try:
            if self._connection:
                with self.closed_on_error():
                    self._connection.rollback()
        finally:
            self._end_group(group)

    def _end_group(self, group: Group) -> None:
        self._group = None
        group.has_ended.set()
        self._end_turn()

    def _end_turn(self) -> None:
        """Choose the next thread, if one waits."""
        with self._lock:
            if self._queue:
                self._queue.popleft().is_chosen.set()
            else:
                self._is_taken = False

    @contextmanager
    def closed_on_error(self) -> Iterator[None]:
        """Close the connection if the block fails, so that no thread goes on with half a change."""
        try:
            yield
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the connection, which rolls back. The next group opens another connection."""
        if connection := self._connection:
            self._connection = None
            connection.invalidate()
            connection.close()


class Member:
    """A transaction within a group."""

    def __init__(
        self, writer: Writer, group: Group, connection: sa.Connection, *, alone: bool
    ) -> None:
        self.connection = connection
        self._writer = writer
        self._group = group
        self._alone = alone
        self._is_first = group.members == 1

    def commit(self) -> None:
        """Wait until the group is committed. Raise the error of its commit if that fails."""
        self._leave(*(() if self._is_first else (RELEASE,)))

    def rollback(self) -> None:
        """Undo what this member did, and wait until the group is committed.

        The rows of other members that made this one fail can be read only after the commit. Raise
        the error of the commit if that fails.
        """
        if self._is_first:
            self._writer.roll_back(self._group)
            return
        self._leave(ROLL_BACK, RELEASE)

    def _leave(self, *statements: str) -> None:
        """Execute statements, let the next thread go on, and wait for the commit.

        If a statement fails, the whole group fails.
        """
        try:
            with self._writer.closed_on_error():
                if is_open(self.connection):
                    for statement in statements:
                        self.connection.exec_driver_sql(statement)
        finally:
            self._writer.end(self._group, alone=self._alone)
            self._group.has_ended.wait()
        if error := self._group.error:
            raise _copy(error) from error


def is_open(connection: sa.Connection) -> bool:
    """Return whether a transaction is open. SQLite itself rolls back after some errors."""
    if connection.closed or connection.invalidated:
        return False
    raw: Any = connection.connection.driver_connection
    return bool(raw.in_transaction)


def _lost(connection: sa.Connection | None) -> sa.exc.OperationalError:
    """Return the error of a group whose transaction has ended before its commit.

    SQLite itself has rolled back, because the disk is full or broken, or the connection was closed.
    """
    by_sqlite = connection is not None and not (connection.closed or connection.invalidated)
    name = "SQLITE_FULL" if by_sqlite else "SQLITE_BUSY"
    return _operational_error("COMMIT", "the transaction has been rolled back", name)


def _operational_error(statement: str, message: str, name: str) -> sa.exc.OperationalError:
    error = sqlite.OperationalError(message)
    error.sqlite_errorname = name
    return sa.exc.OperationalError(statement, None, error)


def _copy(error: BaseException) -> BaseException:
    """Return an error for one member. Each member raises it with a traceback of its own."""
    if isinstance(error, sa.exc.DBAPIError):
        return type(error)("COMMIT", None, error.orig or error)
    return error
