"""Revisions of the schema: the one that the database has, and those that this code knows."""

from functools import cache
from pathlib import Path

import sqlalchemy as sa

from posting.config import StartError
from posting.db.base import db
from posting.db.sqlite import require_own_files

FOLDER = Path(__file__).parent
LAST_COMMIT = "aad39ff"  # with the migrations from before schema 0025
VERSION_TABLE = sa.table("alembic_version", sa.column("version_num", sa.String(32)))


def head_revision() -> str:
    """Return the revision that this code needs."""
    return max(known_revisions())


@cache
def known_revisions() -> frozenset[str]:
    """Return all revisions that this code can upgrade, which are in the names of their files."""
    return frozenset(file.stem.partition("_")[0] for file in FOLDER.glob("versions/[!_]*.py"))


def database_revisions(connection: sa.Connection) -> list[str]:
    """Return a list with the database's revision, or an empty list before the first upgrade."""
    if not sa.inspect(connection).has_table(VERSION_TABLE.name):
        return []
    return list(connection.scalars(sa.select(VERSION_TABLE.c.version_num)))


def is_current() -> bool:
    """Return whether the schema is current.

    Raise SQLAlchemyError if the database fails, or if its file was deleted or replaced.
    """
    with db.engine.connect() as connection:  # with the time limit of a query
        require_own_files(connection)
        return database_revisions(connection) == [head_revision()]


def require_known(revisions: list[str]) -> None:
    """Raise StartError if this code cannot upgrade the schema of the database."""
    for revision in revisions:
        if is_too_old(revision):
            raise StartError(
                f"The database has schema {revision}, from before schema {first_revision()}. "
                f"{how_to_convert('flask db upgrade')}"
            )
        if revision not in known_revisions():
            raise StartError(
                f"The database has schema {revision}, which this version does not know: "
                "a newer version upgraded it. Install that version."
            )


def first_revision() -> str:
    """Return the first revision that this code can upgrade."""
    return min(known_revisions())


def is_too_old(revision: str) -> bool:
    """Return whether only a former version can upgrade a revision."""
    return revision < first_revision()


def how_to_convert(command: str) -> str:
    """Return how a command converts a database or an archive of a revision that is too old."""
    return f"Check out commit {LAST_COMMIT}, and run there: {command}. Then use this version again."
