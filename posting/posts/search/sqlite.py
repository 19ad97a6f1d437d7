"""The search index on SQLite.

A rowid is the position of a post, because FTS5 returns matches in the order of rowids: its
milliseconds, and the first 15 bits of its id.
"""

from collections.abc import Sequence
from contextlib import suppress

import sqlalchemy as sa

from posting.db.transactions import fetch_all
from posting.db.types import Position, from_milliseconds, to_milliseconds
from posting.posts.search.entries import Entry
from posting.posts.search.words import Term

ID_CHARACTERS = "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz"  # in their order
MAX_ROWID = 2**63 - 1
ID_BITS = 15
ROWIDS_PER_POSITION = 8  # for posts of one millisecond whose ids begin alike

CLEAR = "INSERT INTO post_search (post_search) VALUES ('delete-all')"
# Otherwise later writes would merge what many inserts left, and hold the write lock for seconds.
OPTIMIZE = "INSERT INTO post_search (post_search) VALUES ('optimize')"
INSERT = sa.text("""
    INSERT INTO post_search (rowid, title, content, author, post_id, version)
    VALUES (:rowid, :title, :content, :author, :id, :version)""")
DELETE = sa.text("""
    DELETE FROM post_search WHERE rowid >= :first AND rowid < :end AND post_id = :id""")
FIND = sa.text("""
    SELECT rowid, post_id FROM post_search WHERE post_search MATCH :match AND rowid < :before
    ORDER BY rowid DESC LIMIT :limit""")


def add(connection: sa.Connection, entries: Sequence[Entry]) -> None:
    # In the order of rowids: FTS5 writes a segment before each rowid below the last one.
    for post, words in sorted(entries, key=lambda entry: (entry[0]["created_at"], entry[0]["id"])):
        values = {
            "id": post["id"],
            "version": post["version"],
            "author": post["author_id"] or "",
            "title": " ".join(words.title),
            "content": " ".join(words.content),
        }
        first = first_rowid((post["created_at"], post["id"]))
        for rowid in range(first, first + ROWIDS_PER_POSITION):
            with suppress(sa.exc.IntegrityError):  # another post has it
                connection.execute(INSERT, values | {"rowid": rowid})
                break
        else:
            raise RuntimeError(f"There is no rowid left for post {post['id']}.")


def remove(connection: sa.Connection, positions: Sequence[Position]) -> None:
    for position in positions:
        first = first_rowid(position)
        values = {"first": first, "end": first + ROWIDS_PER_POSITION, "id": position[1]}
        connection.execute(DELETE, values)


def find(
    terms: Sequence[Term], author: str | None, after: Position | None, limit: int
) -> list[Position]:
    phrases = (f'"{" ".join(term.words)}"{"*" * term.is_prefix}' for term in terms)
    match = f"{{title content}} : ({' AND '.join(phrases)})"
    if author:
        match += f' AND author : "{author}"'
    before = first_rowid(after) if after else MAX_ROWID
    rows = fetch_all(FIND, match=match, before=before, limit=limit)
    return [(from_milliseconds(row.rowid >> ID_BITS), row.post_id) for row in rows]


def first_rowid(position: Position) -> int:
    """Return the first of the rowids that the post at a position may have."""
    created_at, id = position
    a, b, c = (ID_CHARACTERS.index(character) for character in id[:3])
    return to_milliseconds(created_at) << ID_BITS | a << 9 | b << 3 | c >> 3
