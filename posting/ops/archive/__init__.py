"""Export all rows of all tables to one file, and import them. docs/archive.md defines the format.

An archive depends on nothing but the rows: two databases with the same rows give the same file,
also when one is SQLite and the other is Postgres.
"""

import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from posting.db.engine import db, error_reason, exclusive_transaction, snapshot
from posting.db.integrity import find_violation
from posting.db.migrations import head_revision
from posting.ops.archive.codecs import Row, RowCodec
from posting.ops.archive.lines import ArchiveError, LineReader, encode_line
from posting.ops.files import atomic_write
from posting.ops.progress import progress

FORMAT = "posting archive"
VERSION = 1
COMPRESSION_LEVEL = 6
ROWS_PER_FETCH = 100
MAX_BATCH_ROWS = 1000
MAX_BATCH_BYTES = 4 * 2**20
MAX_HEADER_BYTES = 64 * 2**10
MAX_LINE_BYTES = 16 * 2**20
MAX_DATA_LINE_BYTES = 512 * 2**20  # settings allow images of 256 MiB, which are 342 MiB in base64
REJECTIONS = (sa.exc.IntegrityError, sa.exc.DataError)

Counts = dict[str, int]


def write(path: Path, *, replace: bool) -> Counts:
    """Export all rows to a file at `path`, and return the rows per table.

    Raise ArchiveError if the database fails or holds rows that could not be imported again, and
    TargetExistsError if `path` exists and `replace` is false.
    """
    tables = db.metadata.sorted_tables
    with _archive_errors(path), snapshot() as connection:
        if violation := find_violation(connection):
            raise ArchiveError(f"The database is inconsistent: {violation}.")
        counts: Counts = {}
        for table in tables:
            count = sa.select(sa.func.count()).select_from(table)
            counts[table.name] = connection.execute(count).scalar_one()
        header = {"format": FORMAT, "version": VERSION, "schema": head_revision(), "rows": counts}
        with (
            atomic_write(path, replace=replace) as draft,
            draft.open("wb") as file,
            gzip.GzipFile("", "wb", COMPRESSION_LEVEL, file, mtime=0) as archive,
            progress("Exporting", sum(counts.values())) as advance,
        ):
            archive.write(encode_line(header))
            for table in tables:
                for line in _export_table(connection, table):
                    archive.write(encode_line(line))
                    advance(1)
    return counts


def read(path: Path) -> Counts:
    """Import the archive at `path` into an empty database, and return the rows per table.

    Raise ArchiveError if the archive is invalid or the database fails or is not empty.
    """
    with _archive_errors(path), gzip.open(path) as file:
        lines = LineReader(path, file)
        counts = lines.read(MAX_HEADER_BYTES, _decode_header)
        with exclusive_transaction() as connection:
            for table in db.metadata.sorted_tables:
                if connection.execute(sa.select(sa.exists().select_from(table))).scalar_one():
                    raise ArchiveError(
                        f"The database is not empty: table {table.name} has rows. "
                        "Set POSTING_DATABASE_URL to a new database."
                    )
            with progress("Importing", sum(counts.values())) as advance:
                for name, count in counts.items():
                    table = db.metadata.tables[name]
                    for batch in _read_batches(lines, table, count):
                        _insert(connection, table, batch, lines)
                        advance(len(batch))
            lines.expect_end()
            if violation := find_violation(connection):
                raise ArchiveError(f"{path} is inconsistent: {violation}.")
    return counts


def describe(counts: Counts) -> str:
    """Return the number of rows per table in words, without empty tables."""
    parts = [f"{count:,} {table.replace('_', ' ')}" for table, count in counts.items() if count]
    return ", ".join(parts) or "no rows"


@contextmanager
def _archive_errors(path: Path) -> Iterator[None]:
    """Raise errors of the file and the database as ArchiveError."""
    try:
        yield
    except OSError as error:
        raise ArchiveError(f"{path}: {error.strerror or error}.") from None
    except sa.exc.SQLAlchemyError as error:
        fix = "Check that it is running, that its disk has space and that nothing else writes."
        passing = isinstance(error, sa.exc.OperationalError)  # others come from damaged data
        if isinstance(error, sa.exc.DatabaseError) and not passing:
            fix = "Run: flask doctor"
        raise ArchiveError(f"The database failed ({error_reason(error)}). {fix}") from None


def _export_table(connection: sa.Connection, table: sa.Table) -> Iterator[Row]:
    """Yield a line for each row, in an order that is the same on both engines."""
    collation = "BINARY" if connection.dialect.name == "sqlite" else "C"
    order: list[sa.ColumnElement[Any]] = [
        sa.collate(column, collation) if isinstance(column.type, sa.String) else column
        for column in table.primary_key
    ]
    if any(key.column.table is table for key in table.foreign_keys):
        order.insert(0, table.c.created_at)  # parents before their children
    fetch = {"yield_per": 1 if _has_bytes(table) else ROWS_PER_FETCH}
    rows = connection.execute(sa.select(table).order_by(*order), execution_options=fetch)
    codec = RowCodec(table)
    try:
        for row in rows.mappings():
            yield codec.encode(row)
    except (TypeError, ValueError) as error:  # SQLite stores values of any type in any column
        raise ArchiveError(f"A row of {table.name} cannot be exported: {error}.") from None


def _has_bytes(table: sa.Table) -> bool:
    return any(isinstance(column.type, sa.LargeBinary) for column in table.columns)


def _decode_header(header: Any) -> Counts:
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ValueError("not the header of a Posting archive")
    if header.get("version") != VERSION:
        raise ValueError(f"the format has version {header.get('version')!r} and not {VERSION}")
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
        raise ValueError("rows must give the number of rows of each table")
    return counts


def _read_batches(lines: LineReader, table: sa.Table, count: int) -> Iterator[list[Row]]:
    """Yield the next `count` rows, which must be of one table, in batches of limited size."""
    max_bytes = MAX_DATA_LINE_BYTES if _has_bytes(table) else MAX_LINE_BYTES
    decode = RowCodec(table).decode
    batch: list[Row] = []
    start = lines.file.tell()
    for _ in range(count):
        batch.append(lines.read(max_bytes, decode))
        if len(batch) == MAX_BATCH_ROWS or lines.file.tell() - start >= MAX_BATCH_BYTES:
            yield batch
            batch, start = [], lines.file.tell()
    if batch:
        yield batch


def _insert(
    connection: sa.Connection, table: sa.Table, batch: list[Row], lines: LineReader
) -> None:
    """Insert the rows read last. Raise ArchiveError with the line that breaks a constraint."""
    statement = sa.insert(table)
    # Not a `with` block, which would hide a full disk: SQLite then drops the savepoint as well.
    savepoint = connection.begin_nested()
    try:
        connection.execute(statement, batch)
    except REJECTIONS:
        savepoint.rollback()
        # Insert the rows one by one to find the line.
        for number, row in enumerate(batch, lines.number - len(batch) + 1):
            try:
                connection.execute(statement, row)
            except REJECTIONS as error:
                message = f"rejected by the database ({error_reason(error)})"
                raise lines.error(message, number) from None
        raise
    savepoint.commit()
