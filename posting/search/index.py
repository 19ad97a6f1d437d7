"""The search index of a table: a table of FTS5 on SQLite, text search vectors on Postgres.

Both are given the same words, by `words`, so that they find the same rows. Whatever writes a row
also indexes it, in the same transaction.

The tables of indexes have no models: archives do not contain them, and Alembic does not compare
them. So the operators' commands maintain all indexes, which `posting.indexes` lists.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import sqlalchemy as sa

from posting.db.base import Base, db
from posting.db.transactions import (
    fetch_all,
    in_transaction,
    lift_time_limits,
    snapshot,
    transaction,
)
from posting.db.types import Position
from posting.search.postgres import PostgresIndex
from posting.search.sqlite import SqliteIndex
from posting.search.words import (
    Entry,
    RowData,
    RowWords,
    Term,
    find_words,
    similar_words,
    split_words,
)

BATCH = 500
MAX_LENGTH = 2**20  # characters that a rebuild indexes in a transaction
MAX_SIMILAR = 20  # rows that say which words are like a word
MAX_REPETITIONS = 3  # of a word in a query
MAX_OCCURRENCES = 1_000  # of a word in a text, or a tenth of its words; ordinary texts have fewer
NO_WORD = "_"  # takes the place of further occurrences; no query has it


class Index:
    """The search index of a model whose rows have an author, a time and a version.

    `name` says what a row is, such as post; the index is then the table post_search. `texts` are
    the columns that are searched; a row in which one of them is null is not indexed. `lock` returns
    a SELECT that locks rows by their ids, so that no other transaction changes them meanwhile.
    """

    def __init__(
        self,
        name: str,
        model: type[Base],
        texts: Sequence[str],
        lock: Callable[[Collection[str]], sa.Select[Any]],
    ) -> None:
        self.name = name
        self.table = f"{name}_search"
        self._texts = texts
        self._lock = lock
        self._on_sqlite = SqliteIndex(name, texts)
        self._on_postgres = PostgresIndex(name)
        self._rows: Any = model.__table__.columns
        self._is_indexed = sa.and_(*(self._rows[text].is_not(None) for text in texts))
        self._id = sa.column(f"{name}_id", sa.String)
        self._version = sa.column("version", sa.Integer)
        self._entries = sa.table(self.table, self._id, self._version)

    def split(self, row: RowData) -> RowWords:
        """Return the words of a row. It may take 0.05 seconds of CPU time."""
        texts = tuple(row[name] or "" for name in self._texts)
        return RowWords(texts, tuple(limit_occurrences(split_words(text)) for text in texts))

    def split_all(self, rows: Sequence[RowData]) -> list[Entry]:
        """Return rows with their words."""
        return [(row, self.split(row)) for row in rows]

    def add(self, entries: Sequence[Entry]) -> None:
        """Index new rows within the transaction."""
        connection = in_transaction()
        self._on(connection).add(connection, entries)

    def replace(self, row: RowData, words: RowWords) -> None:
        """Index an edited row again within the transaction.

        The words are split again if another edit has changed the row since.
        """
        self.remove([(row["created_at"], row["id"])])
        is_same = words.texts == tuple(row[name] for name in self._texts)
        self.add([(row, words if is_same else self.split(row))])

    def remove(self, positions: Sequence[Position]) -> None:
        """Remove rows from the index within the transaction."""
        connection = in_transaction()
        self._on(connection).remove(connection, positions)

    def find(
        self, terms: Sequence[Term], author: str | None, after: Position | None, limit: int
    ) -> list[Position]:
        """Return the newest rows, after a position, in which all terms occur."""
        return self._on(db.engine).find(_shorten_phrases(terms), author, after, limit)

    def count(self, terms: Sequence[Term], limit: int) -> int:
        """Return how many rows have all terms, or `limit` if there are more."""
        return self._on(db.engine).count(_shorten_phrases(terms), limit)

    def count_similar(self, word: str) -> Counter[str]:
        """Return the words that differ from a word by one slip, as they were typed, in lower case.

        Their numbers are those in the newest rows in which such a word occurs.
        """
        words = similar_words(word)
        ids = self._on(db.engine).find_any(words, MAX_SIMILAR) if words else []
        texts = sa.select(*(self._rows[name] for name in self._texts)).where(self._rows.id.in_(ids))
        rows = fetch_all(texts) if ids else []
        terms = [Term((each,)) for each in words]
        return Counter(
            text[start:end].lower()
            for row in rows
            for text in row
            for start, end in find_words(text, terms)
        )

    def count_rows(self, connection: sa.Connection) -> int:
        """Return how many rows there are to index."""
        count = sa.select(sa.func.count(self._rows.id)).where(self._is_indexed)
        return connection.scalar(count) or 0

    def clear(self, connection: sa.Connection) -> None:
        """Remove all entries from the index."""
        self._on(connection).clear(connection)

    def build(self, connection: sa.Connection) -> Iterator[int]:
        """Index all rows in an empty index, and yield the size of each batch."""
        last = ""
        while rows := self._next_rows(connection, last):
            self._on(connection).add(connection, self.split_all(rows))
            last = rows[-1]["id"]
            yield len(rows)
        if connection.dialect.name == "sqlite":
            self._on_sqlite.optimize(connection)

    def rebuild(self) -> Iterator[int]:
        """Index all rows again, in short transactions, and yield the size of each batch.

        Others may search and write meanwhile.
        """
        last = ""
        while True:
            with snapshot() as connection:
                rows = self._next_rows(connection, last)
            if not rows:
                break
            for batch in self._split_batch(rows):
                entries = self.split_all(batch)
                with transaction() as connection:
                    self._replace_unchanged(connection, entries)
                yield len(batch)
            last = rows[-1]["id"]
        with transaction() as connection:
            lift_time_limits(connection)
            # NOT EXISTS, because Postgres may scan all rows for each row of a NOT IN.
            has_row = sa.exists().where(self._rows.id == self._id, self._is_indexed)
            connection.execute(sa.delete(self._entries).where(~has_row))

    def count_stale(self, connection: sa.Connection) -> int:
        """Return the number of rows whose entry is missing, outdated or left over."""
        rows = sa.select(self._rows.id, self._rows.version).where(self._is_indexed)
        entries = sa.select(self._id.label("id"), self._version)
        missing, stale = sa.except_(rows, entries).subquery(), sa.except_(entries, rows).subquery()
        ids = sa.union(sa.select(missing.c.id), sa.select(stale.c.id)).subquery()
        return connection.scalar(sa.select(sa.func.count()).select_from(ids)) or 0

    def _on(self, bind: sa.Connection | sa.Engine) -> SqliteIndex | PostgresIndex:
        return self._on_sqlite if bind.dialect.name == "sqlite" else self._on_postgres

    def _next_rows(self, connection: sa.Connection, last: str) -> Sequence[RowData]:
        """Return the next rows by id."""
        names = ("id", "created_at", "author_id", "version", *self._texts)
        columns = (self._rows[name] for name in names)
        after = sa.select(*columns).where(self._rows.id > last, self._is_indexed)
        return connection.execute(after.order_by(self._rows.id).limit(BATCH)).mappings().all()

    def _split_batch(self, rows: Sequence[RowData]) -> Iterator[list[RowData]]:
        """Yield rows in batches that are indexed within a second, while other writes wait."""
        batch: list[RowData] = []
        length = 0
        for row in rows:
            length_of_row = sum(len(row[name]) for name in self._texts)
            length += length_of_row
            if batch and length > MAX_LENGTH:
                yield batch
                batch, length = [], length_of_row
            batch.append(row)
        yield batch

    def _replace_unchanged(self, connection: sa.Connection, entries: Sequence[Entry]) -> None:
        """Index rows again, except those that have changed since they were read.

        The requests that changed them have indexed them.
        """
        ids = [row["id"] for row, _ in entries]
        connection.execute(self._lock(ids))
        locked = sa.select(self._rows.id, self._rows.version)
        rows = connection.execute(locked.where(self._rows.id.in_(ids)))
        versions = {row.id: row.version for row in rows}
        entries = [each for each in entries if versions.get(each[0]["id"]) == each[0]["version"]]
        if entries:
            positions = [(row["created_at"], row["id"]) for row, _ in entries]
            self._on(connection).remove(connection, positions)
            self._on(connection).add(connection, entries)


def limit_occurrences(words: list[str]) -> list[str]:
    """Return the words of a text, with NO_WORD in the places of words that occur too often.

    Both databases compare a phrase with each place where one of its words is, so monotonous texts
    would make phrases slow. The other words keep their places, so that no phrase is found across
    words that were left out.
    """
    limit = max(MAX_OCCURRENCES, len(words) // 10)
    if len(words) - len(set(words)) < limit:  # which takes a sixth of the time to count
        return words
    left = {word: limit for word, number in Counter(words).items() if number > limit}
    if not left:
        return words
    limited = []
    for word in words:
        if word in left:
            left[word] -= 1
        limited.append(word if left.get(word, 0) >= 0 else NO_WORD)
    return limited


def _shorten_phrases(terms: Sequence[Term]) -> list[Term]:
    """Return terms whose phrases end before the fourth occurrence of a word in the query.

    A phrase that has a word twenty times would be compared twenty times with each place where the
    word is in a text, and a text may consist of that word. The words after the end of a phrase may
    be anywhere.
    """
    counts: Counter[str] = Counter()
    shortened: dict[Term, None] = {}  # in order, without repetitions
    for term in terms:
        end = len(term.words)
        for place, word in enumerate(term.words):
            counts[word] += 1
            if counts[word] > MAX_REPETITIONS:
                end = place
                break
        parts = [term.words[:end], *((word,) for word in term.words[end:])]
        *others, last = filter(None, parts)
        shortened |= dict.fromkeys([*map(Term, others), Term(last, term.is_prefix)])
    return list(shortened)
