"""The search index on Postgres.

GIN finds all posts with all words, in no order. So a search goes from the newest posts to older
ones. First it reads a thousand posts. Then it looks up the words in one year after the other, and
in the months of a year that has them. Only rare words are looked up in all years at once. Phrases
are compared with the text, since a vector has at most 256 positions of a word.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import Any

import sqlalchemy as sa

from posting.db.transactions import Row, fetch_all, fetch_one, fetch_value
from posting.db.types import Position
from posting.posts.search.entries import Entry
from posting.posts.search.words import Term

LATEST = datetime.max.replace(tzinfo=UTC)
RARE = 20_000  # posts that the planner expects; they are found and sorted in 20 ms

CLEAR = "DELETE FROM post_search"
INSERT = sa.text("""
    INSERT INTO post_search (post_id, created_at, version, text, words)
    VALUES (:id, :created_at, :version, :text, array_to_tsvector(string_to_array(:words, ' ')))""")
DELETE = sa.text("DELETE FROM post_search WHERE post_id = ANY (:ids)")
# CASE, because Postgres would compare the long texts before it looks at the words.
FIND_RECENT = sa.text("""
    SELECT created_at, post_id FROM (
        SELECT * FROM post_search WHERE (created_at, post_id) < (:after_time, :after_id)
        ORDER BY created_at DESC, post_id DESC LIMIT 1000
    ) AS recent
    WHERE CASE WHEN words @@ CAST(:query AS tsquery)
        THEN text LIKE ALL (CAST(:phrases AS text[])) END
    ORDER BY created_at DESC, post_id DESC LIMIT :limit""")
# The index has each word with the year of the post, such as '2026/engine', and the month as
# '2026/#11'.
# MATERIALIZED, because the planner would read posts in their order until it has found enough.
FOUND = """
    WITH found AS MATERIALIZED (
        SELECT post_id, created_at FROM post_search
        WHERE post_search_lexemes(words, created_at) @@ CAST(:lexemes AS tsquery)
        AND CASE WHEN cardinality(CAST(:phrases AS text[])) = 0 THEN true
            WHEN words @@ CAST(:query AS tsquery) THEN text LIKE ALL (CAST(:phrases AS text[])) END
        AND (created_at, post_id) < (:after_time, :after_id)
    )"""
FIND = sa.text(  # of constants
    FOUND + "SELECT created_at, post_id FROM found "  # noqa: S608
    "ORDER BY created_at DESC, post_id DESC LIMIT :limit"
)
IS_FOUND = sa.text(FOUND + "SELECT true FROM found LIMIT 1")  # noqa: S608
EXPECTED = sa.text("""
    EXPLAIN (FORMAT JSON) SELECT FROM post_search WHERE words @@ CAST(:query AS tsquery)""")
PERIOD = sa.text("""
    SELECT min(created_at) AS first, max(created_at) AS last FROM post_search
    WHERE created_at <= :after_time""")


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


def find(
    terms: Sequence[Term], author: str | None, after: Position | None, limit: int
) -> list[Position]:
    words = [f"'{word}'" for term in terms for word in term.words[:-1]]
    words += [f"'{term.words[-1]}'{':*' * term.is_prefix}" for term in terms]
    if author:
        words.append(f"'@{author}'")
    phrases = [
        f"% {' '.join(term.words)}{'%' if term.is_prefix else ' %'}"
        for term in terms
        if len(term.words) > 1
    ]
    after_time, after_id = after or (LATEST, "")
    query = " & ".join(words)
    values = {"query": query, "phrases": phrases, "limit": limit}
    values |= {"after_time": after_time, "after_id": after_id}
    rows = fetch_all(FIND_RECENT, **values)
    if len(rows) < limit and (years := _years_until(after_time)):
        queries = {year: " & ".join(f"'{year}/{word[1:]}" for word in words) for year in years}
        if _expected_matches(query) <= RARE:
            lexemes = " | ".join(f"({of_year})" for of_year in queries.values())
            rows = fetch_all(FIND, **values, lexemes=lexemes)
        else:
            rows = [*islice(_find_by_month(queries, values), limit)]
    return [(row.created_at, row.post_id) for row in rows]


def _years_until(time: datetime) -> Sequence[int]:
    """Return the years in which posts can be, newest first."""
    period = fetch_one(PERIOD, after_time=time)
    if period is None or period.first is None:
        return []
    return range(period.last.astimezone(UTC).year, period.first.astimezone(UTC).year - 1, -1)


def _expected_matches(query: str) -> int:
    """Return how many posts a query finds, by the statistics of the planner."""
    [explained] = fetch_value(EXPECTED, query=query)
    rows: int = explained["Plan"]["Plan Rows"]
    return rows


def _find_by_month(queries: Mapping[int, str], values: dict[str, Any]) -> Iterator[Row]:
    """Yield the rows that the queries of years find, newest first, a month at a time."""
    for year, query in queries.items():
        december, *months = (f"{query} & '{year}/#{month}'" for month in range(12, 0, -1))
        rows = fetch_all(FIND, **values, lexemes=december)
        yield from rows
        # It takes long to look up words that are in many posts of a year: they are in December too.
        if rows or fetch_one(IS_FOUND, **values, lexemes=query):
            for month in months:
                yield from fetch_all(FIND, **values, lexemes=month)
