"""Transactions and queries.

Reading begins nothing, since BEGIN and ROLLBACK around a single SELECT take as long as the SELECT.
The first `execute`, which writes or locks a row, begins the transaction of the code that runs, and
`commit` or `rollback` ends it. Rows are read and written past the session of the ORM, since
building its objects takes longer than the query.

A connection of SQLAlchemy sends no BEGIN of its own. So commands use `transaction` and `snapshot`.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Protocol
from weakref import WeakKeyDictionary

import sqlalchemy as sa
from flask import Flask, current_app
from flask.ctx import AppContext
from flask.globals import app_ctx

from posting.db import postgres, sqlite
from posting.db.access import only_reads
from posting.db.base import Base, db
from posting.db.engine import on_close
from posting.db.group_commit import Writer

WRITER = "posting.writer"

Row = sa.Row[*tuple[Any, ...]]


class Transaction(Protocol):
    """The writes of a request until its `commit`. On SQLite, they can be a member of a group."""

    @property
    def connection(self) -> sa.Connection: ...

    def commit(self) -> None: ...

    def rollback(self) -> None: ...


class OwnTransaction:
    """A transaction on a connection of its own, as on Postgres."""

    def __init__(self, engine: sa.Engine) -> None:
        self.connection = engine.connect()
        try:
            begin_on(self.connection, writes=True)
        except BaseException:
            self.connection.close()
            raise

    def commit(self) -> None:
        with self.connection:
            commit_on(self.connection)

    def rollback(self) -> None:
        self.connection.close()  # which rolls back


# The open transaction and the calls after its commit, by app context, since contexts can be nested.
_open: WeakKeyDictionary[AppContext, Transaction] = WeakKeyDictionary()
_after_commit: WeakKeyDictionary[AppContext, list[Callable[[], None]]] = WeakKeyDictionary()


def init_app(app: Flask) -> None:
    """Let the threads of this process commit together if the database is a file of SQLite."""
    with app.app_context():
        engine = db.engine
    if engine.dialect.name == "sqlite" and not isinstance(engine.pool, sa.StaticPool):
        writer = app.extensions[WRITER] = Writer(engine)
        on_close(app, writer.close)
    app.teardown_appcontext(lambda _error: rollback())


def fetch_all(statement: sa.Executable, **values: Any) -> Sequence[Row]:
    """Return the rows of a SELECT, as the transaction sees them if one has begun."""
    if transaction := _transaction():
        return transaction.connection.execute(statement, values).all()
    with db.engine.connect() as connection:
        return connection.execute(statement, values).all()


def fetch_one(statement: sa.Executable, **values: Any) -> Row | None:
    """Return the first row of a SELECT, like `fetch_all`."""
    rows = fetch_all(statement, **values)
    return rows[0] if rows else None


def fetch_value(statement: sa.Executable, **values: Any) -> Any:
    """Return the first column of the first row of a SELECT, like `fetch_all`."""
    row = fetch_one(statement, **values)
    return row[0] if row else None


def execute(
    statement: sa.Executable, rows: Sequence[Any] | None = None, /, **values: Any
) -> sa.CursorResult[*tuple[Any, ...]]:
    """Execute a statement that writes or locks, for several `rows` or with `values`.

    This begins the transaction if none has begun. Raise RuntimeError in code that only reads.
    """
    return in_transaction().execute(statement, values if rows is None else rows)


def in_transaction() -> sa.Connection:
    """Return the connection of the transaction, which begins now if none has begun."""
    transaction = _transaction() or begin()
    return transaction.connection


def begin(*, alone: bool = False) -> Transaction:
    """Begin the transaction.

    With `alone`, no other request joins it on SQLite. This is for a transaction that takes long.
    """
    if only_reads():
        raise RuntimeError("This code has said that it only reads.")
    if is_in_transaction():
        raise RuntimeError("A transaction has begun already.")
    writer: Writer | None = current_app.extensions.get(WRITER)
    transaction: Transaction = writer.begin(alone=alone) if writer else OwnTransaction(db.engine)
    _open[_context()] = transaction
    return transaction


def is_in_transaction() -> bool:
    """Return whether a transaction has begun."""
    return _transaction() is not None


def commit() -> None:
    """Commit the transaction, if one has begun. Then call the functions of `after_commit`."""
    calls = _after_commit.pop(_context(), [])
    if transaction := _open.pop(_context(), None):
        transaction.commit()
        for call in calls:
            call()


def after_commit(call: Callable[[], None]) -> None:
    """Call a function after the commit of the transaction, such as a function that logs an act.

    Raise RuntimeError if no transaction has begun.
    """
    if not is_in_transaction():
        raise RuntimeError("No transaction has begun.")
    _after_commit.setdefault(_context(), []).append(call)


def rollback() -> None:
    """Roll back the transaction, if one has begun."""
    _after_commit.pop(_context(), None)
    if transaction := _open.pop(_context(), None):
        transaction.rollback()


def end_transaction() -> None:
    """Roll back what the request or a test has left open, before and after each request.

    A test's app context outlives its requests, and they would share a transaction.
    """
    rollback()
    if db.session.registry.has():
        db.session.rollback()


@contextmanager
def transaction() -> Iterator[sa.Connection]:
    """Yield a connection in a transaction of its own, which is committed at the end of the block.

    After an earlier `commit` on the connection, each statement would be committed alone.
    """
    own = OwnTransaction(db.engine)
    try:
        yield own.connection
    except BaseException:
        own.rollback()
        raise
    own.commit()


@contextmanager
def snapshot(engine: sa.Engine | None = None) -> Iterator[sa.Connection]:
    """Yield a connection that reads one consistent state while others write, without time limits.

    Without `engine`, it reads the database of the app.
    """
    with (engine or db.engine).connect() as connection:
        begin_on(connection, writes=False)
        lift_time_limits(connection)
        yield connection


@sa.event.listens_for(db.session, "after_begin")
def begin_session(_session: Any, _transaction: Any, connection: sa.Connection) -> None:
    """Begin the transaction of the ORM's session, which only shells and tests use."""
    begin_on(connection, writes=True)


def begin_on(connection: sa.Connection, *, writes: bool) -> None:
    """Begin a transaction. Without `writes`, all of its queries see the same state."""
    begin = postgres.begin if connection.dialect.name == "postgresql" else sqlite.begin
    begin(connection, writes=writes)


def commit_on(connection: sa.Connection) -> None:
    """Commit, or roll back if that fails.

    After a failed commit, SQLAlchemy assumes that the transaction has ended. It would return the
    connection to the pool with the locks of the transaction.
    """
    try:
        connection.commit()
    except BaseException:
        if not connection.invalidated:
            raw: Any = connection.connection.driver_connection
            with suppress(Exception):  # the connection is lost
                raw.rollback()
        raise


def lock_tables(connection: sa.Connection) -> None:
    """Lock every table against other writers, within a transaction that writes."""
    if connection.dialect.name == "postgresql":  # SQLite's write lock is on all tables
        tables = ", ".join(db.metadata.tables)
        connection.exec_driver_sql(f"LOCK TABLE {tables} IN SHARE ROW EXCLUSIVE MODE")


def lock_table(model: type[Base]) -> None:
    """Wait until all others that have written to a table have ended, and keep others out.

    Call this first in a transaction, so that it holds no lock while it waits.
    """
    connection = in_transaction()
    if connection.dialect.name == "postgresql":  # SQLite has one writer at a time anyway
        connection.exec_driver_sql(f"LOCK TABLE {model.__tablename__} IN SHARE ROW EXCLUSIVE MODE")


def lift_time_limits(connection: sa.Connection) -> None:
    """Lift the time limits that are meant for requests, except the limit of waiting for a lock."""
    if connection.dialect.name == "postgresql":
        for name in ("statement_timeout", "idle_in_transaction_session_timeout"):
            connection.exec_driver_sql(f"SET LOCAL {name} = 0")
    else:
        connection.info[sqlite.DEADLINE] = math.inf


def _transaction() -> Transaction | None:
    """Return the open transaction of the app context."""
    return _open.get(_context())


def _context() -> AppContext:
    proxy: Any = app_ctx
    context: AppContext = proxy._get_current_object()
    return context
