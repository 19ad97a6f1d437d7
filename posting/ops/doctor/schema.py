"""The check of the schema, on both engines."""

import sqlalchemy as sa

from posting.db.migrations import database_revisions, head_revision, known_revisions
from posting.ops.doctor.findings import Finding, failure, ok


def check_migrations(connection: sa.Connection) -> Finding:
    found = database_revisions(connection)
    if found == [head_revision()]:
        return ok(f"The schema is current, at {head_revision()}")
    if set(found) <= known_revisions():
        was = found[0] if found else "none"
        return failure(
            f"The schema is at {was} and not at {head_revision()}", "Run: flask db upgrade"
        )
    on_sqlite = connection.dialect.name == "sqlite"
    command = "flask restore --force FILE" if on_sqlite else "pg_restore"
    return failure(
        f"The schema is at {found[0]}, which this version does not know: newer code made it",
        f"Install that version again, or put back a backup from before: {command}",
    )
