"""The Alembic environment, for `flask db`, `flask import` and the first start on SQLite."""

import logging
from contextlib import nullcontext

import click
from alembic import context
from flask import current_app
from flask.logging import default_handler

from posting.db import models  # noqa: F401 - fills the metadata that --autogenerate compares
from posting.db.engine import db
from posting.db.migrations import database_revisions, head_revision, schema_change

logger = logging.getLogger("alembic.runtime.migration")
if default_handler not in logger.handlers:
    logger.addHandler(default_handler)

shared = context.config.attributes.get("connection")
logger.setLevel(logging.WARNING if shared else logging.INFO)
options = current_app.extensions["migrate"].configure_args | {"target_metadata": db.metadata}

if context.is_offline_mode():
    url = db.engine.url.render_as_string(hide_password=False)
    context.configure(url=url, literal_binds=True, **options)
    with context.begin_transaction():
        context.run_migrations()
else:
    with nullcontext(shared) if shared else schema_change(db.engine) as connection:
        context.configure(connection=connection, transactional_ddl=True, **options)
        context.run_migrations()
        command = click.get_current_context(silent=True)
        is_upgrade = command and command.info_name == "upgrade"
        if is_upgrade and database_revisions(connection) == [head_revision()]:
            click.echo(f"The database schema is up to date ({head_revision()}).")
