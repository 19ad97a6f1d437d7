"""The Alembic environment, for `flask db`, `flask import` and the first start on SQLite."""

from contextlib import nullcontext
from typing import Any

import click
from alembic import context
from alembic.util import CommandError
from flask import current_app

from posting.db.base import db
from posting.db.engine import close_connections
from posting.db.migrations import EXTENSION, require_database
from posting.db.migrations.revisions import (
    database_revisions,
    head_revision,
    known_revisions,
    require_known,
)
from posting.db.migrations.upgrades import schema_change

outer_connection = context.config.attributes.get("connection")


def include_name(name: str | None, kind: str, _parents: Any) -> bool:
    """Return whether --autogenerate compares a table or something of a table."""
    return not (kind == "table" and str(name).startswith(current_app.extensions[EXTENSION]))


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
    name = command.info_name if command else None
    if command and command.parent and command.parent.info_name == "db" and name != "upgrade":
        require_database()
    with (
        nullcontext(outer_connection)
        if outer_connection
        else schema_change(db.engine) as connection
    ):
        found = database_revisions(connection)
        require_known(found)
        context.configure(connection=connection, transactional_ddl=True, **options)
        try:
            context.run_migrations()
        except CommandError:  # Alembic's message does not say what to do
            if name not in {"upgrade", "downgrade", "stamp"}:
                raise
            revisions = ", ".join(sorted(known_revisions()))
            raise click.ClickException(
                f"The schema is {', '.join(found) or 'empty'}, and {name} cannot get "
                f"from there to the revision that you named. The revisions are {revisions}."
            ) from None
        [revision] = database_revisions(connection) or ["empty"]
    is_current = revision == head_revision()
    if is_current and not outer_connection:
        close_connections()  # SQLite deletes its log when the last connection is closed
    if name == "upgrade" and is_current:
        click.echo(f"The database schema is up to date ({revision}).")
    elif name in {"upgrade", "downgrade"}:
        click.echo(f"The database schema is {revision}.")
