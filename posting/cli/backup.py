"""`flask backup` and `flask restore`: copies of the SQLite database."""

from pathlib import Path

import click
from flask.cli import with_appcontext

from posting.cli.examples import examples
from posting.ops import backup

FILE = click.Path(dir_okay=False, path_type=Path)


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
    result = backup.restore(file, force=force)
    click.echo(f"The database is restored from {file}.")
    if result.kept:
        click.echo(f"The previous content is kept in {result.kept}")
    if result.needs_upgrade:
        click.echo("The schema of the backup is older. Run: flask db upgrade")
