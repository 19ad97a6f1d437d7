"""Import an archive into an empty database."""

import gzip
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import sqlalchemy as sa
from click import ClickException

from posting.db.base import archived_tables, db
from posting.db.epoch import renew_epoch
from posting.db.errors import error_reason
from posting.db.migrations import upgrades
from posting.db.migrations.revisions import (
    first_revision,
    head_revision,
    how_to_convert,
    is_too_old,
    known_revisions,
)
from posting.db.transactions import lift_time_limits, lock_tables, transaction
from posting.indexes import INDEXES
from posting.ops.archive.checks import Checks
from posting.ops.archive.exporting import BATCH_ROWS, FORMAT, VERSION, Counts, has_bytes
from posting.ops.archive.lines import LineReader, Row, decode_row, parse
from posting.ops.content import delete_first_links, delete_own_rows, find_content
from posting.ops.files import command_errors, refuse_memory
from posting.ops.integrity import find_violation
from posting.progress import progress

FORMER_VERSION = (1, "0025")  # a version without checksums, and the only schema with it
MAX_HEADER_BYTES = 64 * 2**10
MAX_LINE_BYTES = 16 * 2**20
MAX_DATA_LINE_BYTES = 512 * 2**20  # settings allow images of 256 MiB, which are 342 MiB in base64
REJECTIONS = (sa.exc.IntegrityError, sa.exc.DataError)

Header = tuple[str, Counts, bool]  # see _decode_header


def import_from_path(path: Path) -> Counts:
    """Import the archive at `path` into an empty database, and return the rows per table.

    An archive of an earlier schema goes into tables of that schema, which are then upgraded.

    Raise ClickException if the archive is invalid or the database fails, is not empty or is in
    memory.
    """
    refuse_memory()
    with command_errors(f"{path} cannot be read"), gzip.open(path) as file:
        lines = LineReader(path, file)
        header: Header = lines.read(MAX_HEADER_BYTES, _decode_header)
        revision, counts, lines.have_checksums = header
        with _empty_tables(revision) as (connection, tables):
            if others := counts.keys() - tables.keys():
                raise lines.error(f"schema {revision} has no table {min(others)}")
            _require_order(list(counts), lines)
            checks = Checks(connection, tables, lines)
            with progress("Importing", sum(counts.values())) as advance:
                for name, count in counts.items():
                    for imported in _import_table(connection, tables[name], count, checks):
                        advance(imported)
            lines.expect_end()
            lines.raise_problems()
            if revision != head_revision():
                upgrades.upgrade(connection)
            delete_first_links(connection)
            renew_epoch(connection)
            rows = sum(index.count_rows(connection) for index in INDEXES)
            with progress("Indexing for search", rows) as advance:
                for index in INDEXES:
                    index.clear(connection)
                    for indexed in index.build(connection):
                        advance(indexed)
            if violation := find_violation(connection) or checks.find_excess():
                raise ClickException(f"{path} is inconsistent: {violation}.")
    return counts


@contextmanager
def _empty_tables(revision: str) -> Iterator[tuple[sa.Connection, Mapping[str, sa.Table]]]:
    """Yield a connection and the tables of a revision, in a transaction that keeps writers out.

    Raise ClickException if the database is not empty.
    """
    is_current = revision == head_revision()
    # Errors of foreign keys name the line, but `schema_change` turns them off on SQLite.
    with transaction() if is_current else upgrades.schema_change(db.engine) as connection:
        lift_time_limits(connection)
        lock_tables(connection)
        if name := find_content(connection):
            raise ClickException(
                f"The database is not empty: table {name} has rows. "
                "Set POSTING_DATABASE_URL to a new database."
            )
        delete_own_rows(connection)
        if is_current:
            yield connection, {table.name: table for table in archived_tables()}
        else:
            upgrades.downgrade(connection, revision)
            yield connection, _tables_of_schema(connection)


def _tables_of_schema(connection: sa.Connection) -> dict[str, sa.Table]:
    """Return the tables with the columns that the database has, of those in the models.

    Migrations only add to the schema, so an earlier schema has nothing else.
    """
    inspector = sa.inspect(connection)
    tables = {}
    for table in archived_tables():
        if inspector.has_table(table.name):
            found = {column["name"]: column for column in inspector.get_columns(table.name)}
            columns = [
                sa.Column(column.name, column.type, nullable=found[column.name]["nullable"])
                for column in table.columns
                if column.name in found
            ]
            tables[table.name] = sa.Table(table.name, sa.MetaData(), *columns)
    return tables


def _require_order(names: list[str], lines: LineReader) -> None:
    """Raise ClickException unless each table comes after the tables to which its rows refer."""
    for number, name in enumerate(names):
        for key in db.metadata.tables[name].foreign_keys:
            if (parent := key.column.table.name) in names[number + 1 :]:
                raise lines.error(f"table {name} must come after {parent}")


def _decode_header(line: bytes) -> Header:
    """Return the revision, the number of rows per table, and whether an export adds checksums."""
    header = parse(line)
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ValueError("not the header of a Posting archive")
    revision, counts = header.get("schema"), header.get("rows")
    if isinstance(revision, str) and is_too_old(revision):
        raise ValueError(
            f"schema {revision}, from before schema {first_revision()}. "
            f"{how_to_convert('flask import FILE').removesuffix('.')}"
        )
    version = header.get("version")
    if version != VERSION and (version, revision) != FORMER_VERSION:
        raise ValueError(f"the format has version {version!r} and not {VERSION}")
    if not isinstance(revision, str) or revision not in known_revisions():
        raise ValueError(
            f"schema {revision!r}, which this installation does not know; "
            f"its own is {head_revision()!r}. Import it with the release that exported it, or later"
        )
    if not isinstance(counts, dict) or not all(
        type(count) is int and 0 <= count < 2**63 for count in counts.values()
    ):
        raise ValueError("rows must give the number of rows of each table")
    return revision, counts, version == VERSION


def _import_table(
    connection: sa.Connection, table: sa.Table, count: int, checks: Checks
) -> Iterator[int]:
    """Insert the next `count` rows in batches, and yield the number of lines of each.

    Rows with problems are left out, so that the other lines are checked as well.
    Raise ClickException with the line that is not a row or breaks a constraint.
    """
    lines = checks.lines
    size, max_bytes = BATCH_ROWS, MAX_LINE_BYTES
    if has_bytes(table):
        size, max_bytes = 1, MAX_DATA_LINE_BYTES
    for start in range(0, count, size):
        batch: dict[int, Row] = {}  # by the number of the line
        others: dict[int, Row] = {}  # that no export has written
        for _ in range(start, min(start + size, count)):
            row, is_own = lines.read(max_bytes, partial(decode_row, table, lines.add_problem))
            is_own = is_own or not lines.have_checksums
            if row and (prepared := checks.prepare(table, row, is_own=is_own)):
                batch[lines.number] = prepared
                if not is_own:
                    others[lines.number] = prepared
        if batch:
            _insert(connection, table, batch, lines)
        checks.compare_with_posts(table, others)
        yield min(size, count - start)


def _insert(
    connection: sa.Connection, table: sa.Table, batch: Mapping[int, Row], lines: LineReader
) -> None:
    statement = sa.insert(table)
    # Not a `with` block, which would hide a full disk: SQLite then drops the savepoint as well.
    savepoint = connection.begin_nested()
    try:
        connection.execute(statement, list(batch.values()))
    except REJECTIONS:
        savepoint.rollback()
        if lines.problems:  # the rows may refer to one that was not inserted
            return
        # Insert the rows one by one to find the line.
        for number, row in batch.items():
            try:
                connection.execute(statement, row)
            except REJECTIONS as error:
                message = f"rejected by the database ({error_reason(error)})"
                raise lines.error(message, number) from None
        raise
    savepoint.commit()
