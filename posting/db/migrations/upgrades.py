"""Upgrades and downgrades of the schema, by Alembic."""

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from flask import Flask, current_app
from flask_migrate import Migrate

from posting.db.engine import db, is_in_memory
from posting.db.migrations import FOLDER, schema_change


def init_app(app: Flask) -> Migrate:
    """Register `flask db`."""
    return Migrate(app, db, directory=FOLDER)


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
