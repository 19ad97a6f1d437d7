"""The search index on SQLite.

A rowid of FTS5 is the position of a row, because FTS5 returns matches in the order of rowids: its
milliseconds, and the first 15 bits of its id.
"""

from collections.abc import Collection, Sequence
from contextlib import suppress

import sqlalchemy as sa

from posting.db.transactions import fetch_all, fetch_value
from posting.db.types import Position, from_milliseconds, to_milliseconds
from posting.search.words import Entry, Term

ID_CHARACTERS = "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz"  # in their order
MAX_ROWID = 2**63 - 1
ID_BITS = 15
ROWIDS_PER_POSITION = 8  # for rows of one millisecond whose ids begin alike

CLEAR = "INSERT INTO {name}_search ({name}_search) VALUES ('delete-all')"
# Otherwise later writes would merge what many inserts left, and hold the write lock for seconds.
OPTIMIZE = "INSERT INTO {name}_search ({name}_search) VALUES ('optimize')"
INSERT = """
    INSERT INTO {name}_search (rowid, {texts}, author, {name}_id, version)
    VALUES (:rowid, {values}, :author, :id, :version)"""
DELETE = """
    DELETE FROM {name}_search WHERE rowid >= :first AND rowid < :end AND {name}_id = :id"""
FIND = """
    SELECT rowid, {name}_id AS id FROM {name}_search
    WHERE {name}_search MATCH :match AND rowid < :before ORDER BY rowid DESC LIMIT :limit"""

# Without the IDs of rows, which FTS5 would read from another table.
COUNT = """
    SELECT count(*) FROM (
        SELECT rowid FROM {name}_search WHERE {name}_search MATCH :match LIMIT :limit)"""


class SqliteIndex:
    """The index in a table of FTS5, which has a column for each text."""

    def __init__(self, name: str, texts: Sequence[str]) -> None:
        columns, values = ", ".join(texts), ", ".join(f":{text}" for text in texts)

        def statement(template: str) -> sa.TextClause:
            return sa.text(template.format(name=name, texts=columns, values=values))

        self._texts = texts
        self._clear = statement(CLEAR)
        self._optimize = statement(OPTIMIZE)
        self._insert = statement(INSERT)
        self._delete = statement(DELETE)
        self._find = statement(FIND)
        self._count = statement(COUNT)

    def add(self, connection: sa.Connection, entries: Sequence[Entry]) -> None:
        # In the order of rowids: FTS5 writes a segment before each rowid below the last one.
        for row, words in sorted(entries, key=_position):
            values = {
                "id": row["id"],
                "version": row["version"],
                "author": row["author_id"] or "",
                **dict(zip(self._texts, map(" ".join, words.words), strict=True)),
            }
            first = first_rowid((row["created_at"], row["id"]))
            for rowid in range(first, first + ROWIDS_PER_POSITION):
                with suppress(sa.exc.IntegrityError):  # another row has it
                    connection.execute(self._insert, values | {"rowid": rowid})
                    break
            else:
                raise RuntimeError(f"There is no rowid left for {row['id']}.")

    def remove(self, connection: sa.Connection, positions: Sequence[Position]) -> None:
        rows = [
            {"first": first, "end": first + ROWIDS_PER_POSITION, "id": id}
            for first, (_, id) in zip(map(first_rowid, positions), positions, strict=True)
        ]
        if rows:
            connection.execute(self._delete, rows)

    def find(
        self, terms: Sequence[Term], author: str | None, after: Position | None, limit: int
    ) -> list[Position]:
        match = self._match(terms)
        if author:
            match += f' AND author : "{author}"'
        before = first_rowid(after) if after else MAX_ROWID
        rows = fetch_all(self._find, match=match, before=before, limit=limit)
        return [(from_milliseconds(row.rowid >> ID_BITS), row.id) for row in rows]

    def count(self, terms: Sequence[Term], limit: int) -> int:
        """Return how many rows have all terms, or `limit` if there are more."""
        count: int = fetch_value(self._count, match=self._match(terms), limit=limit)
        return count

    def _match(self, terms: Sequence[Term]) -> str:
        phrases = (f'"{" ".join(term.words)}"{"*" * term.is_prefix}' for term in terms)
        return f"{{{' '.join(self._texts)}}} : ({' AND '.join(phrases)})"

    def find_any(self, words: Collection[str], limit: int) -> list[str]:
        """Return the ids of the newest rows in which one of the words occurs."""
        phrases = (f'"{word}"' for word in words)
        match = f"{{{' '.join(self._texts)}}} : ({' OR '.join(phrases)})"
        rows = fetch_all(self._find, match=match, before=MAX_ROWID, limit=limit)
        return [row.id for row in rows]

    def clear(self, connection: sa.Connection) -> None:
        connection.execute(self._clear)

    def optimize(self, connection: sa.Connection) -> None:
        """Tend an index that was built in one transaction. On Postgres, autovacuum does this."""
        connection.execute(self._optimize)


def _position(entry: Entry) -> Position:
    row, _ = entry
    return row["created_at"], row["id"]


def first_rowid(position: Position) -> int:
    """Return the first of the rowids that the row at a position may have."""
    created_at, id = position
    a, b, c = (ID_CHARACTERS.index(character) for character in id[:3])
    return to_milliseconds(created_at) << ID_BITS | a << 9 | b << 3 | c >> 3
