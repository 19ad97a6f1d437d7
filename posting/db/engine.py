"""The database: the declarative base, what each connection is told, and how transactions begin."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import cache
from pathlib import Path
from time import sleep
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
# In this order: with the first, those after it wait for a lock instead of failing.
SQLITE_PRAGMAS = (
    "busy_timeout=5000",
    "journal_mode=WAL",
    "synchronous=FULL",
    "foreign_keys=ON",
    "journal_size_limit=67108864",
    "cache_size=-500",  # kilobytes a connection; the system keeps the file's pages anyway
    "mmap_size=0",
    "trusted_schema=OFF",
)
FEATURE_NOT_SUPPORTED = "0A000"
POSTGRES_TIMEOUTS = {  # in milliseconds
    "statement_timeout": 30_000,
    "lock_timeout": 5_000,
    "idle_in_transaction_session_timeout": 60_000,
}
POSTGRES_OPTIONS = " ".join(f"-c {name}={value}" for name, value in POSTGRES_TIMEOUTS.items())


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
        """Set what `changes` names; what it sets to the same value does not count as changed."""
        for name, value in changes.items():
            setattr(self, name, value)


# Objects keep their values after a commit, so that answering needs no second transaction.
db = SQLAlchemy(model_class=Base, session_options={"expire_on_commit": False})


def init_app(app: Flask) -> None:
    """Open the configured database for `app`; no connection is made yet.

    Error: StartError when the URL, its driver or the folder of an SQLite file is not usable.
    """
    try:
        _open(app)
    except ImportError as error:
        raise StartError(
            f"POSTING_DATABASE_URL names a Postgres server, but its driver is missing ({error}). "
            "Run: pip install 'psycopg[binary]'"
        ) from None
    except OSError as error:
        raise StartError(
            f"The instance folder {app.instance_path} cannot be made ({error.strerror}). "
            "Make it, or name another with POSTING_INSTANCE_PATH."
        ) from None
    except (sa.exc.ArgumentError, ValueError) as error:
        raise StartError(f"POSTING_DATABASE_URL cannot be used: {error}") from None


def _open(app: Flask) -> None:
    url = sa.make_url(app.config["DATABASE_URL"])
    in_memory = url.get_backend_name() == "sqlite" and (
        (url.database or "").removeprefix("file:") in {"", ":memory:"}
        or url.query.get("mode") == "memory"
    )
    if in_memory:
        url = sa.make_url("sqlite://")  # of all ways to say so, the one that all libraries know
    app.config["SQLALCHEMY_DATABASE_URI"] = url
    app.config["SQLALCHEMY_ENGINE_OPTIONS"] = (
        {"module": sqlite} | ({} if in_memory else POOL)
        if url.get_backend_name() == "sqlite"
        else POOL
        | {
            "pool_pre_ping": True,
            "connect_args": {"connect_timeout": 5, "options": POSTGRES_OPTIONS},
        }
    )
    db.init_app(app)
    with app.app_context():
        if db.engine.dialect.name == "sqlite":
            if not in_memory:
                event.listen(db.engine, "do_connect", _create_private_file)
            event.listen(db.engine, "connect", _set_up_sqlite)
            event.listen(db.engine, "begin", _begin_sqlite)
            event.listen(db.engine, "handle_error", _give_up_if_read_only)
        else:
            event.listen(db.engine, "connect", _set_up_postgres)
            event.listen(db.engine, "begin", _begin_postgres)
            event.listen(db.engine, "handle_error", _give_up_if_prepared_for_other_types)


def is_in_memory() -> bool:
    """Return whether the app's database ends with the app."""
    return isinstance(db.engine.pool, sa.StaticPool)


def sqlite_file() -> Path | None:
    """Return the file of the app's database; None if that is in memory, or on Postgres."""
    if db.engine.dialect.name != "sqlite" or is_in_memory():
        return None
    name = str(db.engine.url.database)
    return Path(name.removeprefix("file:")).resolve()  # a URL with uri=true has that prefix


def end_transaction(_: BaseException | None = None) -> None:
    """Give each request its own transaction, also within a test's longer-lived app context."""
    if db.session.registry.has():
        db.session.rollback()


def _create_private_file(_dialect: Any, _record: Any, cargs: list[str], cparams: Any) -> None:
    """Create a new database for its owner alone; SQLite gives the files beside it the same mode."""
    if not cparams.get("uri"):  # which may forbid to create it
        with suppress(OSError):  # SQLite's own message follows
            os.close(os.open(cargs[0], os.O_CREAT, 0o600))


def _set_up_sqlite(connection: Any, _record: Any) -> None:
    connection.isolation_level = None  # the driver begins nothing by itself: _begin_sqlite does
    for pragma in SQLITE_PRAGMAS:
        _tell(connection, f"PRAGMA {pragma}")


def _tell(connection: Any, pragma: str) -> None:
    """Set a pragma, again and again while the file is locked.

    Several that switch a new file to WAL at once would wait for each other, which SQLite sees and
    ends at once for one of them, whatever busy_timeout says.
    """
    for _ in range(PRAGMA_TRIES - 1):
        try:
            connection.execute(pragma)
            return
        except sqlite.OperationalError:
            sleep(0.05)
    connection.execute(pragma)


def _begin_sqlite(connection: sa.Connection) -> None:
    """Take the write lock at once where a write may follow, so that no upgrade can fail later."""
    raw: Any = connection.connection.driver_connection
    if raw.in_transaction:
        return  # an in-memory database has one connection, which nested app contexts share
    default = not (has_request_context() and request.method in SAFE_METHODS)
    writes = connection.get_execution_options().get("writes", default)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _set_up_postgres(connection: Any, _record: Any) -> None:
    connection.autocommit = True  # the driver begins nothing by itself: _begin_postgres does


def _begin_postgres(connection: sa.Connection) -> None:
    one_moment = connection.get_execution_options().get("one_moment")
    level = " ISOLATION LEVEL REPEATABLE READ READ ONLY" if one_moment else ""
    connection.exec_driver_sql(f"BEGIN{level}")


def _give_up_if_prepared_for_other_types(context: sa.engine.ExceptionContext) -> None:
    """Open connections anew whose prepared statements are of before a column's type changed."""
    if getattr(context.original_exception, "sqlstate", None) == FEATURE_NOT_SUPPORTED:
        context.is_disconnect = True


def _give_up_if_read_only(context: sa.engine.ExceptionContext) -> None:
    """Open connections anew that could open their file for reading only: it may be writable now."""
    if "readonly database" in str(context.original_exception):
        context.is_disconnect = True


def begin(*, writes: bool) -> None:
    """Begin the session's transaction as a reading or a writing one.

    Without this call it begins at the session's first query, and writes unless the request is GET,
    HEAD or OPTIONS. `select` begins none.
    """
    db.session.connection(execution_options={"writes": writes})


@contextmanager
def snapshot() -> Iterator[sa.Connection]:
    """Yield a connection that reads all as it is at one moment, while others write."""
    reading = db.engine.execution_options(writes=False, one_moment=True)
    with reading.begin() as connection:
        _lift_time_limits(connection)
        yield connection


@contextmanager
def exclusive_transaction() -> Iterator[sa.Connection]:
    """Yield a connection in one transaction, in which nobody else writes to any table."""
    with db.engine.begin() as connection:
        _lift_time_limits(connection)
        if db.engine.dialect.name == "postgresql":  # SQLite's write lock is on everything
            tables = ", ".join(db.metadata.tables)
            connection.exec_driver_sql(f"LOCK TABLE {tables} IN SHARE ROW EXCLUSIVE MODE")
        yield connection


def _lift_time_limits(connection: sa.Connection) -> None:
    """Lift the limits that are meant for requests; the wait for a lock keeps its own."""
    if connection.dialect.name == "postgresql":
        for name in ("statement_timeout", "idle_in_transaction_session_timeout"):
            connection.exec_driver_sql(f"SET LOCAL {name} = 0")


def error_reason(error: sa.exc.SQLAlchemyError) -> str:
    """Return in one line what the database says is wrong; in others Postgres shows the row."""
    return str(getattr(error, "orig", None) or error).strip().partition("\n")[0]


def is_in_transaction() -> bool:
    """Return whether the session has begun a transaction."""
    return db.session.registry.has() and db.session().in_transaction()


def fetch_all(
    statement: sa.Select[*tuple[Any, ...]], **values: Any
) -> Sequence[sa.Row[*tuple[Any, ...]]]:
    """Return the rows of a SELECT of columns, within the transaction if one has begun.

    The ORM session is passed by: building objects takes longer than the query.
    """
    if is_in_transaction():
        return db.session.connection().execute(statement, values).all()
    with _reader().connect() as connection:
        return connection.execute(statement, values).all()


def fetch_one(
    statement: sa.Select[*tuple[Any, ...]], **values: Any
) -> sa.Row[*tuple[Any, ...]] | None:
    """Return the first row of a SELECT of columns, like `fetch_all`."""
    rows = fetch_all(statement, **values)
    return rows[0] if rows else None


def insert(model: type[Base], **values: Any) -> dict[str, Any]:
    """Insert a row within the transaction, and return all of its columns."""
    result = db.session.connection().execute(_insert_statement(model), values)
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
    """Return the name of the unique constraint that a statement broke, the same on both engines.

    Empty for a broken foreign key, whose name SQLite does not tell.
    """
    diagnostics = getattr(error.orig, "diag", None)
    name = diagnostics.constraint_name if diagnostics else None
    if name is None and (match := re.search(r"UNIQUE.*index '(\w+)'", str(error.orig))):
        name = match[1]
    return name if name and name.startswith("uq_") else ""
