"""Checks of files and folders: whose they are, who may use them, and what room is left."""

import os
import shutil
import stat
import tempfile
from pathlib import Path

from posting.db.engine import db, sqlite_file
from posting.ops.doctor.findings import Finding, Findings, failure, ok, warning

MIB = 2**20
LARGE_WAL = 256 * MIB
LITTLE_SPACE, NO_SPACE = 1024 * MIB, 100 * MIB


def check_database_file() -> Findings:
    file = sqlite_file()
    if not file:
        return
    folder = file.parent
    yield _space(folder)
    if not file.is_file():
        return  # which the examination of the database tells
    status = file.stat()
    if shut := next((p for p in (folder, file) if not os.access(p, os.R_OK | os.W_OK)), None):
        yield _unwritable(shut)
    elif db.engine.url.query.get("mode") == "ro":
        yield failure("The database is opened for reading only", "Remove mode=ro from its URL.")
    elif owner := _owner_wanted(file):
        yield _disowned(file, owner)
    if status.st_mode & stat.S_IROTH and folder.stat().st_mode & stat.S_IXOTH:
        yield warning(f"Everybody on this machine may read {file}", f"Run: chmod o= {file}*")
    else:
        yield ok(f"The database is in {file}, mode {_mode(status)}")
    log = file.with_name(f"{file.name}-wal")
    if log.exists() and (size := log.stat().st_size) > LARGE_WAL:
        yield warning(
            f"{log} has {size / MIB:,.0f} MiB: somebody reads and does not end",
            "Restart the service, and what else has the database open.",
        )


def _unwritable(path: Path) -> Finding:
    """Return why a file or folder that is there cannot be read and written."""
    if os.statvfs(path).f_flag & os.ST_RDONLY:
        return failure(
            f"{path} is on a file system for reading only",
            f"See if its disk fails; if not: mount -o remount,rw {path}",
        )
    me = os.geteuid()
    own = f"Run: chmod u+rw {path}"
    other = f"Run this as the service's user. If user {me} is that: chown {me} {path}"
    return failure(f"{path} cannot be written", own if path.stat().st_uid == me else other)


def _owner_wanted(file: Path) -> int | None:
    """Return who should own a file, if that is another user than does.

    Root's files may be meant to be only read. But when root asks, who cannot see what others may
    do, they are taken for made by mistake where root does not own their folder.
    """
    owner, me = file.stat().st_uid, os.geteuid()
    if me:
        return None if owner in {0, me} else me
    wanted = file.parent.stat().st_uid
    return None if owner or not wanted else wanted


def _disowned(path: object, owner: int) -> Finding:
    return warning(f"{path} belongs to another user", f"Run: chown {owner} {path}")


def _mode(status: os.stat_result) -> str:
    return f"{stat.S_IMODE(status.st_mode):04o}"


def _space(folder: Path) -> Finding:
    usage = shutil.disk_usage(folder)
    what, cure = f"{folder} has {usage.free / MIB:,.0f} MiB free", f"Make room in {folder}"
    if usage.free < NO_SPACE:
        return failure(what, cure)
    if usage.free < LITTLE_SPACE or usage.free < usage.total / 20:
        return warning(what, cure)
    return ok(what)


def check_temporary_folder() -> Findings:
    folder = tempfile.gettempdir()  # where larger forms wait while they arrive
    if shutil.disk_usage(folder).free >= NO_SPACE:
        yield ok(f"{folder} has room for uploads")
    else:
        yield warning(f"{folder} has little room for uploads", f"Make room in {folder}")
