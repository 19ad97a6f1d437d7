"""Errors of a database that cannot be used, with what to do about each."""

import os
from pathlib import Path

import sqlalchemy as sa

from posting.config import StartError
from posting.db.base import db
from posting.db.engine import sqlite_file, url_without_password
from posting.db.errors import DISK_FULL, error_code, error_reason, is_refusal

BUSY = ("40", "55P03", "57014")  # a deadlock, a lock that others hold, and a timeout of Postgres
# Opening a database takes a file of 32 KiB. If the disk is full, the error is "disk I/O error".
MIN_FREE_BYTES = 64 * 2**10


class DatabaseUnavailableError(StartError):
    """The database does not respond; starting again later may succeed."""

    exit_status = 1  # systemd restarts the service after it


def start_error(error: sa.exc.SQLAlchemyError) -> StartError:
    """Return the StartError for an error of the database."""
    reason = error_reason(error)
    if file := sqlite_file():
        return _sqlite_start_error(file, reason, error_code(error))
    problem = f"The database {url_without_password()} cannot be used ({reason})."
    # A standby may refuse all users while the server that accepts writes is down.
    if is_refusal(error) and not _has_several_hosts():
        return StartError(
            f"{problem} Check the user, the password and the name of the database in "
            "POSTING_DATABASE_URL."
        )
    code = error_code(error)
    if code.startswith(DISK_FULL):
        return StartError(f"The disk of the database is full ({reason}). Free some space.")
    if code.startswith(BUSY):
        return DatabaseUnavailableError(f"The database is busy ({reason}). Try again later.")
    kind = DatabaseUnavailableError if isinstance(error, sa.exc.OperationalError) else StartError
    return kind(f"{problem} Check POSTING_DATABASE_URL and that the database is running.")


def _has_several_hosts() -> bool:
    _, arguments = db.engine.dialect.create_connect_args(db.engine.url)
    return "," in arguments.get("host", "")


def _sqlite_start_error(file: Path, reason: str, code: str) -> StartError:
    folder = file.parent
    try:
        disk = os.statvfs(f"{folder}/")
    except (FileNotFoundError, NotADirectoryError):
        return StartError(
            f"There is no folder {folder} for the database. "
            "Create it, or set POSTING_DATABASE_URL to another."
        )
    except PermissionError:  # of a folder above it
        disk = None
    if code.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return DatabaseUnavailableError(
            f"{file} is in use by another program ({reason}). Stop that program."
        )
    if code.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
        message = (
            f"{file} is damaged, or is not an SQLite database ({reason}). "
            "Restore a backup: flask restore --force FILE"
        )
    elif disk and file.is_dir():
        message = f"{file} is a folder. Set POSTING_DATABASE_URL to a file in it."
    elif code.startswith(DISK_FULL) or (disk and disk.f_bavail * disk.f_frsize < MIN_FREE_BYTES):
        message = f"The disk of {folder} is full ({reason}). Free some space."
    elif disk and disk.f_flag & os.ST_RDONLY:
        message = f"{folder} is on a read-only file system ({reason}). Check the disk for errors."
    else:
        message = (
            f"SQLite cannot read and write {file} ({reason}). "
            f"Check that user {os.geteuid()} may write this file and its folder."
        )
    return StartError(message)
