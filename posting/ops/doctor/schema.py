"""The check of the schema version, for both databases."""

import sqlalchemy as sa

from posting.db.migrations import database_revisions, head_revision, known_revisions
from posting.ops.doctor.findings import Finding, failure, ok


def check_schema(connection: sa.Connection) -> Finding:
    head, found = head_revision(), database_revisions(connection)
    if found == [head]:
        return ok(f"The schema is current, at {head}")
    if known_revisions().issuperset(found):
        revision = found[0] if found else "none"
        return failure(f"The schema is at {revision} and not at {head}", "Run: flask db upgrade")
    command = "flask restore --force FILE"
    if connection.dialect.name == "postgresql":
        command = "pg_restore"
    return failure(
        f"The schema is at {found[0]}, which this version does not know: a newer one upgraded it",
        f"Install that version again, or restore a backup from before the upgrade: {command}",
    )
