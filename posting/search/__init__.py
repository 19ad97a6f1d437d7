"""The kit of search: the words of texts, indexes of them on both databases, and lists of results.

A feature whose rows are searched has an index, most often an `Index`. The tables of indexes have
no models: archives do not contain them, and Alembic does not compare them. So the operators'
commands maintain all indexes, which `posting.indexes` lists.
"""

from collections.abc import Iterator
from typing import Protocol

import sqlalchemy as sa


class MaintainedIndex(Protocol):
    """An `Index`, or another one that is maintained like it."""

    name: str  # what it finds, such as post
    table: str

    def count_rows(self, connection: sa.Connection) -> int:
        """Return how many rows there are to index."""

    def clear(self, connection: sa.Connection) -> None:
        """Remove all entries from the index."""

    def build(self, connection: sa.Connection) -> Iterator[int]:
        """Index all rows in an empty index, and yield the size of each batch."""

    def rebuild(self) -> Iterator[int]:
        """Index all rows again, in short transactions, and yield the size of each batch.

        Others may search and write meanwhile.
        """

    def count_stale(self, connection: sa.Connection) -> int:
        """Return the number of rows whose entry is missing, outdated or left over."""
