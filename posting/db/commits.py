"""Detect commits by a version of the database that each commit of any process changes.

On SQLite it is `PRAGMA data_version`. On a connection that never writes, it changes when another
connection commits (https://www.sqlite.org/pragma.html#pragma_data_version).

On Postgres it is `pg_current_snapshot()`, which says whose writes a statement sees. It changes
whenever a transaction that wrote ends, and never returns to an earlier value
(https://www.postgresql.org/docs/current/functions-info.html#FUNCTIONS-INFO-SNAPSHOT).
"""

import os
import weakref
from collections.abc import Callable, Mapping
from itertools import count
from time import monotonic
from typing import Any

import sqlalchemy as sa

from posting.db.postgres import POSTGRES_CONNECT_ARGS

RETRY_AFTER = 10.0  # seconds until the next attempt, after one has failed
# One thread waits for a server that does not answer, and gives up early. Others skip the cache.
IMPATIENT_CONNECT_ARGS = POSTGRES_CONNECT_ARGS | {"connect_timeout": 2, "tcp_user_timeout": 2000}
# On a standby, a snapshot does not list all transactions. Behind a pooler, a connection may lead to
# another server after a failover, and there the numbers stand for other transactions.
SNAPSHOT = b"SELECT pg_current_snapshot(), pg_postmaster_start_time() WHERE NOT pg_is_in_recovery()"

Version = tuple[Any, ...]


class CommitWatch:
    """Asks for the version on a connection of its own.

    This is not thread-safe.
    """

    def __init__(self, engine: sa.Engine) -> None:
        self._dialect = engine.dialect
        self._ask = _ASK[engine.dialect.name]
        self._arguments, options = engine.dialect.create_connect_args(engine.url)
        on_postgres = engine.dialect.name == "postgresql"
        self._options = dict(options, **(IMPATIENT_CONNECT_ARGS if on_postgres else {}))
        self._connections: dict[int, tuple[int, Any]] = {}  # by process: none may cross a fork
        self._numbers = count()  # versions on different connections cannot be compared
        self._retry_at = 0.0
        weakref.finalize(self, _close_own, self._connections)

    def close(self) -> None:
        """Close the connection. The next version is asked for on another connection."""
        _close_own(self._connections)

    def version(self) -> Version | None:
        """Return the version, or None if the database cannot be asked.

        Data that is read afterwards is up to date as long as the version stays the same.
        """
        process = os.getpid()
        if process not in self._connections and monotonic() < self._retry_at:
            return None
        try:
            if process not in self._connections:
                connection = self._dialect.connect(*self._arguments, **self._options)
                self._connections[process] = next(self._numbers), connection
            number, connection = self._connections[process]
            found = self._ask(connection)
        except self._dialect.loaded_dbapi.Error:
            self.close()
            self._retry_at = monotonic() + RETRY_AFTER
            return None
        return (number, *found) if found else None


def _close_own(connections: dict[int, tuple[int, Any]]) -> None:
    """Close the connection of this process."""
    if own := connections.pop(os.getpid(), None):
        own[1].close()


def _ask_sqlite(connection: Any) -> Version:
    [version] = connection.execute("PRAGMA data_version").fetchall()
    return tuple(version)


def _ask_postgres(connection: Any) -> Version | None:
    """Ask by libpq's own function, which takes half of the CPU time of a cursor."""
    result = connection.pgconn.exec_(SNAPSHOT)
    if result.error_message:
        raise connection.OperationalError(result.error_message.decode(errors="replace"))
    return tuple(result.get_value(0, column) for column in range(2)) if result.ntuples else None


_ASK: Mapping[str, Callable[[Any], Version | None]] = {
    "sqlite": _ask_sqlite,
    "postgresql": _ask_postgres,
}
