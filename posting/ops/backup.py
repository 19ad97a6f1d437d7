"""Back up the database while the service runs, and restore an SQLite database.

Postgres has programs for both, of which the backup is run here.
"""

import fcntl
import math
import shlex
import shutil
import subprocess
import sys
from contextlib import closing, nullcontext, suppress
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import click
import sqlalchemy as sa
from click import ClickException
from flask import current_app
from pysqlite3 import dbapi2 as sqlite

from posting.accounts.models import MEMBER
from posting.config import child_environment
from posting.db.base import db
from posting.db.engine import create_instance_folder, sqlite_file, url_without_password
from posting.db.migrations import require_database
from posting.db.migrations.revisions import (
    first_revision,
    head_revision,
    how_to_convert,
    is_too_old,
    known_revisions,
)
from posting.db.sqlite import DEADLINE
from posting.db.transactions import snapshot
from posting.db.types import new_id
from posting.ops.content import find_content
from posting.ops.files import atomic_write, command_errors, inherit_access, kept_name, refuse_memory
from posting.plurals import count

# Suffixes of the files that SQLite keeps beside a database. A stale one would be read into any new
# database of that name.
SIDECARS = ("-wal", "-shm", "-journal")
# SQLite locks these bytes of a database file: https://www.sqlite.org/fileformat.html
LOCK_START, LOCK_LENGTH = 2**30, 512
PG_RESTORE = "pg_restore --clean --if-exists --single-transaction --dbname={url} {file}"
NOT_EMPTY = "The database is not empty. Add --force to replace its content and keep a copy of it."


def back_up(file: Path, *, force: bool) -> None:
    """Copy the database to `file`, readable by its owner only, and check the copy.

    On Postgres, the copy is an archive of pg_dump.

    Raise ClickException if the database cannot be copied or is damaged, or if `file` exists and
    there is no `force`. After an error `file` is as it was.
    """
    if db.engine.dialect.name == "postgresql":
        _dump(file, force=force)
        return
    database = _database_file(file)
    require_database()
    with (
        command_errors(f"{file} cannot be written"),
        atomic_write(file, replace=force, sidecars=SIDECARS) as draft,
    ):
        _report(f"Copying {database} …")
        _copy_database(draft)
        with closing(_open(draft)) as copy:
            _check(copy, database)


def restore(file: Path, *, force: bool) -> tuple[list[Path], bool]:
    """Replace the content of the database with a backup; keep what was there in a file beside it.

    Raise ClickException if `file` is damaged or not a backup of this service, if the database is
    not empty and there is no `force`, or if it cannot be written. After an error it is as it was.

    Return a list with the file that keeps the previous content, if there was any, and whether the
    schema is older.
    """
    if db.engine.dialect.name == "postgresql":
        raise ClickException(
            "This restores SQLite; Postgres has its own command. Stop the service, and run: "
            f"{pg_restore_command(file)}"
        )
    database = _database_file(file)
    if not file.exists():
        raise ClickException(f"There is no file {file}.")
    if not file.is_file():
        raise ClickException(f"{file} is not a regular file.")
    kept = kept_name(database)
    with (
        command_errors(f"{database} cannot be restored from {file}"),
        closing(_open(file)) as source,
    ):
        revision = _check(source, file)
        if is_too_old(revision):
            raise ClickException(
                f"{file} has schema version {revision}, from before schema {first_revision()}. "
                f"{how_to_convert(f'flask restore {file}; flask db upgrade')}"
            )
        if revision not in known_revisions():
            raise ClickException(
                f"{file} has schema version {revision}, which this version does not know. "
                "Restore it with the version of Posting that wrote it, or a newer one."
            )
        if kept.exists():
            raise ClickException(f"{kept} already exists. Try again in a second.")
        if database.parent == Path(current_app.instance_path).resolve():
            create_instance_folder(current_app)
        _report("Restoring …")
        try:
            target = db.engine.raw_connection() if database.exists() else None
        except sqlite.OperationalError:
            raise
        except sqlite.DatabaseError:  # too damaged to be opened
            target = None
        if target:
            target.info[DEADLINE] = math.inf  # the time limit of a query is for requests
            with closing(target):
                _overwrite(source, target.driver_connection, database, kept, force)
        else:
            _replace(source, database, kept, force)
    return [kept] if kept.exists() else [], revision != head_revision()


def _report(step: str) -> None:
    """Print the current step on a terminal only, to keep it out of the logs of timers."""
    if sys.stderr and sys.stderr.isatty():  # it is None if it is closed
        click.echo(step, err=True)


def pg_restore_command(file: Path) -> str:
    """Return the command that restores an archive of pg_dump into the database."""
    url = shlex.quote(str(url_without_password()))
    return PG_RESTORE.format(url=url, file=shlex.quote(str(file)))


def _dump(file: Path, *, force: bool) -> None:
    """Copy a Postgres database with pg_dump, and let pg_restore read the table of contents."""
    for program in ("pg_dump", "pg_restore"):
        if not shutil.which(program):
            raise ClickException(
                f"{program} is missing. Install the client of Postgres, on Debian with: "
                "apt-get install postgresql-client. Or run pg_dump where the server is."
            )
    with command_errors(f"{file} cannot be written"), atomic_write(file, replace=force) as draft:
        _report(f"Copying {url_without_password()} …")
        target = f"--dbname={url_without_password()}"
        _run("pg_dump", "--format=custom", f"--file={draft}", "--no-password", target)
        _report(f"Checking {file} …")
        _run("pg_restore", "--list", str(draft))


def _run(*command: str) -> None:
    """Run a program of Postgres. Raise ClickException with its message if it fails."""
    url = db.engine.url
    password = url.password or url.query.get("password")
    secret = {"PGPASSWORD": str(password)} if password else {}
    run = subprocess.run(  # noqa: S603 - the arguments are ours
        command,
        check=False,
        env=child_environment(secret),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    if run.returncode:
        raise ClickException(f"{command[0]} failed: {run.stderr.strip()}")


def _database_file(backup: Path) -> Path:
    """Return the file of the SQLite database. Refuse memory, and `backup` as this file."""
    database = sqlite_file()
    if database is None:
        refuse_memory()
        raise RuntimeError("Neither a file nor memory")
    for own in _with_sidecars(database):
        if backup.exists() and own.exists() and backup.samefile(own):
            raise ClickException(f"{backup} is the database itself. Name another file.")
    return database


def _with_sidecars(database: Path) -> list[Path]:
    return [database.with_name(database.name + suffix) for suffix in ("", *SIDECARS)]


def _open(file: Path) -> Any:
    # Read-write, as a plain copy of a database in use may have a -wal file to be merged.
    connection = sqlite.connect(f"{file.resolve().as_uri()}?mode=rw", uri=True)
    connection.isolation_level = None
    return connection


def _check(connection: Any, name: Path) -> str:
    """Return the schema version of a database. Refuse one that is damaged or foreign."""
    _report(f"Checking {name} …")
    try:
        [(answer,)] = connection.execute("PRAGMA integrity_check(1)").fetchall()
        orphans = connection.execute("PRAGMA foreign_key_check").fetchall()
    except sqlite.OperationalError:
        raise
    # SQLite quotes damaged text in its messages, which may not be UTF-8.
    except (sqlite.DatabaseError, UnicodeDecodeError) as error:
        raise ClickException(f"{name} is damaged, or not an SQLite database ({error}).") from None
    if answer != "ok":
        raise ClickException(f"{name} is damaged ({' '.join(answer.split())}).")
    if orphans:
        raise ClickException(
            f"{name} has {count(len(orphans), 'broken foreign key')}, for example in "
            f"{orphans[0][0]}. "
            "Delete the rows that PRAGMA foreign_key_check lists, or restore an older backup."
        )
    found = []
    with suppress(sqlite.OperationalError):  # the table is missing
        found = connection.execute("SELECT version_num FROM alembic_version").fetchall()
    if not found:
        raise ClickException(f"{name} is not a Posting database: it has no schema version.")
    return str(found[0][0])


def _copy_database(draft: Path) -> None:
    with snapshot() as connection:
        _copy(connection.connection.driver_connection, draft)


def _copy(source: Any, draft: Path) -> None:
    """Copy a database in one step; with several, each write to the source would restart it."""
    with closing(_open(draft)) as target:
        source.backup(target, pages=-1, progress=_raise_if_busy)
        target.execute("PRAGMA journal_mode=DELETE")  # so that the copy is a single file


def _raise_if_busy(status: int, _remaining: int, _total: int) -> None:
    """Give up once busy_timeout has passed; by default the driver retries for ever."""
    if status in {sqlite.SQLITE_BUSY, sqlite.SQLITE_LOCKED}:
        raise ClickException("Another process keeps the database locked. Stop it, or try again.")


def _overwrite(source: Any, target: Any, database: Path, kept: Path, force: bool) -> None:
    """Write `source` over the database in one transaction, which clients see like any other.

    The first step takes the write lock. The current content is kept under that lock, so that no
    write can fall in between and be lost.
    """

    def step(status: int, remaining: int, total: int) -> None:
        _raise_if_busy(status, remaining, total)
        if remaining == total - 1:
            _keep(database, kept, force)

    [source_size], [target_size] = (
        each.execute("PRAGMA page_size").fetchone() for each in (source, target)
    )
    with NamedTemporaryFile(dir=database.parent, prefix=f".{database.name}.") as converted:
        if source_size != target_size:  # SQLite cannot copy such pages in WAL mode
            source.execute(f"PRAGMA page_size={target_size}")
            source.execute("VACUUM INTO ?", (converted.name,))
            source = _open(Path(converted.name))
        try:
            with closing(source):
                source.backup(target, pages=1, progress=step)
        except sqlite.Error:  # such as a full disk; the transaction is rolled back
            kept.unlink(missing_ok=True)
            raise
    _finish(target)
    target.execute("PRAGMA wal_checkpoint(PASSIVE)")  # so that the next writer need not do it


def _finish(connection: Any) -> None:
    """Begin another epoch of the restored content, and delete a link for the first moderator.

    Its schema may be too old to have either.
    """
    names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    if "epochs" in names:
        connection.execute("UPDATE epochs SET id = ?", (new_id(),))
    if "invitations" in names:
        connection.execute("DELETE FROM invitations WHERE role != ?", (MEMBER,))


def _keep(database: Path, kept: Path, force: bool) -> None:
    """Copy the database to `kept` unless it is empty. Refuse to continue without `force`."""
    try:
        with snapshot() as connection:
            is_empty = find_content(connection) is None
    except sa.exc.DatabaseError:
        is_empty = False  # what cannot be read here may still be worth keeping
    if is_empty:
        return
    if not force:
        raise ClickException(NOT_EMPTY)
    with atomic_write(kept, replace=False, sidecars=SIDECARS) as draft:
        _copy_database(draft)
        inherit_access(draft, database)


def _replace(source: Any, database: Path, kept: Path, force: bool) -> None:
    """Put a copy of `source` in place of a missing database, or of one that cannot be opened."""
    is_damaged = database.exists()
    if is_damaged and not force:
        raise ClickException(NOT_EMPTY)
    with (
        database.open("rb+") if is_damaged else nullcontext() as damaged,
        atomic_write(database, replace=True, sidecars=SIDECARS) as draft,
    ):
        if damaged:
            # A process that has the database open would continue with the old file, and on exit
            # delete the sidecars of the new one.
            try:
                fcntl.lockf(damaged, fcntl.LOCK_EX | fcntl.LOCK_NB, LOCK_LENGTH, LOCK_START)
            except BlockingIOError:
                message = "The database is damaged and in use. Stop the service, then restore."
                raise ClickException(message) from None
        _copy(source, draft)
        with closing(_open(draft)) as copy:
            _finish(copy)
        inherit_access(draft, database)
        for own, aside in zip(_with_sidecars(database), _with_sidecars(kept), strict=True):
            if own.exists():
                own.rename(aside)
