"""Transactions and queries.

Reading begins nothing, since BEGIN and ROLLBACK around a single SELECT take as long as the SELECT.
Code that writes runs in a unit of work. The first `execute`, which writes or locks a row, begins
its transaction, and the end of the unit commits it. Rows are read and written past the session of
the ORM, since building its objects takes longer than the query.

The transaction of a unit of work is that of `Writer` for an SQLite file, for which the threads of a
process take turns, and otherwise that of `transaction`.

A connection of SQLAlchemy sends no BEGIN of its own. So commands that need a connection use
`transaction` and `snapshot`.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from typing import Any

import sqlalchemy as sa
from flask import Flask, current_app

from posting.db import postgres, sqlite
from posting.db.base import Base, db
from posting.db.engine import on_close

WRITER = "posting.writer"

Row = sa.Row[*tuple[Any, ...]]


class UnitOfWork:
    """Writes that are committed together, or not at all."""

    def __init__(self) -> None:
        self.connection: sa.Connection | None = None  # of the transaction, if it has begun
        self.after_commit: list[Callable[[], None]] = []
        self._transaction = ExitStack()

    def begin(self) -> sa.Connection:
        """Begin the transaction if it has not begun, and return its connection."""
        if self.connection is None:
            writer: sqlite.Writer | None = current_app.extensions.get(WRITER)
            begun = writer.transaction() if writer else transaction()
            self.connection = self._transaction.enter_context(begun)
        return self.connection

    def end(self, error: BaseException | None) -> None:
        """Commit the transaction, or roll it back after an error."""
        self.connection = None
        if error is None:
            self._transaction.close()
            return
        with suppress(sa.exc.SQLAlchemyError, type(error)):  # the caller raises the error itself
            self._transaction.__exit__(type(error), error, error.__traceback__)


_unit: ContextVar[UnitOfWork | None] = ContextVar("unit", default=None)


def init_app(app: Flask) -> None:
    """Let the threads of this process take turns to write if the database is a file of SQLite."""
    with app.app_context():
        engine = db.engine
    if engine.dialect.name == "sqlite" and not isinstance(engine.pool, sa.StaticPool):
        writer = app.extensions[WRITER] = sqlite.Writer(engine)
        on_close(app, writer.close)


@contextmanager
def unit_of_work() -> Iterator[None]:
    """Commit what the block writes at its end, or roll it back if the block raises an error.

    Then call the functions of `after_commit`. Raise RuntimeError within another unit of work.
    """
    if _unit.get():
        raise RuntimeError("A unit of work has begun already.")
    unit = UnitOfWork()
    token = _unit.set(unit)
    try:
        yield
    except BaseException as error:
        unit.end(error)
        raise
    else:
        unit.end(None)
    finally:
        _unit.reset(token)
    for call in unit.after_commit:
        call()


def after_commit(call: Callable[[], None]) -> None:
    """Call a function after the commit of the unit of work, or now if there is none.

    Such a function logs an act, or begins a unit of work of its own.
    """
    if unit := _unit.get():
        unit.after_commit.append(call)
    else:
        call()


def fetch_all(statement: sa.Executable, **values: Any) -> Sequence[Row]:
    """Return the rows of a SELECT, as the transaction sees them if one has begun."""
    unit = _unit.get()
    if unit and unit.connection:
        return unit.connection.execute(statement, values).all()
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

    Raise RuntimeError outside of a unit of work.
    """
    return in_transaction().execute(statement, values if rows is None else rows)


def in_transaction() -> sa.Connection:
    """Return the connection of the transaction, which begins now if it has not begun."""
    unit = _unit.get()
    if unit is None:
        raise RuntimeError("Nothing is written outside of a unit of work.")
    return unit.begin()


def roll_back_session() -> None:
    """Roll back what a test has left open in the session of the ORM.

    A test's app context outlives its requests, and they would share a transaction.
    """
    if db.session.registry.has():
        db.session.rollback()


@contextmanager
def transaction() -> Iterator[sa.Connection]:
    """Yield a connection in a transaction of its own, which is committed at the end of the block.

    After an earlier `commit` on the connection, each statement would be committed alone.
    """
    with db.engine.connect() as connection:  # its end rolls back
        begin_on(connection, writes=True)
        yield connection
        commit_on(connection)


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
