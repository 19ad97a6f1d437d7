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
@click.option("--force", is_flag=True, help="Replace FILE if it is there already.")
@with_appcontext
def back_up(file: Path, force: bool) -> None:
    """Copy the SQLite database to FILE, also while the service writes.

    FILE holds everything but the secret key, and its owner alone may read it. It is checked
    before it gets its name.
    """
    backup.back_up(file, force=force)
    click.echo(f"{file} is a backup of {file.stat().st_size / 2**20:,.1f} MiB.")


@examples("flask restore /var/backups/posting.db", "flask restore --force /var/backups/posting.db")
@click.command("restore")
@click.argument("file", type=FILE)
@click.option("--force", is_flag=True, help="Go on when the database holds something.")
@with_appcontext
def restore(file: Path, force: bool) -> None:
    """Put a backup in the place of the SQLite database, also while the service runs.

    FILE is checked first. What was there is kept in a file beside the database.
    """
    restored = backup.restore(file, force=force)
    click.echo(f"The database is as it was in {file}.")
    if restored.kept:
        click.echo(f"What was there before is kept in {restored.kept}")
    if restored.wants_upgrade:
        click.echo("Its schema is an older one. Run: flask db upgrade")
