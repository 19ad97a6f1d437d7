"""Checks of an installation, for `flask doctor`."""

import sqlalchemy as sa

from posting.db.engine import db, error_reason, is_in_memory, sqlite_file
from posting.ops.doctor import postgres, sqlite
from posting.ops.doctor.disk import check_database_file, check_temporary_folder
from posting.ops.doctor.findings import RESTORE, Findings, failure, warning
from posting.ops.doctor.nginx import check_body_size
from posting.ops.doctor.settings import (
    check_passwords,
    check_proxy_hops,
    check_public_url,
    check_rate_limits,
)

SQLITE_MAGIC = b"SQLite format 3\0"  # a file's first bytes: https://www.sqlite.org/fileformat.html
WAL_MODE = b"\2\2"


def examine() -> Findings:
    """Run all checks and yield their findings. A check that cannot run is a failure as well."""
    for check in (
        check_passwords,
        check_rate_limits,
        check_public_url,
        check_proxy_hops,
        check_temporary_folder,
        check_body_size,
        check_database_file,
        _check_database,
    ):
        try:
            yield from check()
        except OSError as error:
            fix = "Check the permissions of that file or folder."
            yield failure(f"A check could not run ({error})", fix)


def _check_database() -> Findings:
    """Connect to the database and run its checks, without creating or converting it.

    A connection would create a missing SQLite database and put an existing one into WAL mode, so
    the file is read first.
    """
    if is_in_memory():
        yield warning(
            "The database is in memory and is lost when its process ends",
            "Set POSTING_DATABASE_URL to a file or a Postgres server, or remove it.",
        )
        return
    if file := sqlite_file():
        if file.is_dir():
            yield failure(f"{file} is a folder", "Set POSTING_DATABASE_URL to a file in it.")
            return
        if not file.exists() or not file.stat().st_size:
            yield failure(f"There is no database in {file} yet", "Run: flask db upgrade")
            return
        with file.open("rb") as pages:
            header = pages.read(20)
        if header.startswith(SQLITE_MAGIC) and header[18:] != WAL_MODE:
            yield warning(
                f"{file} is not in WAL mode: the service has not used it yet, or its disk does "
                "not support it",
                "If it is the service's database, keep it on a local disk and start the service.",
            )
            return
    fix = RESTORE if file else "Check POSTING_DATABASE_URL and that the server is running."
    try:
        db.engine.connect().close()
    except sa.exc.SQLAlchemyError as error:
        yield failure(f"The database cannot be used ({error_reason(error)})", fix)
        return
    for check in sqlite.CHECKS if file else postgres.CHECKS:
        try:
            with db.engine.connect().execution_options(writes=False) as connection:
                yield check(connection)
        except sa.exc.SQLAlchemyError as error:
            yield failure(f"A query failed ({error_reason(error)})", fix)
        except (TypeError, ValueError) as error:
            message = f"The database holds an invalid value ({error})"
            yield failure(message, "Correct that value, or restore a backup.")
