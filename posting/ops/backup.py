"""Back up the SQLite database, and restore it, while the service runs."""

import fcntl
import os
import shlex
import stat
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import click
import sqlalchemy as sa
from pysqlite3 import dbapi2 as sqlite

from posting.db.engine import db, error_reason, is_in_memory, sqlite_file
from posting.db.migrations import VERSION_TABLE, head_revision, known_revisions
from posting.db.types import now
from posting.ops.files import atomic_write

# Suffixes of the files that SQLite keeps beside a database. A stale one would be read into any new
# database of that name.
SIDECARS = ("-wal", "-shm", "-journal")
SQLITE_BUSY, SQLITE_LOCKED = 5, 6
# SQLite locks these bytes of a database file: https://www.sqlite.org/fileformat.html
LOCK_START, LOCK_LENGTH = 2**30, 512
NOT_EMPTY = "The database is not empty. To keep its content beside it and go on, add --force."


class BackupError(click.ClickException):
    """The backup or restore did not happen; the message says why."""


@dataclass(frozen=True)
class RestoreResult:
    """The file that keeps the previous content, if any, and whether the schema is older."""

    kept: Path | None
    needs_upgrade: bool


def back_up(file: Path, *, force: bool) -> None:
    """Copy the database to `file`, readable by its owner only, and check the copy.

    Raise BackupError if the database cannot be copied or is damaged, and TargetExistsError if
    `file` exists without `force`. After an error `file` is as it was.
    """
    database = _database_file(file, "pg_dump", "--format=custom", f"--file={file}", "{url}")
    if not database.exists():
        raise BackupError(f"There is no database at {database}. Check POSTING_DATABASE_URL.")
    with (
        _backup_errors(f"{file} cannot be written"),
        atomic_write(file, replace=force, sidecars=SIDECARS) as draft,
    ):
        _report(f"Copying {database} …")
        _copy_database(draft)
        with closing(_open(draft)) as copy:
            _check(copy, database)


def restore(file: Path, *, force: bool) -> RestoreResult:
    """Replace the content of the database with a backup; keep what was there in a file beside it.

    Raise BackupError if `file` is damaged or not a backup of this service, if the database is not
    empty and there is no `force`, or if it cannot be written. After an error it is as it was.
    """
    options = ("--clean", "--if-exists", "--single-transaction", "--dbname={url}")
    database = _database_file(file, "pg_restore", *options, str(file))
    if not file.exists():
        raise BackupError(f"There is no file {file}.")
    if not file.is_file():
        raise BackupError(f"{file} is not a regular file.")
    kept = database.with_name(f"{database.name}.before-restore-{now():%Y%m%dT%H%M%SZ}")
    with (
        _backup_errors(f"{database} cannot be restored from {file}"),
        closing(_open(file)) as source,
    ):
        revision = _check(source, file)
        if revision not in known_revisions():
            raise BackupError(
                f"{file} has schema version {revision}, which this version does not know. "
                "Restore it with the version of Posting that wrote it, or a newer one."
            )
        if kept.exists():
            raise BackupError(f"{kept} already exists. Try again in a second.")
        _report("Restoring …")
        if database.exists() and _can_open_database():
            _overwrite(source, database, kept, force)
        else:
            _replace(source, database, kept, force)
    return RestoreResult(kept if kept.exists() else None, revision != head_revision())


def _report(step: str) -> None:
    """Print the current step on a terminal only, to keep it out of the logs of timers."""
    if sys.stderr.isatty():
        click.echo(step, err=True)


def _database_file(backup: Path, *postgres_command: str) -> Path:
    """Return the database's file. Raise BackupError if it has none, or if `backup` is that file."""
    if database := sqlite_file():
        for own in _with_sidecars(database):
            if backup.exists() and own.exists() and backup.samefile(own):
                raise BackupError(f"{backup} is the database itself. Name another file.")
        return database
    if is_in_memory():
        raise BackupError(
            "The database is in memory and ends with this command. "
            "Set POSTING_DATABASE_URL to a file."
        )
    url = db.engine.url.difference_update_query(["password", "sslpassword"])
    where = (url.username, None, url.host, url.port, url.database, url.query)
    shown = sa.URL.create("postgresql", *where).render_as_string()
    command = shlex.join(part.replace("{url}", shown) for part in postgres_command)
    raise BackupError(f"This is for SQLite; Postgres has its own command. Run: {command}")


def _with_sidecars(database: Path) -> list[Path]:
    return [database.with_name(database.name + suffix) for suffix in ("", *SIDECARS)]


@contextmanager
def _backup_errors(failure: str) -> Iterator[None]:
    """Raise errors of the system and of SQLite as BackupError."""
    try:
        yield
    except OSError as error:
        raise BackupError(f"{failure} ({error.strerror}).") from None
    except sqlite.Error as error:
        raise BackupError(f"{failure} ({error}).") from None
    except sa.exc.SQLAlchemyError as error:
        raise BackupError(f"{failure} ({error_reason(error)}).") from None


def _open(file: Path) -> Any:
    # Read-write, as a plain copy of a database in use may have a -wal file to be merged.
    connection = sqlite.connect(f"{file.resolve().as_uri()}?mode=rw", uri=True)
    connection.isolation_level = None
    return connection


def _check(connection: Any, name: Path) -> str:
    """Return the schema version of a database. Raise BackupError if it is damaged or foreign."""
    _report(f"Checking {name} …")
    try:
        [(answer,)] = connection.execute("PRAGMA integrity_check(1)").fetchall()
        orphans = connection.execute("PRAGMA foreign_key_check").fetchall()
    except sqlite.OperationalError:
        raise
    except sqlite.DatabaseError as error:
        raise BackupError(f"{name} is damaged, or not an SQLite database ({error}).") from None
    if answer != "ok":
        raise BackupError(f"{name} is damaged ({' '.join(answer.split())}).")
    if orphans:
        raise BackupError(
            f"{name} has {len(orphans)} broken foreign keys, for example in {orphans[0][0]}. "
            "Delete the rows that PRAGMA foreign_key_check lists, or restore an older backup."
        )
    try:
        found = connection.execute("SELECT version_num FROM alembic_version").fetchall()
    except sqlite.OperationalError:
        found = []
    if not found:
        raise BackupError(f"{name} is not a Posting database: it has no schema version.")
    return str(found[0][0])


def _copy_database(draft: Path) -> None:
    with db.engine.connect().execution_options(writes=False) as connection:
        _copy(connection.connection.driver_connection, draft)


def _copy(source: Any, draft: Path) -> None:
    """Copy a database in one step; with several, each write to the source would restart it."""
    with closing(_open(draft)) as target:
        source.backup(target, pages=-1, progress=_raise_if_busy)
        target.execute("PRAGMA journal_mode=DELETE")  # so that the copy is a single file


def _raise_if_busy(status: int, _remaining: int, _total: int) -> None:
    """Give up once busy_timeout has passed; by default the driver retries for ever."""
    if status in {SQLITE_BUSY, SQLITE_LOCKED}:
        raise BackupError("Another process keeps the database locked. Stop it, or try again.")


def _can_open_database() -> bool:
    """Return False if the database is too damaged to be opened."""
    try:
        db.engine.connect().close()
    except sa.exc.OperationalError:
        raise
    except sa.exc.DatabaseError:
        return False
    return True


def _keep(kept: Path, force: bool) -> None:
    """Copy the database to `kept` unless it is empty. Raise BackupError without `force`."""
    try:
        with db.engine.connect().execution_options(writes=False) as connection:
            names = set(sa.inspect(connection).get_table_names()) - {VERSION_TABLE.name}
            selects = [sa.select(sa.exists().select_from(sa.table(name))) for name in names]
            is_empty = not any(map(connection.scalar, selects))
    except sa.exc.DatabaseError:
        is_empty = False  # what cannot be read here may still be worth keeping
    if is_empty:
        return
    if not force:
        raise BackupError(NOT_EMPTY)
    with atomic_write(kept, replace=False, sidecars=SIDECARS) as draft:
        _copy_database(draft)


def _overwrite(source: Any, database: Path, kept: Path, force: bool) -> None:
    """Write `source` over the database in one transaction, which clients see like any other.

    The first step takes the write lock. The current content is kept under that lock, so that no
    write can fall in between and be lost.
    """

    def step(status: int, remaining: int, total: int) -> None:
        _raise_if_busy(status, remaining, total)
        if remaining == total - 1:
            _keep(kept, force)

    with closing(db.engine.raw_connection()) as connection:
        target: Any = connection.driver_connection
        try:
            with _with_page_size_of(target, source, database) as pages:
                pages.backup(target, pages=1, progress=step)
        except sqlite.Error:  # such as a full disk; the transaction is rolled back
            kept.unlink(missing_ok=True)
            raise
        target.execute("PRAGMA wal_checkpoint(PASSIVE)")  # so that the next writer need not do it


@contextmanager
def _with_page_size_of(target: Any, source: Any, database: Path) -> Iterator[Any]:
    """Yield `source`, or a temporary copy of it that has the page size of `target`.

    SQLite cannot copy pages of another size into a database in WAL mode.
    """
    [(target_size,)], [(source_size,)] = (
        each.execute("PRAGMA page_size") for each in (target, source)
    )
    if source_size == target_size:
        yield source
        return
    with NamedTemporaryFile(dir=database.parent, prefix=f".{database.name}.") as draft:
        source.execute(f"PRAGMA page_size={target_size}")
        source.execute("VACUUM INTO ?", (draft.name,))
        with closing(_open(Path(draft.name))) as pages:
            yield pages


def _replace(source: Any, database: Path, kept: Path, force: bool) -> None:
    """Put a copy of `source` in place of a missing database, or of one that cannot be opened."""
    is_damaged = database.exists()
    if is_damaged and not force:
        raise BackupError(NOT_EMPTY)
    like = (database if is_damaged else database.parent).stat()
    with (
        _exclusive_lock(database) if is_damaged else nullcontext(),
        atomic_write(database, replace=True, sidecars=SIDECARS) as draft,
    ):
        _copy(source, draft)
        if is_damaged:
            draft.chmod(stat.S_IMODE(like.st_mode))
        if os.geteuid() == 0:  # the service runs as another user, who must be able to open the file
            os.chown(draft, like.st_uid, like.st_gid)
        for own, aside in zip(_with_sidecars(database), _with_sidecars(kept), strict=True):
            if own.exists():
                own.rename(aside)


@contextmanager
def _exclusive_lock(database: Path) -> Iterator[None]:
    """Lock a damaged database. Raise BackupError if another process has it open.

    Such a process would continue with the old file, and on exit delete the new one's sidecars.
    """
    with database.open("rb+") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, LOCK_LENGTH, LOCK_START)
        except BlockingIOError:
            raise BackupError(
                "The database is damaged and in use. Stop the service, then restore."
            ) from None
        yield
