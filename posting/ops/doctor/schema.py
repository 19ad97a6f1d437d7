"""Check that the schema of the database is that of the models."""

import logging
import warnings
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy.schema import CreateIndex

from posting.db.base import db
from posting.ops.doctor.findings import Finding, failure
from posting.plurals import count

MAX_NAMED = 5
SEARCH_TRIGGER = "delete_from_search"  # deletes the entries of deleted comments on SQLite
MOVE = (
    "Run: flask export FILE. Then set POSTING_DATABASE_URL to a new database, and run: "
    "flask db upgrade; flask import FILE"
)


def find_differences(connection: sa.Connection) -> Finding | None:
    """Return a failure if the database lacks something of the models, or has it in another form.

    What an operator has added, such as an index, is not a difference. The tables are there.
    """
    indexes = {index.name: index for index in _wrong_indexes(connection)}
    others = [*_wrong_parts(connection), *_other_differences(connection)]
    found = [*(f"index {name}" for name in indexes), *others]
    if not found:
        return None
    named = ", ".join(found[:MAX_NAMED])
    message = f"{count(len(found), 'part')} of the schema: missing or wrong, such as {named}"
    if others:
        return failure(message, MOVE)
    statements = "; ".join(map(str, _repairs(connection, indexes.values())))
    return failure(message, f"Stop the service, and run in a shell of the database: {statements}")


def _repairs(connection: sa.Connection, indexes: Any) -> Iterator[str]:
    for index in indexes:
        yield f"DROP INDEX IF EXISTS {index.name}"
        yield _definition(connection, index)


def _definition(connection: sa.Connection, index: sa.Index) -> str:
    return str(CreateIndex(index).compile(dialect=connection.dialect)).strip()


def _wrong_indexes(connection: sa.Connection) -> Iterator[sa.Index]:
    """Yield the indexes that are missing, not valid, or not unique as they should be."""
    indexes = [index for table in db.metadata.sorted_tables for index in table.indexes]
    if connection.dialect.name == "postgresql":
        # An index that could not be created concurrently is there, but it is not used.
        valid = sa.text(
            "SELECT indexrelid::regclass::text AS name, indisunique FROM pg_index WHERE indisvalid"
        )
        unique = {row.name: row.indisunique for row in connection.execute(valid)}
        yield from (index for index in indexes if unique.get(index.name) != index.unique)
    else:
        # SQLAlchemy does not see an index of an expression on SQLite, which stores the statement.
        stored = sa.text("SELECT name, sql FROM sqlite_master WHERE type = 'index'")
        found = {row.name: row.sql for row in connection.execute(stored)}
        yield from (
            index for index in indexes if found.get(index.name) != _definition(connection, index)
        )


def _wrong_parts(connection: sa.Connection) -> Iterator[str]:
    """Yield what Alembic does not compare: primary keys, checks, and the trigger of the search."""
    inspector = sa.inspect(connection)
    for table in db.metadata.sorted_tables:
        key = inspector.get_pk_constraint(table.name)["constrained_columns"]
        if key != [column.name for column in table.primary_key]:
            yield f"primary key of {table.name}"
        found = {check["name"] for check in inspector.get_check_constraints(table.name)}
        for constraint in table.constraints:
            if isinstance(constraint, sa.CheckConstraint) and constraint.name not in found:
                yield f"constraint {constraint.name}"
    if connection.dialect.name == "sqlite":
        triggers = sa.text("SELECT name FROM sqlite_master WHERE type = 'trigger'")
        if SEARCH_TRIGGER not in connection.scalars(triggers).all():
            yield f"trigger {SEARCH_TRIGGER}"


def _other_differences(connection: sa.Connection) -> Iterator[str]:
    """Yield the columns, keys and constraints that differ, as Alembic compares them."""
    options = {"include_object": _is_compared, "compare_type": True}
    logging.getLogger("alembic.runtime.migration").setLevel(logging.WARNING)
    context = MigrationContext.configure(connection, opts=options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about indexes of expressions
        differences = compare_metadata(context, db.metadata)
    for difference in differences:
        # A change of a column is a list, since several of its properties can differ.
        for operation, *details in difference if isinstance(difference, list) else [difference]:
            if operation.startswith("modify_"):
                _schema, table, column, *_ = details
                yield f"column {table}.{column}"
            elif operation == "add_column":
                _schema, table, column = details
                yield f"column {table}.{column.name}"
            else:
                yield f"constraint {details[0].name}"


def _is_compared(thing: Any, _name: Any, kind: str, reflected: bool, model: Any) -> bool:
    """Return whether Alembic compares a thing: indexes are compared above, and additions ignored.

    A reflected thing without a counterpart in the models is an addition.
    """
    return kind != "index" and not (reflected and model is None)
