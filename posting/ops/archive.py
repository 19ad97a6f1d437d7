"""All rows of all tables as one file, and back. docs/archive.md describes the file.

Nothing but the rows decides what is in it, so that two databases with the same rows give the same
archive, whatever their engines.
"""

import gzip
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from posting.db.engine import db, error_reason, exclusive_transaction, snapshot
from posting.db.integrity import find_fault
from posting.db.migrations import head_revision
from posting.ops.archive_lines import ArchiveError, Lines, as_line
from posting.ops.codecs import form_of
from posting.ops.files import atomic_write
from posting.ops.progress import progress

FORMAT = "posting archive"
VERSION = 1
COMPRESSION = 6
ROWS_READ_AT_ONCE = 100
BATCH_ROWS = 1000
BATCH_BYTES = 4 * 2**20
LONGEST_HEADER = 64 * 2**10
LONGEST_LINE = 16 * 2**20
LONGEST_LINE_WITH_BYTES = 512 * 2**20  # settings permit images of 256 MiB, which are 342 in base64
PASSING = sa.exc.OperationalError  # such as a full disk; other errors are a damaged database's
REFUSALS = (sa.exc.IntegrityError, sa.exc.DataError)

Counts = dict[str, int]
Row = dict[str, Any]
Writers = list[tuple[str, Callable[[Any], Any]]]


def write(path: Path, *, replace: bool) -> Counts:
    """Write all rows into a file that appears at `path` when it is whole; return their numbers.

    Errors: ArchiveError, also for rows that could not be read again; InTheWay if there is such a
    file already, unless it is to be replaced.
    """
    with _plain_errors(path), snapshot() as connection:
        if fault := find_fault(connection):
            raise ArchiveError(f"The database is not sound: {fault}.")
        counts = {table.name: _count(connection, table) for table in db.metadata.sorted_tables}
        header = {"format": FORMAT, "version": VERSION, "schema": head_revision(), "rows": counts}
        with (
            atomic_write(path, replace=replace) as draft,
            draft.open("wb") as file,
            gzip.GzipFile("", "wb", COMPRESSION, file, mtime=0) as archive,
            progress("Exporting", sum(counts.values())) as advance,
        ):
            archive.write(as_line(header))
            for table in db.metadata.sorted_tables:
                for row in _stored(connection, table):
                    archive.write(as_line({"table": table.name, "row": row}))
                    advance(1)
    return counts


def read(path: Path) -> Counts:
    """Insert all rows of the archive at `path` into the empty database; return their numbers.

    Errors: ArchiveError, also if the database is not empty.
    """
    with _plain_errors(path), gzip.open(path) as file:
        lines = Lines(path, file)
        counts: Counts = lines.next(LONGEST_HEADER, _read_header)
        with exclusive_transaction() as connection:
            _ensure_empty(connection)
            with progress("Importing", sum(counts.values())) as advance:
                for name, count in counts.items():
                    table = db.metadata.tables[name]
                    for batch in _batches(lines, table, count):
                        _insert(connection, table, batch, lines)
                        advance(len(batch))
            lines.ensure_end()
            if fault := find_fault(connection):
                raise ArchiveError(f"{path}, all lines together: {fault}.")
    return counts


def spoken(counts: Counts) -> str:
    """Return how many rows there are in words."""
    parts = [f"{count:,} {table.replace('_', ' ')}" for table, count in counts.items() if count]
    return ", ".join(parts) or "no rows"


@contextmanager
def _plain_errors(path: Path) -> Iterator[None]:
    """Raise ArchiveError when the file or the database fails."""
    try:
        yield
    except OSError as error:
        raise ArchiveError(f"{path}: {error.strerror or error}.") from None
    except sa.exc.SQLAlchemyError as error:
        cure = "Check that it is up, has room, and that nothing else writes."
        if isinstance(error, sa.exc.DatabaseError) and not isinstance(error, PASSING):
            cure = "Run: flask doctor"
        raise ArchiveError(f"The database did not answer ({error_reason(error)}). {cure}") from None


def _count(connection: sa.Connection, table: sa.Table) -> int:
    return connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()


def _stored(connection: sa.Connection, table: sa.Table) -> Iterator[Row]:
    """Yield the rows of a table as they are written. Error: ArchiveError for what is no value."""
    writers = [(column.name, form_of(column).write) for column in table.columns]
    statement = sa.select(table).order_by(*_order(connection, table))
    at_once = 1 if _has_bytes(table) else ROWS_READ_AT_ONCE
    rows = connection.execute(statement, execution_options={"yield_per": at_once})
    try:
        for row in rows:
            yield _written(table, writers, row)
    except (TypeError, ValueError) as error:  # SQLite stores anything anywhere
        raise ArchiveError(f"A row of {table.name} cannot be read: {error}.") from None


def _written(table: sa.Table, writers: Writers, row: sa.Row[Any]) -> Row:
    written = {}
    for (name, write_value), value in zip(writers, row, strict=True):
        try:
            written[name] = write_value(value)
        except (TypeError, ValueError) as rule:
            key = ", ".join(str(row._mapping[column]) for column in table.primary_key)
            raise ArchiveError(f"{table.name}.{name} of {key!r} {rule}.") from None
    return written


def _order(connection: sa.Connection, table: sa.Table) -> list[sa.ColumnElement[Any]]:
    """Return an order that is the same on both engines, and in which rows follow their parents."""
    by_byte = "BINARY" if connection.dialect.name == "sqlite" else "C"
    order: list[sa.ColumnElement[Any]] = [
        sa.collate(column, by_byte) if isinstance(column.type, sa.String) else column
        for column in table.primary_key
    ]
    if any(key.column.table is table for key in table.foreign_keys):
        order.insert(0, table.c.created_at)
    return order


def _has_bytes(table: sa.Table) -> bool:
    return any(isinstance(column.type, sa.LargeBinary) for column in table.columns)


def _read_header(header: Any) -> Counts:
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ValueError("not the header of a Posting archive")
    if header.get("version") != VERSION:
        raise ValueError(f"another version of the format than {VERSION}, which is read here")
    if header.get("schema") != head_revision():
        raise ValueError(
            f"schema {header.get('schema')!r}, but this installation has {head_revision()!r}. "
            "Bring both to the same release, run flask db upgrade there, and export again"
        )
    counts = header.get("rows")
    if (
        not isinstance(counts, dict)
        or counts.keys() != db.metadata.tables.keys()
        or not all(type(count) is int and 0 <= count < 2**63 for count in counts.values())
    ):
        raise ValueError("not a count of the rows of each table")
    return counts


def _ensure_empty(connection: sa.Connection) -> None:
    for table in db.metadata.sorted_tables:
        if connection.execute(sa.select(sa.exists().select_from(table))).scalar_one():
            raise ArchiveError(
                f"The database is not empty: table {table.name} has rows. "
                "Name a new one with POSTING_DATABASE_URL."
            )


def _batches(lines: Lines, table: sa.Table, count: int) -> Iterator[list[Row]]:
    """Yield the next rows, which are all of one table, as many at once as are not too large."""
    longest = LONGEST_LINE_WITH_BYTES if _has_bytes(table) else LONGEST_LINE
    read = _row_reader(table)
    batch: list[Row] = []
    start = lines.file.tell()
    for _ in range(count):
        batch.append(lines.next(longest, read))
        if len(batch) == BATCH_ROWS or lines.file.tell() - start >= BATCH_BYTES:
            yield batch
            batch, start = [], lines.file.tell()
    if batch:
        yield batch


def _row_reader(table: sa.Table) -> Callable[[Any], Row]:
    readers = {column.name: form_of(column).read for column in table.columns}

    def read(line: Any) -> Row:
        if not isinstance(line, dict) or line.keys() != {"table", "row"}:
            raise ValueError('not of the form {"table": …, "row": {…}}')
        if line["table"] != table.name:
            raise ValueError(f"not a row of {table.name}, of which line 1 counts more")
        row = line["row"]
        if not isinstance(row, dict) or row.keys() != readers.keys():
            raise ValueError(f"not the columns of {table.name}, which are {', '.join(readers)}")
        for name, read_value in readers.items():
            try:
                row[name] = read_value(row[name])
            except ValueError as rule:
                raise ValueError(f"{table.name}.{name} {rule}") from None
        return row

    return read


def _insert(connection: sa.Connection, table: sa.Table, batch: list[Row], lines: Lines) -> None:
    """Insert the rows of the last lines. Error: ArchiveError for what breaks a constraint."""
    statement = sa.insert(table)
    # Not in a `with`, which would hide that a disk is full: SQLite then undoes the savepoint too.
    savepoint = connection.begin_nested()
    try:
        connection.execute(statement, batch)
    except REFUSALS:
        savepoint.rollback()
        # Only one by one do they tell which of them it was.
        for number, row in enumerate(batch, lines.number - len(batch) + 1):
            try:
                connection.execute(statement, row)
            except REFUSALS as error:
                raise lines.error(
                    f"refused by the database ({error_reason(error)})", number
                ) from None
        raise
    savepoint.commit()
