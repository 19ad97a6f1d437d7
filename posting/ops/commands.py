"""The `flask` commands of operators."""

import json
import re
import sys
from email.headerregistry import Address
from pathlib import Path
from typing import Any

import click
import sqlalchemy as sa
from flask import current_app
from flask.cli import AppGroup, with_appcontext
from flask_migrate.cli import db as migrate

from posting.accounts.models import User
from posting.cli import examples
from posting.db.engine import sqlite_file, url_without_password
from posting.db.epoch import renew_epoch
from posting.db.migrations import ensure_current, is_missing, require_current, require_database
from posting.db.migrations.revisions import database_revisions, known_revisions
from posting.db.migrations.start_errors import start_error
from posting.db.transactions import fetch_value, snapshot, transaction
from posting.ops import backup, backup_folder
from posting.ops.archive.exporting import describe_counts, export_to_file, export_to_path
from posting.ops.archive.importing import import_from_path
from posting.ops.doctor import examination
from posting.ops.doctor.mail import send_test_mail
from posting.ops.files import command_errors
from posting.ops.search import rebuild
from posting.ops.thumbnails import complete
from posting.plurals import count
from posting.posts.models import Post
from posting.posts.schemas import IMAGES_PER_POST
from posting.progress import progress
from posting.smtp import ADDRESS
from posting.web.openapi import document

FILE = click.Path(path_type=Path)
STANDARD_OUTPUT = Path("-")
COLORS = {"ok": "green", "warning": "yellow", "failure": "red"}  # of the levels of the doctor
LEVEL_WIDTH = max(map(len, COLORS)) + 2
# The words in the search index have changed with this schema.
SEARCH_REVISION = "0026"

# --- The schema: the commands of Flask-Migrate, two of which are extended ---

db: click.Group = migrate
db.help = "Upgrade the schema of the database, and work with its migrations."
original_upgrade, original_downgrade = migrate.commands["upgrade"], migrate.commands["downgrade"]


def parse_address(
    _context: click.Context, _parameter: click.Parameter, value: str | None
) -> Address | None:
    """Return the address of an option. Raise BadParameter."""
    if value is None:
        return None
    if not ADDRESS.fullmatch(value):
        raise click.BadParameter(f"{value!r} is not an address such as ada@example.org.")
    user, _, domain = value.rpartition("@")
    return Address(username=user, domain=domain)


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
for command in db.commands.values():
    for parameter in command.params:
        if parameter.name in {"revision", "rev_range"}:
            parameter.callback = require_revision


@examples("flask db upgrade")
@db.command("upgrade", params=[*original_upgrade.params])
@click.pass_context
def upgrade(context: click.Context, /, **options: Any) -> None:
    """Upgrade the schema, by default to that of this version."""
    before = [] if options["sql"] else _revisions()
    context.invoke(original_upgrade.callback, **options)
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
    except sa.exc.SQLAlchemyError as error:  # also a refusal, which elsewhere may be our mistake
        raise start_error(error) from None


@examples("flask db downgrade", "flask db downgrade --yes 0025")
@db.command("downgrade", params=[*original_downgrade.params])
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
    context.invoke(original_downgrade.callback, **options)


# --- Backups and archives ---


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
            counts = export_to_file(sys.stdout.buffer)
            sys.stdout.flush()
        click.echo(f"Exported {describe_counts(counts)}.", err=True)
    else:
        counts = export_to_path(file, replace=force)
        click.echo(f"Exported {describe_counts(counts)} to {file}.")


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
    counts = import_from_path(file)
    click.echo(f"Imported {describe_counts(counts)} from {file}.")


# --- Demo, doctor, search, images and OpenAPI ---


@examples("flask demo", "flask demo --posts 100000 --users 1000 --comments 0 --images 0")
@click.command("demo")
@click.option("--posts", default=1000, show_default=True, type=click.IntRange(1, 10_000_000))
@click.option("--users", "people", default=100, show_default=True, type=click.IntRange(1, 100_000))
@click.option("--comments", default=3000, show_default=True, type=click.IntRange(0, 10_000_000))
@click.option("--images", default=100, show_default=True, type=click.IntRange(0, 1_000_000))
@click.option("--force", is_flag=True, help="Add to a database that is not empty.")
@with_appcontext
def fill_with_demo(posts: int, people: int, comments: int, images: int, force: bool) -> None:
    """Fill an empty database with generated users, posts, comments, images and reports.

    All generated users have the same public password, which is printed at the end.
    """
    from posting.ops import demo  # noqa: PLC0415 - imports Pillow, which no other command needs

    require_current()
    if images > posts * IMAGES_PER_POST:
        raise click.UsageError(f"A post has at most {IMAGES_PER_POST} images.")
    if not force and any(fetch_value(sa.select(sa.exists(kind.id))) for kind in (User, Post)):
        raise click.ClickException(
            "The database holds users or posts, and the password of generated users is public. "
            "Set POSTING_DATABASE_URL to another database, or add --force to use this one."
        )
    demo.add_topics()
    users = demo.add_users(people)
    author_ids = [user["id"] for user in users]
    with progress("Writing posts", posts) as advance:
        for written in demo.add_posts(posts, comments, images, author_ids):
            advance(written)
    demo.add_newcomers(author_ids)
    demo.add_reports(author_ids)
    with transaction() as connection:
        renew_epoch(connection)  # these posts are not among the changes that apps follow
    click.echo(
        f"Added {count(people, 'user')} and {count(posts, 'post')} with "
        f"{count(comments, 'comment')} and {count(images, 'image')}. "
        f"Sign in as {users[0]['username']} with the password: {demo.PASSWORD}"
    )


@examples("flask doctor", "flask doctor && systemctl restart posting")
@click.command("doctor")
@click.option("--to", "address", callback=parse_address, help="Send a test mail to this address.")
@with_appcontext
def examine(address: Address | None) -> None:
    """Check the settings, database, search index, backups, disk, clock, nginx and mail server.

    Each line is ok, a warning or a failure, with its fix on the next line. The exit code is 1 after
    a failure. Run it as the user of the service. It changes nothing, and sends a mail only with
    --to.
    """
    if address:
        send_test_mail(address)
        click.echo(f"The mail server took a mail to {address.addr_spec}. See whether it arrives.")
        return
    failed = False
    for finding in examination.examine():
        level = click.style(finding.level.ljust(LEVEL_WIDTH), COLORS[finding.level])
        click.echo(level + finding.message)
        if finding.fix:
            click.echo(" " * LEVEL_WIDTH + finding.fix)
        failed = failed or finding.level == "failure"
    if failed:
        raise click.exceptions.Exit(1)


@examples("flask search rebuild")
@click.group(cls=AppGroup)
def search() -> None:
    """Maintain the search index."""


@examples("flask search rebuild")
@search.command("rebuild")
def rebuild_search() -> None:
    """Rebuild the search index, and correct the number of comments and the time of the last one.

    `flask doctor` says when this is needed. The service may run meanwhile.
    """
    require_current()
    *numbers, last = (count(rows, name) for name, rows in rebuild().items())
    click.echo(f"Indexed {', '.join(numbers)} and {last}.")


@examples("flask images thumbnails")
@click.group(cls=AppGroup)
def images() -> None:
    """Maintain the images of posts."""


@examples("flask images thumbnails")
@images.command("thumbnails")
def make_thumbnails() -> None:
    """Make the thumbnails and sizes of images that lack them, such as those of an earlier version.

    `flask doctor` says when this is needed. The service may run meanwhile. If the command is
    interrupted, run it again: it continues. Images that cannot be decoded are named at the end, and
    the exit code is 1.
    """
    require_current()
    made, failures = complete()
    click.echo(f"Completed {count(made, 'image')}.")
    for failure in failures:
        click.echo(failure, err=True)
    if failures:
        raise click.exceptions.Exit(1)


@examples("flask openapi print")
@click.group(cls=AppGroup)
def openapi() -> None:
    """Work with the OpenAPI document of the API."""


@examples("flask openapi print > openapi.json")
@openapi.command("print")
def print_document() -> None:
    """Print the OpenAPI document as JSON."""
    click.echo(json.dumps(document(current_app), indent=2))
