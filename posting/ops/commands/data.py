"""`flask backup`, `restore`, `export` and `import`."""

import sys
from pathlib import Path

import click
from flask.cli import with_appcontext

from posting.cli import examples
from posting.db.migrations import ensure_current, require_current
from posting.ops import archive, backup, backup_folder
from posting.ops.files import command_errors

FILE = click.Path(path_type=Path)
STANDARD_OUTPUT = Path("-")


@examples("flask backup /var/backups/posting/now/", "flask backup --force /media/stick/posting.db")
@click.command("backup")
@click.argument("target", metavar="FOLDER/|FILE")
@click.option("--force", is_flag=True, help="Replace the backup that is there.")
@with_appcontext
def back_up(target: str, force: bool) -> None:
    """Back up the database and your files. The service may run meanwhile.

    FOLDER/ will contain the database, about.md, custom.css and .env, as far as they exist. FILE
    will contain the database alone. Only their owner can read them. The copy of the database is
    checked before it gets its name. Its name in FOLDER/ is posting.db. On Postgres, it is
    posting.dump, an archive of pg_dump.
    """
    path = Path(target)
    if target.endswith("/") or path.is_dir():
        names = backup_folder.back_up(path, force=force)
        click.echo(f"{path} is a backup of {', '.join(names)}.")
        return
    backup.back_up(path, force=force)
    click.echo(f"{path} is a backup of {path.stat().st_size / 2**20:,.1f} MiB.")
    if others := backup_folder.own_files():
        click.echo(
            f"It does not contain {', '.join(others)}. To include them, name a folder, with a "
            "slash at the end."
        )


@examples(
    "flask restore /var/backups/posting/now/", "flask restore --force /var/backups/posting/now/"
)
@click.command("restore")
@click.argument("source", metavar="FOLDER|FILE", type=FILE)
@click.option("--force", is_flag=True, help="Replace a database that is not empty, and your files.")
@with_appcontext
def restore(source: Path, force: bool) -> None:
    """Restore the SQLite database, and from FOLDER your files. The service may run meanwhile.

    The database is checked first. The previous content is kept in files beside the new ones. The
    settings in .env are not restored.
    """
    changes: list[str] = []
    if source.is_dir():
        changes, kept, needs_upgrade = backup_folder.restore(source, force=force)
    else:
        kept, needs_upgrade = backup.restore(source, force=force)
    click.echo(f"The database is restored from {source}.")
    for name in changes:
        is_saved = (source / name).exists()
        change = "is restored" if is_saved else "is not in the backup, and was moved aside"
        click.echo(f"{name} {change}. Restart the service to apply this.")
    for file in kept:
        click.echo(f"The previous content is kept in {file}")
    if settings := backup_folder.other_settings(source):
        click.echo(f"The settings are not restored. Compare yours with {settings}")
    if needs_upgrade:
        click.echo("The schema of the backup is older. Run: flask db upgrade")


@examples("flask export posting.jsonl.gz", "flask export - | gpg --symmetric > posting.gpg")
@click.command("export")
@click.argument("file", type=FILE)
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
@with_appcontext
def export_archive(file: Path, force: bool) -> None:
    """Export the database to FILE, for `flask import`, or to standard output if FILE is `-`.

    The service may run meanwhile. FILE includes images and password hashes, so only its owner can
    read it: protect it like the database.
    """
    require_current()
    if file == STANDARD_OUTPUT:
        if sys.stdout is None:  # closed, as with >&-
            raise click.ClickException(
                "Standard output is closed. Redirect it to a file or a program."
            )
        if sys.stdout.isatty():
            raise click.UsageError("The archive is compressed: redirect it to a file or a program.")
        with command_errors("Standard output cannot be written"):
            counts = archive.export_to_file(sys.stdout.buffer)
            sys.stdout.flush()
        click.echo(f"Exported {archive.describe_counts(counts)}.", err=True)
    else:
        counts = archive.export_to_path(file, replace=force)
        click.echo(f"Exported {archive.describe_counts(counts)} to {file}.")


@examples("flask import posting.jsonl.gz")
@click.command("import")
@click.argument("file", type=FILE)
@with_appcontext
def import_archive(file: Path) -> None:
    """Import FILE, made by `flask export` or another program, into an empty database.

    FILE may come from SQLite or Postgres. Either all of it is imported or nothing. Rows of another
    program are checked like requests, and their images are encoded again.
    """
    ensure_current()
    counts = archive.import_from_path(file)
    click.echo(f"Imported {archive.describe_counts(counts)} from {file}.")
