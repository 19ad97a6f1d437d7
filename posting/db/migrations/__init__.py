"""Require a database with a current schema, before requests are served and for commands.

A worker does not need Alembic. Therefore `upgrades` is imported only where the schema changes.
"""

from pathlib import Path
from time import monotonic, sleep

import click
import sqlalchemy as sa
from flask import Flask, current_app

from posting.config import StartError
from posting.db.base import db
from posting.db.engine import close_connections, create_database_file, is_in_memory, sqlite_file
from posting.db.migrations.revisions import database_revisions, head_revision, require_known
from posting.db.migrations.start_errors import DatabaseUnavailableError, start_error
from posting.db.transactions import snapshot

EXTENSION = "posting.migrations"
MAX_WAIT_SECONDS = 60  # for Postgres, which may start at the same time as the service


def init_app(app: Flask, unmanaged_tables: tuple[str, ...]) -> None:
    """Require a current schema before requests are served; register `flask db` for commands.

    No model describes the tables whose names begin with one of `unmanaged_tables`. Raise StartError
    as `ensure_current` does.
    """
    app.extensions[EXTENSION] = unmanaged_tables
    running = click.get_current_context(silent=True)
    if running:
        from posting.db.migrations import upgrades  # noqa: PLC0415 - it imports Alembic

        upgrades.init_app(app)
    # Other commands check the schema themselves, as this one may be `flask db upgrade`.
    if running is None or running.info_name == "run":
        with app.app_context():
            _wait_until_current()


def _wait_until_current() -> None:
    """Run `ensure_current` every second for a minute, until the database responds."""
    give_up = monotonic() + MAX_WAIT_SECONDS
    while True:
        try:
            ensure_current()
            return
        except DatabaseUnavailableError as error:
            if monotonic() >= give_up:
                raise
            current_app.logger.warning("Waiting for the database. %s", error.message)
        sleep(1)


def require_database() -> None:
    """Raise StartError if there is no SQLite database yet, where connecting would create one."""
    if (file := sqlite_file()) and is_missing(file):
        raise StartError(
            f"There is no database at {file}. Check POSTING_DATABASE_URL, or create it with: "
            "flask db upgrade"
        )


def is_missing(file: Path) -> bool:
    """Return whether an SQLite database has not been created, so that its file may be empty."""
    return not file.exists() or not file.stat().st_size


def require_current() -> None:
    """Require a database with a current schema, for a command that works on its content.

    Raise StartError as `ensure_current` does, even if there is no database.
    """
    require_database()
    ensure_current()


def ensure_current() -> None:
    """Create the schema of a new SQLite database; require a current schema of any other.

    Raise DatabaseUnavailableError if the database does not respond, and StartError if it cannot be
    used, or if its schema is not current.
    """
    create_database_file()
    try:
        with snapshot() as connection:
            found = database_revisions(connection)
            is_new = not sa.inspect(connection).get_table_names()
        if found == [head_revision()]:
            return
        require_known(found)
        if db.engine.dialect.name != "sqlite" or not is_new:
            raise StartError("The database schema is not current. Run: flask db upgrade")
        from posting.db.migrations import upgrades  # noqa: PLC0415 - it imports Alembic

        upgrades.create_schema()
    except sa.exc.SQLAlchemyError as error:
        raise start_error(error) from None
    finally:
        if not is_in_memory():
            close_connections()  # workers that are forked later must not share a connection
