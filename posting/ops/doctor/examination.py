"""Checks of an installation, for `flask doctor`."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from time import sleep

import sqlalchemy as sa

from posting.db.base import db
from posting.db.engine import is_in_memory, sqlite_file
from posting.db.migrations import is_missing
from posting.db.migrations.revisions import (
    database_revisions,
    first_revision,
    head_revision,
    how_to_convert,
    is_too_old,
    known_revisions,
)
from posting.db.transactions import snapshot
from posting.indexes import INDEXES
from posting.ops.backup import pg_restore_command
from posting.ops.doctor import installation, mail, postgres, sqlite, upkeep
from posting.ops.doctor.findings import (
    QUERY_ERRORS,
    Finding,
    Findings,
    describe_error,
    failure,
    ok,
    run,
    warning,
)
from posting.ops.doctor.schema import MOVE, find_differences
from posting.ops.doctor.upkeep import Check
from posting.ops.integrity import find_inconsistency
from posting.ops.thumbnails import count_incomplete
from posting.plurals import count
from posting.site import settings as site_settings

TRIES = 3
PAUSE = 0.1  # seconds between two tries


def examine() -> Findings:
    """Run all checks and yield their findings. A check that cannot run is a failure as well."""
    for check in CHECKS:
        yield from run(check)


def _read_settings() -> Findings:
    """Read what owners have chosen, if the database can be read. If not, another check says so."""
    file = sqlite_file()
    if not is_in_memory() and not (file and (file.is_dir() or is_missing(file))):
        engine = sqlite.reader(file) if file else db.engine
        unreadable = (sa.exc.SQLAlchemyError, ValueError, OSError)
        with suppress(*unreadable), snapshot(engine) as connection:
            site_settings.refresh(connection)
    yield from ()


def _check_database() -> Findings:
    """Run the checks of the database and of its content."""
    if is_in_memory():
        yield warning(
            "The database is in memory and is lost when its process ends",
            "Set POSTING_DATABASE_URL to a file or a Postgres server, or remove it.",
        )
        return
    engine = db.engine
    checks: Sequence[Check] = postgres.CHECKS
    fix = "Check POSTING_DATABASE_URL and that the server is running."
    if file := sqlite_file():
        if file.is_dir():
            yield failure(f"{file} is a folder", "Set POSTING_DATABASE_URL to a file in it.")
            return
        if is_missing(file):
            yield failure(f"There is no database in {file} yet", "Run: flask db upgrade")
            return
        if not sqlite.is_wal(file):
            yield warning(
                f"{file} is not in WAL mode: the service has not used it yet, or its disk does "
                "not support it",
                "If it is the service's database, keep it on a local disk and start the service.",
            )
        engine, checks, fix = sqlite.reader(file), sqlite.CHECKS, sqlite.fix_for(file)
    for check in (_check_connection, *checks, _check_schema, *map(_if_complete, OF_CONTENT)):
        for _ in range(TRIES):
            before = file and sqlite.state(file)
            finding = _run(check, engine, fix)
            if finding.level == "ok" or not file:
                break
            # The file can look damaged while a process opens it, closes it or writes to it.
            sleep(PAUSE)
            if sqlite.state(file) == before:
                break
        yield finding
        if check is _check_connection and finding.level == "failure":
            return


CHECKS = (
    installation.check_settings,
    sqlite.check_file,
    _read_settings,  # after the check of the files, which reading may change
    installation.check_uploads,
    installation.check_backups,
    installation.check_own_files,
    mail.check_mail,
    _check_database,
)


def _run(check: Check, engine: sa.Engine, fix: str) -> Finding:
    """Return what a check finds; a query that fails is a failure with this fix."""
    try:
        with snapshot(engine) as connection:
            return check(connection)
    except QUERY_ERRORS as error:
        failed = "The database cannot be used" if check is _check_connection else "A query failed"
        return describe_error(error, failed, fix)


def _check_connection(connection: sa.Connection) -> Finding:
    sa.inspect(connection).get_table_names()  # SQLite opens a file at the first query
    return ok("The database can be used")


def _check_schema(connection: sa.Connection) -> Finding:
    head, found = head_revision(), database_revisions(connection)
    if found == [head]:
        if missing := _missing_tables(connection):
            message = f"The schema is at {head}, but tables are missing: {', '.join(missing)}"
            return failure(message, _fix_for_missing(missing))
        if difference := find_differences(connection):
            return difference
        return ok(f"The schema is current, at {head}")
    [revision] = found or ["none"]
    if known_revisions().issuperset(found):
        return failure(f"The schema is at {revision} and not at {head}", "Run: flask db upgrade")
    if is_too_old(revision):
        message = f"The schema is at {revision}, from before schema {first_revision()}"
        return failure(message, how_to_convert("flask db upgrade"))
    return failure(
        f"The schema is at {revision}, which this version does not know: a newer one upgraded it",
        "Install that version again, or restore a backup from before the upgrade: "
        f"{_restore_command()}",
    )


def _if_complete(check: Check) -> Check:
    """Return a check that reads the content only if the schema is current and complete."""

    def run(connection: sa.Connection) -> Finding:
        return check(connection) if _is_complete(connection) else ok(OF_CONTENT[check])

    return run


def _is_complete(connection: sa.Connection) -> bool:
    """Return whether `_check_schema` finds nothing wrong."""
    is_current = database_revisions(connection) == [head_revision()]
    return is_current and not _missing_tables(connection)


def _missing_tables(connection: sa.Connection) -> list[str]:
    inspector = sa.inspect(connection)
    tables = (*db.metadata.tables, *_search_tables())
    return [table for table in tables if not inspector.has_table(table)]


def _fix_for_missing(tables: list[str]) -> str:
    if set(tables) <= set(_search_tables()):  # which archives do not contain, and an import fills
        return MOVE
    return f"Restore a backup: {_restore_command()}"


def _search_tables() -> list[str]:
    return [index.table for index in INDEXES]


def _restore_command() -> str:
    if sqlite_file():
        return "flask restore --force FILE"
    return pg_restore_command(Path("FILE"))


def _check_content(connection: sa.Connection) -> Finding:
    """Check what no constraint can express, the search index and the thumbnails."""
    rebuild = "Run: flask search rebuild"
    if problem := find_inconsistency(connection):
        fix = f"{rebuild}. If that does not help, restore a backup."
        return failure(f"The database is inconsistent: {problem}", fix)
    for index in INDEXES:
        if stale := index.count_stale(connection):
            number = count(stale, index.name)
            return failure(f"The search index is out of date for {number}", rebuild)
    if incomplete := count_incomplete(connection):
        fix = "Run: flask images thumbnails"
        return warning(f"{count(incomplete, 'image')} without a thumbnail or sizes", fix)
    return ok("The content is consistent, and all of it is in the search index")


# The checks of the content, and what is said if it cannot be checked.
OF_CONTENT: dict[Check, str] = {
    _check_content: "The content was not checked, because the schema is not current and complete",
    upkeep.check_entry: "The moderators were not checked either",
    upkeep.check_reports: "Reports of members were not checked either",
    upkeep.check_outbox: "What is to be sent was not checked either",
}
