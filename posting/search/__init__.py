"""The kit of search: the words of texts, indexes of them on both databases, and lists of results.

A feature whose rows are searched has an index, most often an `Index`. The tables of indexes are no
models: archives do not contain them, and Alembic does not compare them. So the operators' commands
maintain all indexes of the app, which are listed here.
"""

from collections.abc import Iterator, Sequence
from typing import Protocol

import sqlalchemy as sa
from flask import Flask, current_app

EXTENSION = "posting.search"


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


def init_app(app: Flask, indexes: Sequence[MaintainedIndex]) -> None:
    """Keep the indexes of all features."""
    app.extensions[EXTENSION] = indexes


def all_indexes() -> Sequence[MaintainedIndex]:
    """Return the indexes of all features."""
    indexes: Sequence[MaintainedIndex] = current_app.extensions[EXTENSION]
    return indexes
