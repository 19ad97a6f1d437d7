"""The search index on Postgres.

GIN finds all rows with all words, in no order. So a search goes from the newest rows to older ones.
First it reads a thousand rows. Then it looks up the words in one year after the other, and in the
months of a year that has them. Only rare words are looked up in all years at once. Phrases are
compared with the text, since a vector has at most 256 positions of a word.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain, islice
from time import monotonic
from typing import Any

import sqlalchemy as sa
from flask import current_app

from posting.config import READ_SECONDS
from posting.db.transactions import Row, fetch_all, fetch_one, fetch_value
from posting.db.types import Position
from posting.search.words import Entry, Term
from posting.web.errors import QueryTimeout

LATEST = datetime.max.replace(tzinfo=UTC)
RARE = 20_000  # rows that the planner expects; they are found and sorted in 20 ms

CLEAR = "DELETE FROM {name}_search"
INSERT = """
    INSERT INTO {name}_search ({name}_id, created_at, version, text, words)
    VALUES (:id, :created_at, :version, :text, array_to_tsvector(string_to_array(:words, ' ')))"""
DELETE = "DELETE FROM {name}_search WHERE {name}_id = ANY (:ids)"
# CASE, because Postgres would compare the long texts before it looks at the words.
FIND_RECENT = """
    SELECT created_at, {name}_id AS id FROM (
        SELECT * FROM {name}_search WHERE (created_at, {name}_id) < (:after_time, :after_id)
        ORDER BY created_at DESC, {name}_id DESC LIMIT 1000
    ) AS recent
    WHERE CASE WHEN words @@ CAST(:query AS tsquery)
        THEN text LIKE ALL (CAST(:phrases AS text[])) END
    ORDER BY created_at DESC, {name}_id DESC LIMIT :limit"""
# The index has each word with the year of the row, such as '2026/engine', and the month as
# '2026/#11'.
# MATERIALIZED, because the planner would read rows in their order until it has found enough.
FOUND = """
    WITH found AS MATERIALIZED (
        SELECT {name}_id AS id, created_at FROM {name}_search
        WHERE {name}_search_lexemes(words, created_at) @@ CAST(:lexemes AS tsquery)
        AND CASE WHEN cardinality(CAST(:phrases AS text[])) = 0 THEN true
            WHEN words @@ CAST(:query AS tsquery) THEN text LIKE ALL (CAST(:phrases AS text[])) END
        AND (created_at, {name}_id) < (:after_time, :after_id)
    )"""
FIND = """
    {found} SELECT created_at, id FROM found ORDER BY created_at DESC, id DESC LIMIT :limit"""
IS_FOUND = "{found} SELECT true FROM found LIMIT 1"
EXPECTED = """
    EXPLAIN (FORMAT JSON) SELECT FROM {name}_search WHERE words @@ CAST(:query AS tsquery)"""
PERIOD = """
    SELECT min(created_at) AS first, max(created_at) AS last FROM {name}_search
    WHERE created_at <= :after_time"""


class PostgresIndex:
    """The index in a table with a vector of words for each row."""

    def __init__(self, name: str) -> None:
        def statement(template: str) -> sa.TextClause:
            return sa.text(template.format(name=name, found=FOUND.format(name=name)))

        self._clear = statement(CLEAR)
        self._insert = statement(INSERT)
        self._delete = statement(DELETE)
        self._find_recent = statement(FIND_RECENT)
        self._find = statement(FIND)
        self._is_found = statement(IS_FOUND)
        self._expected = statement(EXPECTED)
        self._period = statement(PERIOD)

    def add(self, connection: sa.Connection, entries: Sequence[Entry]) -> None:
        rows = []
        for row, of_texts in entries:
            author = [f"@{row['author_id']}"] if row["author_id"] else []
            values = {name: row[name] for name in ("id", "created_at", "version")}
            values["text"] = " {} ".format(" \n ".join(map(" ".join, of_texts.words)))
            # As one text: psycopg needs 0.1 seconds of CPU time for a list of 90,000 words.
            values["words"] = " ".join({*chain(*of_texts.words), *author})
            rows.append(values)
        connection.execute(self._insert, rows)

    def remove(self, connection: sa.Connection, positions: Sequence[Position]) -> None:
        connection.execute(self._delete, {"ids": [id for _, id in positions]})

    def find(
        self, terms: Sequence[Term], author: str | None, after: Position | None, limit: int
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
        end = monotonic() + READ_SECONDS
        after_time, after_id = after or (LATEST, "")
        query = " & ".join(words)
        values = {"query": query, "phrases": phrases, "limit": limit}
        values |= {"after_time": after_time, "after_id": after_id}
        rows = fetch_all(self._find_recent, **values)
        if len(rows) < limit and (years := self._years_until(after_time)):
            queries = {year: " & ".join(f"'{year}/{word[1:]}" for word in words) for year in years}
            if self._expected_matches(query) <= RARE:
                lexemes = " | ".join(f"({of_year})" for of_year in queries.values())
                rows = fetch_all(self._find, **values, lexemes=lexemes)
            else:
                rows = [*islice(self._find_by_month(queries, values, end), limit)]
        return [(row.created_at, row.id) for row in rows]

    def clear(self, connection: sa.Connection) -> None:
        connection.execute(self._clear)

    def _years_until(self, time: datetime) -> Sequence[int]:
        """Return the years in which rows can be, newest first."""
        period = fetch_one(self._period, after_time=time)
        if period is None or period.first is None:
            return []
        return range(period.last.astimezone(UTC).year, period.first.astimezone(UTC).year - 1, -1)

    def count(self, terms: Sequence[Term], limit: int) -> int:
        """Return how many rows have all terms, or `limit` if there are more."""
        return len(self.find(terms, None, None, limit))

    def find_any(self, words: Collection[str], limit: int) -> list[str]:
        """Return the ids of the newest rows in which one of the words occurs."""
        query = " | ".join(f"'{word}'" for word in words)
        values = {"query": query, "phrases": [], "limit": limit}
        values |= {"after_time": LATEST, "after_id": ""}
        rows = fetch_all(self._find_recent, **values)
        for year in () if rows else self._years_until(LATEST):
            lexemes = " | ".join(f"'{year}/{word}'" for word in words)
            rows = fetch_all(self._find, **values, lexemes=lexemes)
            if rows:
                break
        return [row.id for row in rows]

    def _expected_matches(self, query: str) -> int:
        """Return how many rows a query finds, by the statistics of the planner."""
        [explained] = fetch_value(self._expected, query=query)
        rows: int = explained["Plan"]["Plan Rows"]
        return rows

    def _find_by_month(
        self, queries: Mapping[int, str], values: dict[str, Any], end: float
    ) -> Iterator[Row]:
        """Yield the rows that the queries of years find, newest first, a month at a time.

        Raise QueryTimeout if there are months left at `end`.
        """

        def look_up(statement: sa.TextClause, lexemes: str) -> Sequence[Row]:
            if monotonic() > end:
                current_app.logger.error("A search had months left after two seconds.")
                raise QueryTimeout
            return fetch_all(statement, **values, lexemes=lexemes)

        for year, query in queries.items():
            december, *months = (f"{query} & '{year}/#{month}'" for month in range(12, 0, -1))
            rows = look_up(self._find, december)
            yield from rows
            # It takes long to look up words that are in many rows of a year: they are in December
            # too.
            if rows or look_up(self._is_found, query):
                for month in months:
                    yield from look_up(self._find, month)
