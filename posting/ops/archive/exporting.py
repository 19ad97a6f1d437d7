"""Export the content of the database, in parts that are made one after another."""

import gzip
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import IO, Any

import sqlalchemy as sa
from click import ClickException

from posting.db.base import archived_tables
from posting.db.migrations.revisions import head_revision
from posting.db.transactions import snapshot
from posting.ops.archive.lines import Row, encode_line, encode_row, encode_with_checksum
from posting.ops.files import atomic_write, command_errors
from posting.ops.integrity import find_violation
from posting.progress import progress
from posting.web.streaming import Sink

FORMAT = "posting archive"
VERSION = 2
BATCH_ROWS = 100

Counts = dict[str, int]


def export_to_path(path: Path, *, replace: bool) -> Counts:
    """Export the content to a file at `path`, and return the rows per table.

    Raise ClickException if the file cannot be written, or exists and `replace` is false, or if the
    database fails or holds rows that could not be imported again.
    """
    with (
        command_errors(f"{path} cannot be written"),
        atomic_write(path, replace=replace) as draft,
        draft.open("wb") as file,
    ):
        return export_to_file(file)


def export_to_file(file: IO[bytes]) -> Counts:
    """Export the content to an open file, and return the rows per table.

    Raise ClickException if the database is inconsistent or holds rows that could not be imported
    again.
    """
    with snapshot() as connection:
        if violation := find_violation(connection):
            raise ClickException(f"The database is inconsistent: {violation}. Run: flask doctor")
        counts = count_rows(connection)
        with progress("Exporting", sum(counts.values())) as advance:
            for part in export_rows(connection, counts, advance):
                file.write(part)
    return counts


def count_rows(connection: sa.Connection) -> Counts:
    """Return the rows per table, in the order in which an archive has them."""
    count = sa.select(sa.func.count())
    return {
        table.name: connection.execute(count.select_from(table)).scalar_one()
        for table in archived_tables()
    }


def export_rows(
    connection: sa.Connection, counts: Counts, advance: Callable[[int], None] = lambda _: None
) -> Generator[bytes, None, None]:
    """Yield the parts of an archive. `counts` are those of the same transaction.

    Call `advance` for each row. Raise ClickException for a row that could not be imported again.
    """
    if connection.dialect.name == "postgresql":
        sa.event.listen(connection, "before_cursor_execute", _receive_binary)
    sink = Sink()
    header = {"format": FORMAT, "version": VERSION, "schema": head_revision(), "rows": counts}
    with gzip.GzipFile("", "wb", compresslevel=6, fileobj=sink, mtime=0) as archive:
        archive.write(encode_line(header))
        yield sink.take()
        for table in archived_tables():
            for row in _export_table(connection, table):
                for part in encode_with_checksum(row):
                    archive.write(part)
                    if done := sink.take():  # so that no more than a piece of a file is kept
                        yield done
                advance(1)
                del row
    yield sink.take()


def describe_counts(counts: Counts) -> str:
    """Return the number of rows per table in words, without empty tables."""
    parts = []
    for table, rows in counts.items():
        name = table.replace("_", " ")
        if rows:
            parts.append(f"{rows:,} {name.removesuffix('s') if rows == 1 else name}")
    return ", ".join(parts) or "no rows"


def _export_table(connection: sa.Connection, table: sa.Table) -> Iterator[Row]:
    """Yield the content of the line of each row, in an order that is the same on both engines."""
    collation = "BINARY" if connection.dialect.name == "sqlite" else "C"
    order: list[sa.ColumnElement[Any]] = [
        sa.collate(column, collation) if isinstance(column.type, sa.String) else column
        for column in table.primary_key
    ]
    if any(key.column.table is table for key in table.foreign_keys):
        order.insert(0, table.c.created_at)  # parents before their children
    fetch = {"yield_per": 1 if has_bytes(table) else BATCH_ROWS}
    try:
        with connection.execute(sa.select(table).order_by(*order), execution_options=fetch) as rows:
            for row in rows.mappings():
                yield encode_row(table, row)
                del row  # before the next one is fetched, since both may be large
    except (TypeError, ValueError) as error:  # SQLite stores values of any type in any column
        raise ClickException(f"A row of {table.name} cannot be exported: {error}.") from None


def _receive_binary(_connection: Any, cursor: Any, *_: Any) -> None:
    """Let Postgres send bytes as they are. As text, they would take twice the memory."""
    cursor.format = 1  # Format.BINARY of psycopg


def has_bytes(table: sa.Table) -> bool:
    """Return whether the rows of a table have bytes, so that each may be large."""
    return any(isinstance(column.type, sa.LargeBinary) for column in table.columns)
