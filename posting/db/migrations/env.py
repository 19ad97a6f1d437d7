"""The Alembic environment, for `flask db`, `flask import` and the first start on SQLite."""

import logging
from contextlib import nullcontext
from typing import Any

import click
import sqlalchemy as sa
from alembic import context
from flask import current_app
from flask.logging import default_handler

from posting.config import StartError
from posting.db import search  # and the models, which fill the metadata
from posting.db.engine import db, error_reason
from posting.db.migrations import database_revisions, head_revision, schema_change

logger = logging.getLogger("alembic.runtime.migration")
if default_handler not in logger.handlers:
    logger.addHandler(default_handler)

outer_connection = context.config.attributes.get("connection")
logger.setLevel(logging.WARNING if outer_connection else logging.INFO)


def include_name(name: str | None, kind: str, _parents: Any) -> bool:
    """Return whether --autogenerate compares a table or something of a table."""
    return not (kind == "table" and str(name).startswith(search.TABLE.name))


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
    with (
        nullcontext(outer_connection)
        if outer_connection
        else schema_change(db.engine) as connection
    ):
        context.configure(connection=connection, transactional_ddl=True, **options)
        context.run_migrations()
        is_current = database_revisions(connection) == [head_revision()]
        is_unindexed = is_current and search.is_empty(connection)
    if is_unindexed and not outer_connection:
        try:
            for _ in search.rebuild():
                pass
        except sa.exc.SQLAlchemyError as error:
            raise StartError(
                f"The posts are not indexed for search ({error_reason(error)}). "
                "Run: flask search rebuild"
            ) from None
    command = click.get_current_context(silent=True)
    if is_current and command and command.info_name == "upgrade":
        click.echo(f"The database schema is up to date ({head_revision()}).")
