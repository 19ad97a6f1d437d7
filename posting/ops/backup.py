"""Copies of the SQLite database: made while the service writes, and put back under it."""

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
from posting.ops.files import appearing

# The endings of files beside a database. One that is left over is read into any that has its name.
SIDES = ("-wal", "-shm", "-journal")
BUSY = {5, 6}  # SQLITE_BUSY and SQLITE_LOCKED
# The bytes on which SQLite locks a database file, as https://www.sqlite.org/fileformat.html says.
LOCKED_FROM, LOCKED_BYTES = 2**30, 512


class BackupError(click.ClickException):
    """There is no backup, or nothing was restored; the message says why."""


@dataclass(frozen=True)
class Restored:
    """What a restore has done: where it kept what was there, and whether the schema is old."""

    kept: Path | None
    wants_upgrade: bool


def back_up(file: Path, *, force: bool) -> None:
    """Copy the database as it is at this moment to `file`, which its owner alone may read.

    Errors: BackupError when the database cannot be copied or the copy is not sound; InTheWay when
    `file` is there already and there is no `force`. `file` is then as it was.
    """
    database = _database("pg_dump", "--format=custom", f"--file={file}", "{url}")
    if not database.exists():
        raise BackupError(f"There is no database in {database} yet.")
    _refuse_own(file, database)
    with _told(f"{file} cannot be made"), appearing(file, replace=force, sides=SIDES) as draft:
        _say(f"Copying {database} …")
        _copy_current(draft)
        with closing(_open(draft)) as copy:
            _check(copy, database)
            _revision(copy, database)


def restore(file: Path, *, force: bool) -> Restored:
    """Put the rows of a backup in the place of all that the database holds.

    Errors: BackupError when `file` is no sound backup of this service, when the database holds
    something and there is no `force`, or when it is in use and cannot be written. The database is
    then as it was.
    """
    options = ("--clean", "--if-exists", "--single-transaction", "--dbname={url}")
    database = _database("pg_restore", *options, str(file))
    if not file.exists():
        raise BackupError(f"There is no file {file}.")
    if not file.is_file():
        raise BackupError(f"{file} is no ordinary file.")
    _refuse_own(file, database)
    kept = database.with_name(f"{database.name}.before-restore-{now():%Y%m%dT%H%M%SZ}")
    with _told(f"{database} cannot be restored from {file}"), closing(_open(file)) as source:
        _check(source, file)
        revision = _known_revision(source, file)
        if kept.exists():
            raise BackupError(f"{kept} is there already; try again in a second.")
        _say("Restoring …")
        if database.exists() and _opens():
            _overwrite(source, database, kept, force)
        else:
            _replace(source, database, kept, force)
    return Restored(kept if kept.exists() else None, revision != head_revision())


def _say(what: str) -> None:
    """Tell who waits at a terminal what takes so long; a timer's log needs it not."""
    if sys.stderr.isatty():
        click.echo(what, err=True)


def _database(*command: str) -> Path:
    """Return the file of the database. Error: BackupError if it has none, with what does it."""
    if file := sqlite_file():
        return file
    if is_in_memory():
        raise BackupError("The database is in memory: it begins and ends with this command.")
    url = db.engine.url.difference_update_query(["password", "sslpassword"])
    where = (url.username, None, url.host, url.port, url.database, url.query)
    shown = sa.URL.create("postgresql", *where).render_as_string()
    line = shlex.join(part.replace("{url}", shown) for part in command)
    raise BackupError(f"Postgres has a command of its own for this. Run: {line}")


def _files(database: Path) -> list[Path]:
    """Return a database's file, and those that SQLite may keep beside it."""
    return [database.with_name(database.name + end) for end in ("", *SIDES)]


def _refuse_own(file: Path, database: Path) -> None:
    for own in _files(database):
        if file.exists() and own.exists() and file.samefile(own):
            raise BackupError(f"{file} is the database itself.")


@contextmanager
def _told(failure: str) -> Iterator[None]:
    """Tell in one line what the system or SQLite refuses."""
    try:
        yield
    except OSError as error:
        raise BackupError(f"{failure} ({error.strerror}).") from None
    except sqlite.Error as error:
        raise BackupError(f"{failure} ({error}).") from None
    except sa.exc.SQLAlchemyError as error:
        raise BackupError(f"{failure} ({error_reason(error)}).") from None


def _open(file: Path) -> Any:
    # Writable if it can be, since a copy of a database in use may have a -wal file to be read in.
    connection = sqlite.connect(f"{file.resolve().as_uri()}?mode=rw", uri=True)
    connection.isolation_level = None
    return connection


def _check(connection: Any, name: Path) -> None:
    _say(f"Checking {name} …")
    try:
        [(answer,)] = connection.execute("PRAGMA integrity_check(1)").fetchall()
        orphans = connection.execute("PRAGMA foreign_key_check").fetchall()
    except sqlite.OperationalError:
        raise
    except sqlite.DatabaseError as error:
        raise BackupError(f"{name} is damaged, or no SQLite database ({error}).") from None
    if answer != "ok":
        raise BackupError(f"{name} is damaged ({' '.join(answer.split())}).")
    if orphans:
        raise BackupError(
            f"{name} has {len(orphans)} broken foreign keys, as in {orphans[0][0]}. "
            "Delete those rows, which PRAGMA foreign_key_check lists, or restore an older backup."
        )


def _revision(connection: Any, name: Path) -> str:
    try:
        found = connection.execute("SELECT version_num FROM alembic_version").fetchall()
    except sqlite.OperationalError:
        found = []
    if not found:
        raise BackupError(f"{name} is no database of this service: it names no schema version.")
    return str(found[0][0])


def _known_revision(connection: Any, name: Path) -> str:
    revision = _revision(connection, name)
    if revision not in known_revisions():
        raise BackupError(
            f"{name} has schema version {revision}, which this code does not know. "
            "Restore it with the version of the service that wrote it, or a newer one."
        )
    return revision


def _copy_current(draft: Path) -> None:
    with db.engine.connect().execution_options(writes=False) as connection:
        _copy(connection.connection.driver_connection, draft)


def _copy(source: Any, draft: Path) -> None:
    """Copy a database in one step: with several, each write to the source begins it anew."""
    with closing(_open(draft)) as target:
        source.backup(target, pages=-1, progress=_refuse_busy)
        target.execute("PRAGMA journal_mode=DELETE")  # all is in one file


def _refuse_busy(status: int, _remaining: int, _total: int) -> None:
    if status in BUSY:  # after busy_timeout; the driver would try for ever
        raise BackupError("The database is locked by somebody who does not end; try again.")


def _opens() -> bool:
    """Tell whether the database can be opened; when it is damaged or no database, it cannot."""
    try:
        db.engine.connect().close()
    except sa.exc.OperationalError:
        raise
    except sa.exc.DatabaseError:
        return False
    return True


def _has_content() -> bool:
    try:
        with db.engine.connect().execution_options(writes=False) as connection:
            names = set(sa.inspect(connection).get_table_names()) - {VERSION_TABLE.name}
            selects = [sa.select(sa.exists().select_from(sa.table(name))) for name in names]
            return any(map(connection.scalar, selects))
    except sa.exc.DatabaseError:
        return True  # what cannot be read may be worth something


def _keep(kept: Path, force: bool) -> None:
    if not _has_content():
        return
    if not force:
        raise _would_overwrite()
    with appearing(kept, replace=False, sides=SIDES) as draft:
        _copy_current(draft)


def _would_overwrite() -> BackupError:
    return BackupError("The database holds something. To keep that beside it and go on: --force")


def _overwrite(source: Any, database: Path, kept: Path, force: bool) -> None:
    """Write `source` over the database, in a transaction that others see like any other.

    The copy's first step takes the write lock. What is there is kept under that lock, so that no
    write is lost that comes in between.
    """

    def step(status: int, remaining: int, total: int) -> None:
        _refuse_busy(status, remaining, total)
        if remaining == total - 1:
            _keep(kept, force)

    with closing(db.engine.raw_connection()) as connection:
        target: Any = connection.driver_connection
        try:
            with _paged_like(target, source, database) as pages:
                pages.backup(target, pages=1, progress=step)
        except sqlite.Error:  # such as a full disk; all is as it was
            kept.unlink(missing_ok=True)
            raise
        target.execute("PRAGMA wal_checkpoint(PASSIVE)")  # or else the next writer would do it


@contextmanager
def _paged_like(target: Any, source: Any, database: Path) -> Iterator[Any]:
    """Yield `source`, or a draft of it beside the database, in pages of the size of `target`'s.

    SQLite copies no pages of another size into a file in WAL mode.
    """
    [(size,)], [(theirs,)] = (each.execute("PRAGMA page_size") for each in (target, source))
    if size == theirs:
        yield source
        return
    with NamedTemporaryFile(dir=database.parent, prefix=f".{database.name}.") as draft:
        source.execute(f"PRAGMA page_size={size}")
        source.execute("VACUUM INTO ?", (draft.name,))
        with closing(_open(Path(draft.name))) as pages:
            yield pages


def _replace(source: Any, database: Path, kept: Path, force: bool) -> None:
    """Put a copy of `source` where there is no database, or one that cannot even be opened."""
    broken = database.exists()
    if broken and not force:
        raise _would_overwrite()
    like = (database if broken else database.parent).stat()
    appears = appearing(database, replace=True, sides=SIDES)
    with _alone(database) if broken else nullcontext(), appears as draft:
        _copy(source, draft)
        if broken:
            draft.chmod(stat.S_IMODE(like.st_mode))
        if os.geteuid() == 0:  # the service, which is somebody else, must be able to open it
            os.chown(draft, like.st_uid, like.st_gid)
        for own, aside in zip(_files(database), _files(kept), strict=True):
            if own.exists():
                own.rename(aside)


@contextmanager
def _alone(database: Path) -> Iterator[None]:
    """Keep others from opening the database. Error: BackupError if a process has it open.

    Such a process would go on with a file that is no longer there, and delete the files beside the
    new one when it ends.
    """
    with database.open("rb+") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, LOCKED_BYTES, LOCKED_FROM)
        except BlockingIOError:
            raise BackupError(
                "The database is damaged and in use. Stop the service, then restore."
            ) from None
        yield
