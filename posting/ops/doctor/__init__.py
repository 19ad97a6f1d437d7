"""Checks of an installation, for `flask doctor`."""

import sqlalchemy as sa

from posting.db import search
from posting.db.engine import db, error_reason, is_in_memory, lift_time_limits, sqlite_file
from posting.db.integrity import find_inconsistency
from posting.db.migrations import database_revisions, head_revision, known_revisions
from posting.ops.doctor import postgres, settings, sqlite, uploads
from posting.ops.doctor.findings import Finding, Findings, failure, ok, warning


def examine() -> Findings:
    """Run all checks and yield their findings. A check that cannot run is a failure as well."""
    for check in (settings.check, uploads.check, sqlite.check_file, _check_database):
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
            header = pages.read(20)  # see https://www.sqlite.org/fileformat.html
        if header.startswith(b"SQLite format 3\0") and header[18:] != b"\2\2":
            yield warning(
                f"{file} is not in WAL mode: the service has not used it yet, or its disk does "
                "not support it",
                "If it is the service's database, keep it on a local disk and start the service.",
            )
            return
    fix = sqlite.RESTORE if file else "Check POSTING_DATABASE_URL and that the server is running."
    try:
        db.engine.connect().close()
    except sa.exc.SQLAlchemyError as error:
        yield failure(f"The database cannot be used ({error_reason(error)})", fix)
        return
    for check in (*(sqlite.CHECKS if file else postgres.CHECKS), _check_schema, _check_content):
        try:
            with db.engine.connect().execution_options(writes=False) as connection:
                yield check(connection)
        except sa.exc.SQLAlchemyError as error:
            yield failure(f"A query failed ({error_reason(error)})", fix)
        except (TypeError, ValueError) as error:
            message = f"The database holds an invalid value ({error})"
            yield failure(message, "Correct that value, or restore a backup.")


def _check_schema(connection: sa.Connection) -> Finding:
    head, found = head_revision(), database_revisions(connection)
    if found == [head]:
        return ok(f"The schema is current, at {head}")
    if known_revisions().issuperset(found):
        revision = found[0] if found else "none"
        return failure(f"The schema is at {revision} and not at {head}", "Run: flask db upgrade")
    command = "flask restore --force FILE" if sqlite_file() else "pg_restore"
    return failure(
        f"The schema is at {found[0]}, which this version does not know: a newer one upgraded it",
        f"Install that version again, or restore a backup from before the upgrade: {command}",
    )


def _check_content(connection: sa.Connection) -> Finding:
    """Check what no constraint can express, and the search index."""
    if database_revisions(connection) != [head_revision()]:
        return ok("The content was not checked, because the schema is not current")
    lift_time_limits(connection)
    rebuild = "Run: flask search rebuild"
    if problem := find_inconsistency(connection):
        fix = f"{rebuild}. If that does not help, restore a backup."
        return failure(f"The database is inconsistent: {problem}", fix)
    if stale := search.count_stale_entries(connection):
        return failure(f"The search index is out of date for {stale:,} posts", rebuild)
    return ok("The content is consistent, and all posts are in the search index")
