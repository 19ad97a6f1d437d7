"""Changes of the schema, by Alembic."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from flask import Flask, current_app
from flask_migrate import Migrate

from posting.config import StartError
from posting.db import postgres, sqlite
from posting.db.base import db
from posting.db.engine import create_database_file, is_in_memory
from posting.db.errors import error_code
from posting.db.migrations.revisions import FOLDER
from posting.db.migrations.start_errors import start_error
from posting.db.transactions import commit_on, lift_time_limits

UPGRADE_LOCK = 7_067_873_716  # any number that no other program locks on the Postgres server


def init_app(app: Flask) -> Migrate:
    """Register `flask db`."""
    # A batch operation would rebuild a table of SQLite without its triggers.
    # Alembic interpolates the path, in which %% is a percent sign.
    return Migrate(app, db, directory=str(FOLDER).replace("%", "%%"), render_as_batch=False)


@contextmanager
def schema_change(engine: sa.Engine) -> Iterator[sa.Connection]:
    """Yield a connection in one transaction that may rebuild tables, one process at a time.

    SQLite does not enforce foreign keys meanwhile, as dropping a parent table would delete its
    children; they are checked before the commit.
    """
    create_database_file()
    try:
        connection = engine.connect()
    except sa.exc.DBAPIError as error:
        raise start_error(error) from None
    with connection:
        if engine.dialect.name == "postgresql":
            postgres.begin(connection, writes=True)
            lift_time_limits(connection)
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(UPGRADE_LOCK)))
            yield connection
            commit_on(connection)
            return
        raw: Any = connection.connection.driver_connection
        raw.execute("PRAGMA foreign_keys=OFF")
        try:
            sqlite.begin(connection, writes=True)
            yield connection
            if orphans := connection.exec_driver_sql("PRAGMA foreign_key_check").all():
                raise StartError(
                    f"The upgrade was undone: it would break foreign keys ({orphans[:3]})."
                )
            commit_on(connection)
        except sa.exc.OperationalError as error:
            if error_code(error) == "SQLITE_ERROR":  # a mistake in a migration
                raise
            raise start_error(error) from None
        finally:
            connection.rollback()
            raw.execute("PRAGMA foreign_keys=ON")


def create_schema() -> None:
    """Create the schema of a new SQLite database."""
    if is_in_memory():
        with schema_change(db.engine) as connection:
            upgrade(connection)
    else:
        command.upgrade(_config(), "head")


def upgrade(connection: sa.Connection) -> None:
    """Upgrade the schema within a transaction of `schema_change`."""
    command.upgrade(_config(connection), "head")


def downgrade(connection: sa.Connection, revision: str) -> None:
    """Downgrade the schema within a transaction of `schema_change`."""
    command.downgrade(_config(connection), revision)


def _config(connection: sa.Connection | None = None) -> Config:
    config: Config = init_app(current_app).get_config()
    config.attributes["connection"] = connection
    return config
