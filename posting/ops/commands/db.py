"""`flask db`: the schema of the database. The commands are those of Flask-Migrate."""

import re
from typing import Any

import click
import sqlalchemy as sa
from flask_migrate.cli import db as migrate

from posting.cli import examples
from posting.db.engine import sqlite_file, url_without_password
from posting.db.migrations import is_missing, require_database
from posting.db.migrations.revisions import database_revisions, known_revisions
from posting.db.migrations.start_errors import start_error
from posting.db.transactions import snapshot
from posting.ops.search import rebuild

ORIGINAL = {name: migrate.commands[name] for name in ("upgrade", "downgrade")}
# The words in the search index have changed with this schema.
SEARCH_REVISION = "0026"


def require_revision(_context: click.Context, parameter: click.Parameter, value: Any) -> Any:
    """Refuse a revision that does not exist, before the command asks or changes anything."""
    revisions = sorted(known_revisions())
    names = "|".join(["base", "heads?", "current", *map(re.escape, revisions)])
    revision = rf"(?:(?:{names})(?:[+-]\d+)?|[+-]\d+)"
    if value is None or re.fullmatch(f"{revision}|{revision}?:{revision}?", value):
        return value
    raise click.BadParameter(
        f"there is no revision {value!r}. The revisions are {', '.join(revisions)}.",
        param=parameter,
    )


# All commands that take a revision or a range of revisions.
for command in migrate.commands.values():
    for parameter in command.params:
        if parameter.name in {"revision", "rev_range"}:
            parameter.callback = require_revision


@examples("flask db upgrade")
@click.command("upgrade", params=[*ORIGINAL["upgrade"].params])
@click.pass_context
def upgrade(context: click.Context, /, **options: Any) -> None:
    """Upgrade the schema, by default to that of this version."""
    before = [] if options["sql"] else _revisions()
    context.invoke(ORIGINAL["upgrade"].callback, **options)
    if before and before[0] < SEARCH_REVISION <= _revisions()[0]:
        click.echo(
            "All texts are indexed again for search. If this is interrupted, run: "
            "flask search rebuild",
            err=True,
        )
        rebuild()


def _revisions() -> list[str]:
    """Return the revision of the database in a list, or an empty list if there is none."""
    if (file := sqlite_file()) and is_missing(file):
        return []
    try:
        with snapshot() as connection:
            return database_revisions(connection)
    except sa.exc.SQLAlchemyError as error:
        raise start_error(error) from None


@examples("flask db downgrade", "flask db downgrade --yes 0025")
@click.command("downgrade", params=[*ORIGINAL["downgrade"].params])
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.pass_context
def downgrade(context: click.Context, /, yes: bool, **options: Any) -> None:
    """Revert to an earlier schema, by default to the previous one.

    Data that the earlier schema has no place for is deleted: back up the database first.
    """
    if not yes and not options["sql"]:
        require_database()
        name = sqlite_file() or url_without_password()
        target = "the previous one" if options["revision"] == "-1" else options["revision"]
        click.confirm(
            f"Revert the schema of {name} to {target}? "
            "Data that the earlier schema has no place for is deleted.",
            abort=True,
        )
    context.invoke(ORIGINAL["downgrade"].callback, **options)


db = click.Group(
    "db",
    commands={**migrate.commands, "upgrade": upgrade, "downgrade": downgrade},
    params=migrate.params,
    callback=migrate.callback,
    help="Upgrade the schema of the database, and work with its migrations.",
)
