"""The Alembic environment, for `flask db`, `flask import` and the first start on SQLite."""

import logging
from contextlib import nullcontext
from typing import Any

import click
from alembic import context
from flask import current_app
from flask.logging import default_handler

from posting.db.base import db
from posting.db.engine import close_connections
from posting.db.migrations import EXTENSION, require_database
from posting.db.migrations.revisions import database_revisions, head_revision, require_known
from posting.db.migrations.upgrades import schema_change

logger = logging.getLogger("alembic.runtime.migration")
if default_handler not in logger.handlers:
    logger.addHandler(default_handler)

outer_connection = context.config.attributes.get("connection")
logger.setLevel(logging.WARNING if outer_connection else logging.INFO)


def include_name(name: str | None, kind: str, _parents: Any) -> bool:
    """Return whether --autogenerate compares a table or something of a table."""
    return not (kind == "table" and str(name).startswith(hooks.unmanaged_tables))


hooks = current_app.extensions[EXTENSION]
options = current_app.extensions["migrate"].configure_args | {
    "target_metadata": db.metadata,
    "include_name": include_name,
}

if context.is_offline_mode():
    url = db.engine.url.render_as_string(hide_password=False)
    context.configure(url=url, literal_binds=True, **options)
    with context.begin_transaction():
        context.run_migrations()
else:
    command = click.get_current_context(silent=True)
    is_upgrade = command is not None and command.info_name == "upgrade"
    if command and command.parent and command.parent.info_name == "db" and not is_upgrade:
        require_database()
    with (
        nullcontext(outer_connection)
        if outer_connection
        else schema_change(db.engine) as connection
    ):
        require_known(database_revisions(connection))
        context.configure(connection=connection, transactional_ddl=True, **options)
        context.run_migrations()
        is_current = database_revisions(connection) == [head_revision()]
    if is_current and not outer_connection:
        for fill in hooks.after_upgrade:
            fill()
        close_connections()  # SQLite deletes its log when the last connection is closed
    if is_current and is_upgrade:
        click.echo(f"The database schema is up to date ({head_revision()}).")
