"""Revisions of the schema: the one that the database has, and those that this code knows."""

from functools import cache
from pathlib import Path

import sqlalchemy as sa

from posting.config import StartError
from posting.db.base import db

FOLDER = Path(__file__).parent
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
    """Return whether the schema is current. Raise SQLAlchemyError if the database fails."""
    with db.engine.connect() as connection:  # with the time limit of a request that reads
        return database_revisions(connection) == [head_revision()]


def require_known(revisions: list[str]) -> None:
    """Raise StartError if a newer version of Posting has upgraded the database."""
    if not known_revisions().issuperset(revisions):
        raise StartError(
            f"The database has schema {revisions[0]}, which this version does not know: "
            "a newer version upgraded it. Install that version."
        )
