"""The database engine: its pool, the settings of each connection, and how transactions begin."""

import os
import re
import select
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import cache
from pathlib import Path
from threading import Lock
from time import monotonic, sleep
from typing import Any

import sqlalchemy as sa
from flask import Flask, current_app, has_request_context, request
from flask_sqlalchemy import SQLAlchemy
from pysqlite3 import dbapi2 as sqlite
from sqlalchemy import event
from sqlalchemy.orm import DeclarativeBase, registry

from posting.config import StartError
from posting.db.types import UtcDateTime

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
POOL = {"pool_size": 8, "max_overflow": 0, "pool_timeout": 5, "hide_parameters": True}
READER = "posting.reader"
PRAGMA_TRIES = 20
WRITE_LOCK_SECONDS = 5
WRITE_LOCK_PAUSE = 0.002  # seconds between two tries
BUSY_TIMEOUT_PRAGMA = "busy_timeout=5000"  # milliseconds, for everything but the write lock
# busy_timeout comes first, so that the other pragmas wait for a lock instead of failing.
SQLITE_PRAGMAS = (
    BUSY_TIMEOUT_PRAGMA,
    "journal_mode=WAL",
    "synchronous=FULL",
    "foreign_keys=ON",
    "journal_size_limit=67108864",
    "cache_size=-500",  # kilobytes per connection; the kernel caches the file anyway
    "mmap_size=0",
    "trusted_schema=OFF",
)
FEATURE_NOT_SUPPORTED = "0A000"
POSTGRES_TIMEOUTS = {  # in milliseconds
    "statement_timeout": 30_000,
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


class Base(DeclarativeBase):
    registry = registry(
        metadata=sa.MetaData(
            naming_convention={
                "ix": "ix_%(table_name)s_%(column_0_N_name)s",
                "uq": "uq_%(table_name)s_%(column_0_N_name)s",
                "ck": "ck_%(table_name)s_%(constraint_name)s",
                "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
                "pk": "pk_%(table_name)s",
            }
        ),
        type_annotation_map={datetime: UtcDateTime()},
    )

    def assign(self, changes: Mapping[str, Any]) -> None:
        """Set attributes by name. An attribute that is set to its own value is not a change."""
        for name, value in changes.items():
            setattr(self, name, value)


# Objects keep their values after a commit, so that a response needs no second transaction.
db = SQLAlchemy(model_class=Base, session_options={"expire_on_commit": False})


def init_app(app: Flask) -> None:
    """Create the engine and its hooks; no connection is opened yet.

    Raise StartError when the URL, its driver or the instance folder cannot be used.
    """
    try:
        url = sa.make_url(app.config["DATABASE_URL"])
        on_sqlite = url.get_backend_name() == "sqlite"
        in_memory = on_sqlite and (
            (url.database or "").removeprefix("file:") in {"", ":memory:"}
            or url.query.get("mode") == "memory"
        )
        # Of all the ways to write an in-memory URL, every library knows this one.
        app.config["SQLALCHEMY_DATABASE_URI"] = sa.make_url("sqlite://") if in_memory else url
        app.config["SQLALCHEMY_ENGINE_OPTIONS"] = (
            {"module": sqlite} | ({} if in_memory else POOL)
            if on_sqlite
            else POOL | {"connect_args": POSTGRES_CONNECT_ARGS}
        )
        db.init_app(app)
    except ImportError as error:
        raise StartError(
            f"POSTING_DATABASE_URL names a Postgres server, but its driver is missing ({error}). "
            "Run: pip install 'psycopg[binary]'"
        ) from None
    except OSError as error:
        raise StartError(
            f"The instance folder {app.instance_path} cannot be created ({error.strerror}). "
            "Create it, or name another with POSTING_INSTANCE_PATH."
        ) from None
    except (sa.exc.ArgumentError, ValueError) as error:
        raise StartError(f"POSTING_DATABASE_URL cannot be used: {error}") from None
    with app.app_context():
        engine = db.engine
    if on_sqlite:
        if not in_memory:
            event.listen(engine, "do_connect", _create_private_file)
            event.listen(engine, "connect", _share_turn(Lock()))
            event.listen(engine, "checkin", _end_turn)
        event.listen(engine, "connect", _configure_sqlite)
        event.listen(engine, "begin", _begin_on_sqlite)
        event.listen(engine, "handle_error", _disconnect_if_read_only)
    else:
        event.listen(engine, "connect", _configure_postgres)
        event.listen(engine, "checkout", _ping_if_readable)
        event.listen(engine, "begin", _begin_on_postgres)
        event.listen(engine, "handle_error", _disconnect_if_types_changed)


# Listeners for SQLite, in the order in which they run.


def _create_private_file(_dialect: Any, _record: Any, cargs: list[str], cparams: Any) -> None:
    """Create a new database for its owner alone; SQLite gives the files beside it the same mode."""
    if not cparams.get("uri"):  # which may forbid creating it
        with suppress(OSError):  # SQLite raises an error of its own
            os.close(os.open(cargs[0], os.O_CREAT, 0o600))


def _configure_sqlite(connection: Any, _record: Any) -> None:
    """Set the pragmas, and retry each while the file is locked.

    When several connections switch a new file to WAL at once, SQLite detects a deadlock and fails
    one of them immediately, whatever busy_timeout is.
    """
    connection.isolation_level = None  # transactions begin in _begin_on_sqlite, not in the driver
    for pragma in SQLITE_PRAGMAS:
        for attempt in range(1, PRAGMA_TRIES + 1):
            try:
                connection.execute(f"PRAGMA {pragma}")
                break
            except sqlite.OperationalError:
                if attempt == PRAGMA_TRIES:
                    raise
                sleep(0.05)


def _begin_on_sqlite(connection: sa.Connection) -> None:
    """Take the write lock at once where a write may follow: a later upgrade could fail."""
    raw: Any = connection.connection.driver_connection
    if raw.in_transaction:
        return  # an in-memory database has one connection, which nested app contexts share
    default = not (has_request_context() and request.method in SAFE_METHODS)
    writes = connection.get_execution_options().get("writes", default)
    if not writes:
        connection.exec_driver_sql("BEGIN")
        return
    give_up = monotonic() + WRITE_LOCK_SECONDS
    _take_turn(connection.info)
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


def _share_turn(turn: Lock) -> Callable[..., None]:
    """Return a listener that gives all connections of an engine the same lock."""

    def share(_connection: Any, record: Any) -> None:
        record.info["turn"] = turn

    return share


def _take_turn(info: dict[str, Any]) -> None:
    """Wait until no other thread of this process writes, so that only one of them polls the lock.

    A turn ends when its connection returns to the pool. Raise OperationalError after 5 seconds.
    """
    if (turn := info.get("turn")) and not info.get("has_turn"):
        if not turn.acquire(timeout=WRITE_LOCK_SECONDS):
            locked = sqlite.OperationalError("database is locked")
            raise sa.exc.OperationalError("BEGIN IMMEDIATE", None, locked)
        info["has_turn"] = True


def _end_turn(_connection: Any, record: Any) -> None:
    if record.info.pop("has_turn", False):
        record.info["turn"].release()


def _disconnect_if_read_only(context: sa.engine.ExceptionContext) -> None:
    """Replace connections that opened the file read-only: it may be writable by now."""
    if "readonly database" in str(context.original_exception):
        context.is_disconnect = True


# Listeners for Postgres, in the order in which they run.


def _configure_postgres(connection: Any, _record: Any) -> None:
    connection.autocommit = True  # transactions begin in _begin_on_postgres, not in the driver


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


def _begin_on_postgres(connection: sa.Connection) -> None:
    is_snapshot = connection.get_execution_options().get("snapshot")
    level = " ISOLATION LEVEL REPEATABLE READ READ ONLY" if is_snapshot else ""
    connection.exec_driver_sql(f"BEGIN{level}")


def _disconnect_if_types_changed(context: sa.engine.ExceptionContext) -> None:
    """Replace connections whose prepared statements precede a change of a column's type."""
    if getattr(context.original_exception, "sqlstate", None) == FEATURE_NOT_SUPPORTED:
        context.is_disconnect = True


def is_in_memory() -> bool:
    """Return whether the database is in memory, where it ends with the app."""
    return isinstance(db.engine.pool, sa.StaticPool)


def sqlite_file() -> Path | None:
    """Return the file of an SQLite database, or None for one in memory and for Postgres."""
    if db.engine.dialect.name != "sqlite" or is_in_memory():
        return None
    name = str(db.engine.url.database)
    return Path(name.removeprefix("file:")).resolve()  # a URL with uri=true has that prefix


def end_transaction(_: BaseException | None = None) -> None:
    """Roll back what the request or a test has left open, before and after each request.

    A test's app context outlives its requests, and they would share a transaction.
    """
    if db.session.registry.has():
        db.session.rollback()


def begin(*, writes: bool) -> None:
    """Begin the session's transaction, as one that writes or only reads.

    Without this call, the first query of the session begins it, and it writes unless the request
    is a GET, HEAD or OPTIONS. `fetch_all` begins none.
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


def error_reason(error: sa.exc.SQLAlchemyError) -> str:
    """Return the first line of the database's error; the others may show the row's data."""
    return str(getattr(error, "orig", None) or error).strip().partition("\n")[0]


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


def insert(model: type[Base], **values: Any) -> dict[str, Any]:
    """Insert a row within the transaction, and return all of its columns."""
    result = execute(_insert_statement(model), **values)
    row: Any = result.last_inserted_params()
    return dict(row)


@cache
def _insert_statement(model: type[Base]) -> sa.Insert:
    return sa.insert(Base.metadata.tables[model.__tablename__])


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


def violated_constraint(error: sa.exc.IntegrityError) -> str:
    """Return the name of the unique constraint that a statement violated, else "".

    It is the same on both databases. SQLite does not name foreign keys, so they have no name here.
    """
    diagnostics = getattr(error.orig, "diag", None)
    name = diagnostics.constraint_name if diagnostics else None
    if name is None and (match := re.search(r"UNIQUE.*index '(\w+)'", str(error.orig))):
        name = match[1]
    return name if name and name.startswith("uq_") else ""
