"""The check of the schema, on both engines."""

import sqlalchemy as sa

from posting.db.migrations import known, newest, revisions
from posting.ops.doctor.findings import Finding, failure, ok


def check_migrations(connection: sa.Connection) -> Finding:
    found = revisions(connection)
    if found == [newest()]:
        return ok(f"The schema is current, at {newest()}")
    if set(found) <= known():
        was = found[0] if found else "none"
        return failure(f"The schema is at {was} and not at {newest()}", "Run: flask db upgrade")
    on_sqlite = connection.dialect.name == "sqlite"
    command = "flask restore --force FILE" if on_sqlite else "pg_restore"
    return failure(
        f"The schema is at {found[0]}, which this version does not know: newer code made it",
        f"Install that version again, or put back a backup from before: {command}",
    )
