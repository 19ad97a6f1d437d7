"""`flask backup`, `restore`, `export` and `import`: all data in one file."""

from pathlib import Path

import click
from flask.cli import with_appcontext

from posting.cli.examples import examples
from posting.db.migrations import ensure_current
from posting.ops import archive, backup

FILE = click.Path(path_type=Path)


@examples("flask backup /var/backups/posting.db", "flask backup --force /media/stick/posting.db")
@click.command("backup")
@click.argument("file", type=FILE)
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
@with_appcontext
def back_up(file: Path, force: bool) -> None:
    """Back up the SQLite database to FILE. The service may run meanwhile.

    FILE holds all data, and only its owner can read it. It is checked before it gets its name.
    """
    backup.back_up(file, force=force)
    click.echo(f"{file} is a backup of {file.stat().st_size / 2**20:,.1f} MiB.")


@examples("flask restore /var/backups/posting.db", "flask restore --force /var/backups/posting.db")
@click.command("restore")
@click.argument("file", type=FILE)
@click.option("--force", is_flag=True, help="Replace a database that is not empty.")
@with_appcontext
def restore(file: Path, force: bool) -> None:
    """Restore the SQLite database from the backup FILE. The service may run meanwhile.

    FILE is checked first. The previous content is kept in a file beside the database.
    """
    kept, needs_upgrade = backup.restore(file, force=force)
    click.echo(f"The database is restored from {file}.")
    if kept:
        click.echo(f"The previous content is kept in {kept}")
    if needs_upgrade:
        click.echo("The schema of the backup is older. Run: flask db upgrade")


@examples("flask export posting.jsonl.gz", "flask export --force /var/backups/posting.jsonl.gz")
@click.command("export")
@click.argument("file", type=FILE)
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
@click.argument("file", type=FILE)
@with_appcontext
def import_archive(file: Path) -> None:
    """Import FILE, made by `flask export`, into an empty database.

    FILE may come from SQLite or Postgres. Either all of it is imported or nothing.
    """
    ensure_current()
    counts = archive.read(file)
    click.echo(f"Imported {archive.describe(counts)} from {file}.")
