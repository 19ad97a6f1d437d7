"""Checks of an SQLite database: of its file, and with queries."""

import os
import shutil
import stat
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from pysqlite3 import dbapi2 as dbapi

from posting.db.base import db
from posting.db.engine import sqlite_file
from posting.db.sqlite import SQLITE_PRAGMAS
from posting.db.types import now
from posting.ops.doctor.findings import MAX_SKEW, SET_CLOCK, Finding, Findings, failure, ok, warning
from posting.plurals import count
from posting.posts.models import Post

MIB = 2**20
MAX_WAL_BYTES = 256 * MIB
LOW_SPACE, MIN_SPACE = 1024 * MIB, 100 * MIB
MIN_VERSION = (3, 51, 3)  # older versions can corrupt a database in WAL mode
MIN_YEAR = 2026  # of this code; a clock before it is wrong
RESTORE = "Check which process has it open. If it is damaged, run: flask restore --force FILE"
PRAGMA_VALUES = {"WAL": "wal", "FULL": "2", "ON": "1", "OFF": "0"}  # as SQLite returns them


def check_file() -> Findings:
    """Check the owner, permissions and free space, without connecting to the database."""
    file = sqlite_file()
    if not file:
        return
    folder = file.parent
    if not folder.is_dir():
        return  # reported when the database is checked
    usage = shutil.disk_usage(folder)
    free, fix = f"{folder} has {usage.free / MIB:,.0f} MiB free", f"Free space in {folder}"
    if usage.free < MIN_SPACE:
        yield failure(free, fix)
    elif usage.free < LOW_SPACE or usage.free < usage.total / 20:
        yield warning(free, fix)
    else:
        yield ok(free)

    if not file.is_file():
        return
    denied = [path for path in (folder, file) if not os.access(path, os.R_OK | os.W_OK)]
    if denied:
        yield _access_denied(denied[0])
    elif db.engine.url.query.get("mode") == "ro":
        yield failure("The database is opened read-only", "Remove mode=ro from its URL.")
    elif (owner := _expected_owner(file)) is not None:
        yield warning(f"{file} belongs to another user", f"Run: chown {owner} {file}")
    yield _check_mode(file)

    log, *_ = _beside(file)
    if log.exists() and (size := log.stat().st_size) > MAX_WAL_BYTES:
        yield warning(
            f"{log} has {size / MIB:,.0f} MiB: a process does not end its read transaction",
            "Restart the service and any other process that has the database open.",
        )


def _check_mode(file: Path) -> Finding:
    """Check that only the owner of a database can read it, and the files beside it."""
    folder = file.parent.stat().st_mode
    modes = [path.stat().st_mode for path in (file, *_beside(file)) if path.exists()]
    if folder & stat.S_IXOTH and any(mode & stat.S_IROTH for mode in modes):
        return warning(f"All users of this machine can read {file}", f"Run: chmod go= {file}*")
    if folder & stat.S_IXGRP and any(mode & stat.S_IRGRP for mode in modes):
        return warning(f"The group of {file} can read it", f"Run: chmod g= {file}*")
    return ok(f"The database is in {file}, mode {stat.S_IMODE(modes[0]):04o}")


def _access_denied(path: Path) -> Finding:
    if os.statvfs(path).f_flag & os.ST_RDONLY:
        return failure(
            f"{path} is on a read-only file system",
            f"Check the disk for errors. If it has none, run: mount -o remount,rw {path}",
        )
    user = os.geteuid()
    fix = f"Run this as the service's user. If that is user {user}, run: chown {user} {path}"
    if path.stat().st_uid == user:
        fix = f"Run: chmod u+rw {path}"
    return failure(f"{path} cannot be read and written", fix)


def _expected_owner(file: Path) -> int | None:
    """Return the user who should own a file, or None if its owner is right.

    A file of root may be read-only on purpose. Root can access every file, so for root the owner of
    the folder is expected to own a file of root as well.
    """
    owner, user = file.stat().st_uid, os.geteuid()
    if user:
        return None if owner in {0, user} else user
    return None if owner else file.parent.stat().st_uid or None


def is_wal(file: Path) -> bool:
    """Return whether a database is in WAL mode.

    For a file that is not a database, return True: the other checks report it.
    """
    if _beside(file)[0].exists():
        return True  # to open the file would end the locks that SQLite has on it in this process
    with file.open("rb") as pages:
        header = pages.read(20)  # see https://www.sqlite.org/fileformat.html
    return not header.startswith(b"SQLite format 3\0") or header[19:] == b"\2"


def reader(file: Path) -> sa.Engine:
    """Return an engine that reads a database without changing it or creating a file beside it.

    The service's own connections would put the database into WAL mode. Even a read-only connection
    creates files beside a database in WAL mode, unless it is `immutable`. Such a connection ignores
    locks and the log, so it is for a database without a log, which no process has open.
    """

    def connect() -> Any:
        mode = "mode=ro"
        if is_wal(file):
            log, index, _ = _beside(file)
            if not log.exists():
                mode = "mode=ro&immutable=1"
            elif not index.exists():
                mode = "mode=ro&readonly_shm=1"
        connection = dbapi.connect(f"{file.as_uri()}?{mode}", uri=True)
        for pragma in SQLITE_PRAGMAS:
            if not pragma.startswith("journal_mode"):
                connection.execute(f"PRAGMA {pragma}")
        return connection

    return sa.create_engine("sqlite://", creator=connect, module=dbapi, poolclass=sa.NullPool)


def state(file: Path) -> tuple[int, int, list[bool]]:
    """Return a state that changes when a process opens, closes or writes a database file."""
    status = file.stat()
    return status.st_mtime_ns, status.st_size, [each.exists() for each in _beside(file)]


def fix_for(file: Path) -> str:
    """Return what to do if a database cannot be read."""
    log, index, journal = _beside(file)
    left = journal if journal.exists() else log
    if left.exists() and not index.exists():
        return (
            "Check which process has it open. If none has, a killed process left what it wrote in "
            f"{left}. Move that into the database with: flask db upgrade"
        )
    return RESTORE


def _beside(file: Path) -> list[Path]:
    return [file.with_name(file.name + suffix) for suffix in ("-wal", "-shm", "-journal")]


def check_version(connection: sa.Connection) -> Finding:
    version = str(connection.scalar(sa.func.sqlite_version()))
    if tuple(map(int, version.split("."))) >= MIN_VERSION:
        return ok(f"SQLite {version}")
    fix = "Run: pip install --upgrade pysqlite3"
    return failure(f"SQLite {version} can corrupt the database", fix)


def check_pragmas(connection: sa.Connection) -> Finding:
    wrong = []
    for pragma in SQLITE_PRAGMAS:
        name, _, value = pragma.partition("=")
        if name == "journal_mode":  # which is that of the file
            continue
        found = str(connection.exec_driver_sql(f"PRAGMA {name}").scalar())
        if found != PRAGMA_VALUES.get(value, value):
            wrong.append(f"{name} is {found} and not {value}")
    if not wrong:
        return ok("SQLite writes commits to disk and enforces foreign keys")
    return failure(
        f"SQLite ignores settings: {', '.join(wrong)}",
        "Set POSTING_DATABASE_URL to a file on a local disk.",
    )


def check_integrity(connection: sa.Connection) -> Finding:
    answer = str(connection.exec_driver_sql("PRAGMA integrity_check(1)").scalar())
    orphans = connection.exec_driver_sql("PRAGMA foreign_key_check").mappings().all()
    if answer != "ok":
        return failure(f"The database is damaged: {' '.join(answer.split())}", RESTORE)
    if orphans:
        table = orphans[0]["table"]
        broken = count(len(orphans), "broken foreign key")
        return failure(f"The database has {broken}, for example in {table}", RESTORE)
    return ok("integrity_check and foreign_key_check found no errors")


def check_clock(connection: sa.Connection) -> Finding:
    current = now()
    if current.year < MIN_YEAR:
        return warning(f"The clock of this machine is in {current:%Y}", SET_CLOCK)
    if sa.inspect(connection).has_table(Post.__tablename__):
        latest = connection.scalar(sa.select(sa.func.max(Post.created_at)))
        if latest and latest > current + MAX_SKEW:
            message = f"The newest post is from {latest:%Y-%m-%d %H:%M}, which is in the future"
            return warning(message, SET_CLOCK)
    return ok(f"The clock of this machine is at {current:%Y-%m-%d %H:%M:%S} UTC")


QUICK = (check_version, check_pragmas, check_clock)
CHECKS = (*QUICK, check_integrity)
