"""The checks of all features that no constraint can express."""

import sqlalchemy as sa

from posting.comments import integrity as comments
from posting.images import integrity as images

CHECKS = {**comments.CHECKS, **images.CHECKS}


def find_violation(connection: sa.Connection) -> str | None:
    """Return a message about the first row that breaks a rule or a foreign key, or None."""
    if connection.dialect.name == "sqlite":  # which lets a connection turn foreign keys off
        orphan = connection.exec_driver_sql("PRAGMA foreign_key_check").mappings().first()
        if orphan:
            return f"a row of {orphan['table']} refers to a missing row of {orphan['parent']}"
    return find_inconsistency(connection)


def find_inconsistency(connection: sa.Connection) -> str | None:
    """Return a message about the first row that breaks a rule, or None."""
    for message, query in CHECKS.items():
        row_id = connection.scalar(sa.text(f"{query} ORDER BY 1 LIMIT 1"))
        if row_id is not None:
            return message.format(row_id)
    return None
