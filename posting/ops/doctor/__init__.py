"""What may be wrong with an installation, and what to do about it: `flask doctor` prints it."""

from pathlib import Path

import sqlalchemy as sa

from posting.db.engine import db, error_reason, is_in_memory, sqlite_file
from posting.ops.doctor import postgres, sqlite
from posting.ops.doctor.disk import check_database_file, check_temporary_folder
from posting.ops.doctor.findings import RESTORE, Finding, Findings, failure, warning
from posting.ops.doctor.nginx import check_body_size
from posting.ops.doctor.settings import (
    check_limits,
    check_passwords,
    check_proxy_hops,
    check_public_url,
)

CHECKS = (
    check_passwords,
    check_limits,
    check_public_url,
    check_proxy_hops,
    check_temporary_folder,
    check_body_size,
    check_database_file,
)
SQLITE = b"SQLite format 3\0"  # the first bytes of a file, as sqlite.org/fileformat.html says
WAL_MODE = b"\2\2"
MEND = "Mend that value, or put back a backup."


def examine() -> Findings:
    """Yield what all checks find. What cannot be looked at is a failure, and no error."""
    for check in (*CHECKS, _examine_database):
        try:
            yield from check()
        except OSError as error:
            yield failure(f"A check could not be made ({error})", "Check that folder's rights.")


def _examine_database() -> Findings:
    """Yield what the database says of itself, if it is there: looking makes none.

    To connect is to put a database into WAL mode. So nobody connects to what is not in it.
    """
    on_sqlite = db.engine.dialect.name == "sqlite"
    if is_in_memory():
        cure = "Set POSTING_DATABASE_URL to a file or a Postgres server, or remove it."
        yield warning("The database is in memory, and ends with its process", cure)
        return
    if (file := sqlite_file()) and (obstacle := _obstacle(file)):
        yield obstacle
        return
    cure = RESTORE if on_sqlite else "Check POSTING_DATABASE_URL and that the server is up."
    try:
        db.engine.connect().close()
    except sa.exc.SQLAlchemyError as error:
        yield failure(f"The database cannot be used ({error_reason(error)})", cure)
        return
    for check in sqlite.CHECKS if on_sqlite else postgres.CHECKS:
        try:
            with db.engine.connect().execution_options(writes=False) as connection:
                yield check(connection)
        except sa.exc.SQLAlchemyError as error:
            yield failure(f"The database does not answer ({error_reason(error)})", cure)
        except (TypeError, ValueError) as error:
            yield failure(f"The database holds what cannot be read ({error})", MEND)


def _obstacle(file: Path) -> Finding | None:
    """Return why a file is not to be opened as a database."""
    if file.is_dir():
        return failure(f"{file} is a folder", "Name a file in it with POSTING_DATABASE_URL.")
    if not file.exists() or not file.stat().st_size:
        return failure(f"There is no database in {file} yet", "Run: flask db upgrade")
    with file.open("rb") as pages:
        header = pages.read(20)
    if header[:16] != SQLITE or header[18:] == WAL_MODE:
        return None
    return warning(
        f"The service has not used {file} yet, or its disk does not let it",
        "Start the service, if this is its database. It has to be on a disk of this machine.",
    )
