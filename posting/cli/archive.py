"""`flask export` and `flask import`: everything as one file, and back."""

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
    """Write everything into FILE, images and password hashes included, for `flask import`.

    The service may go on meanwhile. FILE is for your eyes only: keep it like the database.
    """
    ensure_current()
    counts = archive.write(file, replace=force)
    click.echo(f"Exported {archive.spoken(counts)} to {file}.")


@examples("flask import posting.jsonl.gz")
@click.command("import")
@click.argument("file", type=click.Path(path_type=Path))
@with_appcontext
def import_archive(file: Path) -> None:
    """Fill the empty database with FILE, which `flask export` has written.

    It comes in as a whole or not at all, from SQLite or Postgres into either.
    """
    ensure_current()
    counts = archive.read(file)
    click.echo(f"Imported {archive.spoken(counts)} from {file}.")
