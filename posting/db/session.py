"""Transactions and queries."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa
from flask import current_app

from posting.db.base import db
from posting.db.sqlite import DEADLINE

READER = "posting.reader"


def end_transaction() -> None:
    """Roll back what the request or a test has left open, before and after each request.

    A test's app context outlives its requests, and they would share a transaction.
    """
    if db.session.registry.has():
        db.session.rollback()


def begin(*, writes: bool) -> None:
    """Begin the session's transaction, as one that writes or only reads.

    Without this call, the first query of the session begins it, as one that writes unless
    `database_access` says otherwise. `fetch_all` begins none.
    """
    db.session.connection(execution_options={"writes": writes})


@contextmanager
def snapshot() -> Iterator[sa.Connection]:
    """Yield a connection that reads one consistent state of the database, while others write."""
    engine = db.engine.execution_options(writes=False, snapshot=True)
    with engine.begin() as connection:
        lift_time_limits(connection)
        yield connection


def lock_tables(connection: sa.Connection) -> None:
    """Lock every table against other writers, within a transaction that writes."""
    if connection.dialect.name == "postgresql":  # SQLite's write lock is on all tables
        tables = ", ".join(db.metadata.tables)
        connection.exec_driver_sql(f"LOCK TABLE {tables} IN SHARE ROW EXCLUSIVE MODE")


def lift_time_limits(connection: sa.Connection) -> None:
    """Lift the limits that are meant for requests, except that on the wait for a lock."""
    if connection.dialect.name == "postgresql":
        for name in ("statement_timeout", "idle_in_transaction_session_timeout"):
            connection.exec_driver_sql(f"SET LOCAL {name} = 0")
    else:
        connection.info[DEADLINE] = math.inf


def is_in_transaction() -> bool:
    """Return whether the session has begun a transaction."""
    return db.session.registry.has() and db.session().in_transaction()


def fetch_all(statement: sa.Executable, **values: Any) -> Sequence[sa.Row[*tuple[Any, ...]]]:
    """Return the rows of a SELECT of columns, within the transaction if one has begun.

    This bypasses the ORM session, since building objects takes longer than the query.
    """
    if is_in_transaction():
        return execute(statement, **values).all()
    with _reader().connect() as connection:
        return connection.execute(statement, values).all()


def fetch_one(
    statement: sa.Select[*tuple[Any, ...]], **values: Any
) -> sa.Row[*tuple[Any, ...]] | None:
    """Return the first row of a SELECT of columns, like `fetch_all`."""
    rows = fetch_all(statement, **values)
    return rows[0] if rows else None


def execute(statement: sa.Executable, **values: Any) -> sa.CursorResult[*tuple[Any, ...]]:
    """Execute a statement within the transaction, past the ORM session and its loaded objects."""
    return db.session.connection().execute(statement, values)


def _reader() -> sa.Engine:
    """Return an engine over the same pool that begins no transaction.

    A single SELECT needs none, and BEGIN and ROLLBACK take as long as a short query.
    """
    engine = db.engine
    reader: sa.Engine | None = current_app.extensions.get(READER)
    if reader is None or reader.pool is not engine.pool:
        reader = sa.Engine(engine.pool, engine.dialect, engine.url, hide_parameters=True)
        current_app.extensions[READER] = reader
    return reader
