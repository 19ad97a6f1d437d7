"""Checks of an installation, for `flask doctor`."""

from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from time import sleep

import sqlalchemy as sa
from flask import current_app

from posting.accounts.models import MODERATOR, User
from posting.db.base import db
from posting.db.engine import is_in_memory, sqlite_file
from posting.db.errors import error_reason
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
from posting.db.types import now
from posting.indexes import INDEXES
from posting.moderation.models import Report
from posting.ops.backup import pg_restore_command
from posting.ops.doctor import installation, mail, postgres, sqlite
from posting.ops.doctor.findings import Finding, Findings, failure, ok, warning
from posting.ops.doctor.schema import MOVE, find_differences
from posting.ops.integrity import find_inconsistency
from posting.ops.thumbnails import count_incomplete
from posting.outbox.models import Outgoing
from posting.plurals import count

Check = Callable[[sa.Connection], Finding]
TRIES = 3
PAUSE = 0.1  # seconds between two tries
MAX_REPORT_AGE = timedelta(days=7)
MAX_DELAY = timedelta(hours=1)  # of what is to be sent
MAX_PAUSE = timedelta(days=1)  # between two attempts to send it
PROMOTE = "Run: flask users promote NAME, or: flask users create NAME --moderator"


def examine() -> Findings:
    """Run all checks and yield their findings. A check that cannot run is a failure as well."""
    for check in CHECKS:
        try:
            yield from check()
        except OSError as error:
            fix = "Check the permissions of that file or folder."
            yield failure(f"A check could not run ({error})", fix)


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
    content = (_check_content, _check_entry, _check_reports, _check_outbox)
    for check in (_check_connection, *checks, _check_schema, *content):
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
    installation.check_uploads,
    sqlite.check_file,
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
    # SQLite quotes damaged text in its messages, which may not be UTF-8.
    except (sa.exc.SQLAlchemyError, UnicodeDecodeError) as error:
        failed = "The database cannot be used" if check is _check_connection else "A query failed"
        return failure(f"{failed} ({error_reason(error)})", fix)
    except (TypeError, ValueError) as error:
        message = f"The database holds an invalid value ({error})"
        return failure(message, "Correct that value, or restore a backup.")


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
    if not _is_complete(connection):
        return ok("The content was not checked, because the schema is not current and complete")
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


def _check_entry(connection: sa.Connection) -> Finding:
    """Check that there is a moderator, if there are accounts or only moderators let people in."""
    if not _is_complete(connection):
        return ok("The moderators were not checked either")
    is_moderator = sa.select(User.id).where(User.role == MODERATOR, User.is_active)
    if connection.scalar(sa.select(is_moderator.exists())):
        return ok("There is a moderator")
    signup, inviters = current_app.config["SIGNUP"], current_app.config["INVITATIONS"]
    if signup == "approval":
        return warning(
            "New accounts need the approval of a moderator, but there is none who is active",
            PROMOTE,
        )
    if signup == "invitation" and inviters == "moderators":
        return warning(
            "New accounts need an invitation of a moderator, but there is none who is active",
            f"{PROMOTE}. An operator can invite people, too: flask invitations create",
        )
    if connection.scalar(sa.select(sa.select(User.id).exists())):
        return warning("No active account is that of a moderator, who looks at reports", PROMOTE)
    return ok("There is no account yet")


def _check_reports(connection: sa.Connection) -> Finding:
    """Check that no report has been open for a week."""
    if not _is_complete(connection):
        return ok("Reports of members were not checked either")
    is_open = Report.closed_at.is_(None)
    is_late = sa.and_(is_open, Report.created_at < now() - MAX_REPORT_AGE)
    late = connection.scalar(sa.select(sa.func.count()).where(is_late)) or 0
    if not late:
        return ok("No report has been open for a week")
    return warning(
        f"{count(late, 'report')} of members: open for more than a week",
        "Ask your moderators to look at /moderation, or appoint another moderator: "
        "flask users promote NAME",
    )


def _check_outbox(connection: sa.Connection) -> Finding:
    """Check that what is to be sent was sent."""
    if not _is_complete(connection):
        return ok("What is to be sent was not checked either")
    number = sa.select(sa.func.count())
    fix = "See why: flask outbox list. To try again: flask outbox retry"
    if failed := connection.scalar(number.where(Outgoing.failed_at.is_not(None))):
        return warning(f"{count(failed, 'item')} to be sent: given up", fix)
    is_late = Outgoing.queued_at < now() - MAX_DELAY
    is_far_off = Outgoing.due_at > now() + MAX_PAUSE  # which a wrong clock has set
    if late := connection.scalar(number.where(sa.or_(is_late, is_far_off))):
        return warning(f"{count(late, 'item')} to be sent: waiting for more than an hour", fix)
    return ok("All that was to be sent in time was sent")
