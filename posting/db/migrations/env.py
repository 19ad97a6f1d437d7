"""How Alembic runs the versions, for `flask db upgrade` and a first start on SQLite."""

import logging

import click
from alembic import context
from flask import current_app
from flask.logging import default_handler

from posting.db import models  # noqa: F401 - fills the metadata that --autogenerate compares
from posting.db.engine import db
from posting.db.migrations import newest, revisions, schema_change

logger = logging.getLogger("alembic.runtime.migration")
logger.setLevel(logging.INFO)
if default_handler not in logger.handlers:
    logger.addHandler(default_handler)

options = current_app.extensions["migrate"].configure_args

if context.is_offline_mode():
    url = db.engine.url.render_as_string(hide_password=False)
    context.configure(url=url, target_metadata=db.metadata, literal_binds=True, **options)
    with context.begin_transaction():
        context.run_migrations()
else:
    with schema_change(db.engine) as connection:
        context.configure(
            connection=connection,
            target_metadata=db.metadata,
            transactional_ddl=True,
            **options,
        )
        context.run_migrations()
        command = click.get_current_context(silent=True)
        if command and command.info_name == "upgrade" and revisions(connection) == [newest()]:
            click.echo(f"The database schema is up to date ({newest()}).")
