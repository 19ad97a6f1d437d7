"""The search index on Postgres.

GIN finds posts with all words. Phrases are compared with the text, since a vector has at most 256
positions of a word.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from posting.db.types import Position
from posting.posts.search.entries import Entry
from posting.posts.search.words import Term

LATEST = datetime.max.replace(tzinfo=UTC)

CLEAR = "DELETE FROM post_search"
INSERT = sa.text("""
    INSERT INTO post_search (post_id, created_at, version, text, words)
    VALUES (:id, :created_at, :version, :text, array_to_tsvector(string_to_array(:words, ' ')))""")
DELETE = sa.text("DELETE FROM post_search WHERE post_id = ANY (:ids)")
# Common words are found in the newest posts. Only rarer ones are looked up by GIN, because it has
# to sort all posts that it finds. The planner cannot tell which words new posts have.
# CASE, because Postgres would compare the long texts before it looks at the words.
FIND_RECENT = sa.text("""
    SELECT created_at, post_id FROM (
        SELECT * FROM post_search WHERE (created_at, post_id) < (:after_time, :after_id)
        ORDER BY created_at DESC, post_id DESC LIMIT 1000
    ) AS recent
    WHERE CASE WHEN words @@ CAST(:query AS tsquery)
        THEN text LIKE ALL (CAST(:phrases AS text[])) END
    ORDER BY created_at DESC, post_id DESC LIMIT :limit""")
FIND_ALL = sa.text("""
    WITH found AS MATERIALIZED (
        SELECT post_id, created_at FROM post_search
        WHERE words @@ CAST(:query AS tsquery)
        AND CASE WHEN words @@ CAST(:query AS tsquery)
            THEN text LIKE ALL (CAST(:phrases AS text[])) END
        AND (created_at, post_id) < (:after_time, :after_id)
    )
    SELECT created_at, post_id FROM found ORDER BY created_at DESC, post_id DESC LIMIT :limit""")


def add(connection: sa.Connection, entries: Sequence[Entry]) -> None:
    rows = []
    for post, words in entries:
        author = [f"@{post['author_id']}"] if post["author_id"] else []
        row = {name: post[name] for name in ("id", "created_at", "version")}
        row["text"] = f" {' '.join(words.title)} \n {' '.join(words.content)} "
        # As one text: psycopg needs 0.1 seconds of CPU time for a list of 90,000 words.
        row["words"] = " ".join({*words.title, *words.content, *author})
        rows.append(row)
    connection.execute(INSERT, rows)


def remove(connection: sa.Connection, positions: Sequence[Position]) -> None:
    connection.execute(DELETE, {"ids": [id for _, id in positions]})


def searches(
    terms: Sequence[Term], author: str | None, after: Position | None, limit: int
) -> Iterator[tuple[sa.TextClause, dict[str, Any]]]:
    """Yield statements and their parameters; each finds what the one before may have missed."""
    lexemes = [f"'{word}'" for term in terms for word in term.words[:-1]]
    lexemes += [f"'{term.words[-1]}'{':*' * term.is_prefix}" for term in terms]
    if author:
        lexemes.append(f"'@{author}'")
    phrases = [
        f"% {' '.join(term.words)}{'%' if term.is_prefix else ' %'}"
        for term in terms
        if len(term.words) > 1
    ]
    after_time, after_id = after or (LATEST, "")
    values = {"query": " & ".join(lexemes), "phrases": phrases, "limit": limit}
    values |= {"after_time": after_time, "after_id": after_id}
    yield FIND_RECENT, values
    yield FIND_ALL, values


def position(row: sa.Row[Any]) -> Position:
    """Return the position of a post that was found."""
    return row.created_at, row.post_id
