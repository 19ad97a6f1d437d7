"""`flask db`: the schema of the database. The commands are those of Flask-Migrate."""

from typing import Any

import click
from flask_migrate.cli import db as migrate

from posting.cli import examples
from posting.db.engine import url_without_password
from posting.db.migrations import require_database

ORIGINAL = migrate.commands["downgrade"]


@examples("flask db downgrade", "flask db downgrade --yes 0008")
@click.command("downgrade", params=[*ORIGINAL.params])
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.pass_context
def downgrade(context: click.Context, /, yes: bool, **options: Any) -> None:
    """Revert to an earlier schema, by default to the previous one.

    Data that the earlier schema has no place for is deleted: back up the database first.
    """
    if not yes and not options["sql"]:
        require_database()
        url = url_without_password()
        target = "the previous one" if options["revision"] == "-1" else options["revision"]
        click.confirm(
            f"Revert the schema of {url} to {target}? "
            "Data that the earlier schema has no place for is deleted.",
            abort=True,
        )
    context.invoke(ORIGINAL.callback, **options)


db = click.Group(
    "db",
    commands={**migrate.commands, "downgrade": downgrade},
    params=migrate.params,
    callback=migrate.callback,
    help="Upgrade the schema of the database, and work with its migrations.",
)
