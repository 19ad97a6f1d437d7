"""`flask export` and `flask import`: move all data with one file."""

from pathlib import Path

import click
from flask.cli import with_appcontext

from posting.cli.examples import examples
from posting.db.migrations import ensure_current
from posting.ops import archive


@examples("flask export posting.jsonl.gz", "flask export --force /var/backups/posting.jsonl.gz")
@click.command("export")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
@with_appcontext
def export_archive(file: Path, force: bool) -> None:
    """Export all data to FILE, for `flask import`.

    The service may run meanwhile. FILE includes images and password hashes, so only its owner can
    read it: protect it like the database.
    """
    ensure_current()
    counts = archive.write(file, replace=force)
    click.echo(f"Exported {archive.describe(counts)} to {file}.")


@examples("flask import posting.jsonl.gz")
@click.command("import")
@click.argument("file", type=click.Path(path_type=Path))
@with_appcontext
def import_archive(file: Path) -> None:
    """Import FILE, made by `flask export`, into an empty database.

    FILE may come from SQLite or Postgres. Either all of it is imported or nothing.
    """
    ensure_current()
    counts = archive.read(file)
    click.echo(f"Imported {archive.describe(counts)} from {file}.")
