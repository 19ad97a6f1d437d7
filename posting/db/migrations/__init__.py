"""The schema version of the database, and how it is brought up to date."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import click
import flask_migrate
import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from flask import Flask, current_app

from posting.config import StartError
from posting.db.engine import db, error_reason, is_in_memory, lift_time_limits, sqlite_file

FOLDER = Path(__file__).parent
VERSION_TABLE = sa.table("alembic_version", sa.column("version_num", sa.String(32)))
UPGRADE_LOCK = 7_067_873_716  # any number that no other program locks on the Postgres server


class DatabaseUnavailableError(StartError):
    """The database does not respond; starting again later may succeed."""


@cache
def head_revision() -> str | None:
    """Return the revision that this code needs."""
    return ScriptDirectory(str(FOLDER)).get_current_head()


@cache
def known_revisions() -> frozenset[str]:
    """Return all revisions that this code can upgrade."""
    return frozenset(each.revision for each in ScriptDirectory(str(FOLDER)).walk_revisions())


def database_revisions(connection: sa.Connection) -> list[str]:
    """Return a list with the database's revision, or an empty list before the first upgrade."""
    if not sa.inspect(connection).has_table(VERSION_TABLE.name):
        return []
    return list(connection.scalars(sa.select(VERSION_TABLE.c.version_num)))


def is_current() -> bool:
    """Return whether the schema is current. Raise SQLAlchemyError if the database fails."""
    return database_revisions(db.session.connection()) == [head_revision()]


def init_app(app: Flask) -> None:
    """Register `flask db`, and require a current schema before requests are served.

    Raise StartError as `ensure_current` does.
    """
    flask_migrate.Migrate(app, db, directory=FOLDER)
    # Other commands check the schema themselves, as this one may be `flask db upgrade`.
    running = click.get_current_context(silent=True)
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
        if is_in_memory():
            with schema_change(db.engine) as connection:
                upgrade(connection)
        else:
            flask_migrate.upgrade()
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


def downgrade(connection: sa.Connection, revision: str) -> None:
    """Downgrade the schema within a transaction of `schema_change`."""
    command.downgrade(_config(connection), revision)


def upgrade(connection: sa.Connection) -> None:
    """Upgrade the schema within a transaction of `schema_change`."""
    command.upgrade(_config(connection), "head")


def _config(connection: sa.Connection) -> Config:
    config: Config = current_app.extensions["migrate"].migrate.get_config()
    config.attributes["connection"] = connection
    return config
