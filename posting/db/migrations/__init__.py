"""The schema version of the database, and when it must be brought up to date.

Alembic is imported only by `upgrades` and by what it runs, since a worker does not need it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import click
import sqlalchemy as sa
from flask import Flask

from posting.config import StartError
from posting.db.engine import db, error_reason, is_in_memory, lift_time_limits, sqlite_file

FOLDER = Path(__file__).parent
VERSION_TABLE = sa.table("alembic_version", sa.column("version_num", sa.String(32)))
UPGRADE_LOCK = 7_067_873_716  # any number that no other program locks on the Postgres server


class DatabaseUnavailableError(StartError):
    """The database does not respond; starting again later may succeed."""


def head_revision() -> str:
    """Return the revision that this code needs."""
    return max(known_revisions())


@cache
def known_revisions() -> frozenset[str]:
    """Return all revisions that this code can upgrade, which are in the names of their files."""
    return frozenset(file.stem.partition("_")[0] for file in FOLDER.glob("versions/[!_]*.py"))


def database_revisions(connection: sa.Connection) -> list[str]:
    """Return a list with the database's revision, or an empty list before the first upgrade."""
    if not sa.inspect(connection).has_table(VERSION_TABLE.name):
        return []
    return list(connection.scalars(sa.select(VERSION_TABLE.c.version_num)))


def is_current() -> bool:
    """Return whether the schema is current. Raise SQLAlchemyError if the database fails."""
    return database_revisions(db.session.connection()) == [head_revision()]


def init_app(app: Flask) -> None:
    """Require a current schema before requests are served; register `flask db` for commands.

    Raise StartError as `ensure_current` does.
    """
    running = click.get_current_context(silent=True)
    if running:
        from posting.db.migrations import upgrades  # noqa: PLC0415 - it imports Alembic

        upgrades.init_app(app)
    # Other commands check the schema themselves, as this one may be `flask db upgrade`.
    if running is None or running.info_name == "run":
        with app.app_context():
            ensure_current()


def ensure_current() -> None:
    """Create the schema of a new SQLite database; require a current schema of any other.

    Raise DatabaseUnavailableError if the database does not respond, and StartError if it cannot be
    used, is not current, or was upgraded by a newer version.
    """
    try:
        connection = db.session.connection()
        found = database_revisions(connection)
        if found == [head_revision()]:
            return
        if not known_revisions().issuperset(found):
            raise StartError(
                f"The database has schema {found[0]}, which this version does not know: "
                "a newer version upgraded it. Install that version."
            )
        is_new = not sa.inspect(connection).get_table_names()
        db.session.remove()
        if db.engine.dialect.name != "sqlite" or not is_new:
            raise StartError("The database schema is not current. Run: flask db upgrade")
        from posting.db.migrations import upgrades  # noqa: PLC0415 - it imports Alembic

        upgrades.create_schema()
    except sa.exc.SQLAlchemyError as error:
        raise _start_error(error) from None
    finally:
        db.session.remove()
        if not is_in_memory():
            db.engine.dispose()  # workers that are forked later must not share a connection


def _start_error(error: sa.exc.SQLAlchemyError) -> StartError:
    file = sqlite_file()
    if file and not file.parent.is_dir():
        return StartError(
            f"There is no folder {file.parent} for the database. "
            "Create it, or set POSTING_DATABASE_URL to another."
        )
    url = db.engine.url.render_as_string(hide_password=True)
    kind = DatabaseUnavailableError if isinstance(error, sa.exc.OperationalError) else StartError
    return kind(
        f"The database {url} cannot be used ({error_reason(error)}). "
        "Check POSTING_DATABASE_URL and that the database is running."
    )


@contextmanager
def schema_change(engine: sa.Engine) -> Iterator[sa.Connection]:
    """Yield a connection in one transaction that may rebuild tables, one process at a time.

    SQLite does not enforce foreign keys meanwhile, as dropping a parent table would delete its
    children; they are checked before the commit.
    """
    try:
        connection = engine.connect()
    except sa.exc.DBAPIError as error:
        raise _start_error(error) from None
    with connection:
        if engine.dialect.name == "postgresql":
            with connection.begin():
                lift_time_limits(connection)
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(UPGRADE_LOCK)))
                yield connection
            return
        sqlite: Any = connection.connection.driver_connection
        sqlite.execute("PRAGMA foreign_keys=OFF")
        try:
            with connection.begin():
                yield connection
                if orphans := connection.exec_driver_sql("PRAGMA foreign_key_check").all():
                    raise StartError(
                        f"The upgrade was undone: it would break foreign keys ({orphans[:3]})."
                    )
        finally:
            sqlite.execute("PRAGMA foreign_keys=ON")
