"""Connections to Postgres: their settings, and how their transactions begin."""

import select
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event

from posting.config import READ_SECONDS

# In milliseconds.
STATEMENT_TIMEOUT = 30_000  # in a transaction
POSTGRES_TIMEOUTS = {
    "statement_timeout": 1000 * READ_SECONDS,
    "lock_timeout": 5_000,
    "idle_in_transaction_session_timeout": 60_000,
}
POSTGRES_SETTINGS = {"timezone": "UTC", **POSTGRES_TIMEOUTS}
POSTGRES_CONNECT_ARGS = {
    "connect_timeout": 5,  # seconds
    "tcp_user_timeout": 10_000,  # milliseconds until a server that is gone is given up
    "keepalives_idle": 30,  # seconds after which an idle connection is tested
    "keepalives_interval": 10,
    "options": " ".join(f"-c {name}={value}" for name, value in POSTGRES_SETTINGS.items()),
}

FEATURE_NOT_SUPPORTED = "0A000"


def listen(engine: sa.Engine) -> None:
    """Register what happens to connections, in the order in which it happens."""
    event.listen(engine, "connect", _configure)
    event.listen(engine, "checkout", _ping_if_readable)  # before a statement fails on it
    event.listen(engine, "handle_error", _disconnect_if_types_changed)


def _configure(connection: Any, _record: Any) -> None:
    connection.autocommit = True  # transactions begin in `begin`, not in the driver


def _ping_if_readable(connection: Any, _record: Any, _proxy: Any) -> None:
    """Replace connections that have been closed, without a round trip for each request.

    An idle connection has data to read only if it was closed or received a notice.
    """
    try:
        incoming = select.poll()
        incoming.register(connection.fileno(), select.POLLIN)
        if incoming.poll(0):
            connection.execute("SELECT 1")
    except connection.Error as error:
        raise sa.exc.InvalidatePoolError from error


def begin(connection: sa.Connection, *, writes: bool) -> None:
    """Begin a transaction. Without `writes`, all of its queries see the same state."""
    level = "" if writes else " ISOLATION LEVEL REPEATABLE READ"
    # The timeout is set in the same round trip.
    connection.exec_driver_sql(f"BEGIN{level}; SET LOCAL statement_timeout = {STATEMENT_TIMEOUT}")


def _disconnect_if_types_changed(context: sa.engine.ExceptionContext) -> None:
    """Replace connections whose prepared statements precede a change of a column's type."""
    if getattr(context.original_exception, "sqlstate", None) == FEATURE_NOT_SUPPORTED:
        context.is_disconnect = True
