"""Checks of files and folders: owner, permissions and free space."""

import os
import shutil
import stat
import tempfile
from pathlib import Path

from posting.db.engine import db, sqlite_file
from posting.ops.doctor.findings import Finding, Findings, failure, ok, warning

MIB = 2**20
MAX_WAL_BYTES = 256 * MIB
LOW_SPACE, MIN_SPACE = 1024 * MIB, 100 * MIB


def check_temporary_folder() -> Findings:
    folder = tempfile.gettempdir()  # large forms are buffered there
    if shutil.disk_usage(folder).free >= MIN_SPACE:
        yield ok(f"{folder} has space for uploads")
    else:
        yield warning(f"{folder} has little space for uploads", f"Free space in {folder}")


def check_database_file() -> Findings:
    file = sqlite_file()
    if not file:
        return
    folder = file.parent
    usage = shutil.disk_usage(folder)
    free, fix = f"{folder} has {usage.free / MIB:,.0f} MiB free", f"Free space in {folder}"
    if usage.free < MIN_SPACE:
        yield failure(free, fix)
    elif usage.free < LOW_SPACE or usage.free < usage.total / 20:
        yield warning(free, fix)
    else:
        yield ok(free)

    if not file.is_file():
        return  # reported when the database is checked
    denied = [path for path in (folder, file) if not os.access(path, os.R_OK | os.W_OK)]
    if denied:
        yield _access_denied(denied[0])
    elif db.engine.url.query.get("mode") == "ro":
        yield failure("The database is opened read-only", "Remove mode=ro from its URL.")
    elif (owner := _expected_owner(file)) is not None:
        yield warning(f"{file} belongs to another user", f"Run: chown {owner} {file}")
    mode = file.stat().st_mode
    if mode & stat.S_IROTH and folder.stat().st_mode & stat.S_IXOTH:
        yield warning(f"All users of this machine can read {file}", f"Run: chmod o= {file}*")
    else:
        yield ok(f"The database is in {file}, mode {stat.S_IMODE(mode):04o}")

    log = file.with_name(f"{file.name}-wal")
    if log.exists() and (size := log.stat().st_size) > MAX_WAL_BYTES:
        yield warning(
            f"{log} has {size / MIB:,.0f} MiB: a process does not end its read transaction",
            "Restart the service and any other process that has the database open.",
        )


def _access_denied(path: Path) -> Finding:
    if os.statvfs(path).f_flag & os.ST_RDONLY:
        return failure(
            f"{path} is on a read-only file system",
            f"Check the disk for errors. If it has none, run: mount -o remount,rw {path}",
        )
    user = os.geteuid()
    fix = (
        f"Run: chmod u+rw {path}"
        if path.stat().st_uid == user
        else f"Run this as the service's user. If that is user {user}, run: chown {user} {path}"
    )
    return failure(f"{path} cannot be read and written", fix)


def _expected_owner(file: Path) -> int | None:
    """Return the user who should own a file, or None if its owner is right.

    A file of root may be read-only on purpose. Root can access every file, so for root the owner of
    the folder is expected to own a file of root as well.
    """
    owner, user = file.stat().st_uid, os.geteuid()
    if user:
        return None if owner in {0, user} else user
    folder_owner = file.parent.stat().st_uid
    return None if owner or not folder_owner else folder_owner
