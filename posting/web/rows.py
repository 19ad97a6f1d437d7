"""Rows of the database as data of responses.

The output schema of a resource is the only list of its fields. `columns` selects them, and
`to_items` turns the rows into what a response sends.
"""

from collections.abc import Collection, Sequence
from functools import cache
from typing import Any

import sqlalchemy as sa
from marshmallow import fields
from sqlalchemy.orm import RelationshipProperty

from posting.db.base import Base
from posting.db.types import Rfc3339Text, UtcDateTime
from posting.web.schemas import Output

Item = dict[str, Any]


def select(
    schema: type[Output], model: type[Base], *, without: Collection[str] = ()
) -> sa.Select[*tuple[Any, ...]]:
    """Return a SELECT of the fields of a schema, with the rows of other models that it nests."""
    statement = sa.select(*columns(schema, model, without=without))
    for name, related in _nested(schema).items():
        _, *rest = nested_columns(name, related, _target(model, name))
        statement = statement.add_columns(*rest).outerjoin(getattr(model, name))
    return statement


def columns(
    schema: type[Output], model: type[Base], *, without: Collection[str] = ()
) -> list[sa.ColumnElement[Any]]:
    """Return the columns of a model that a schema has as fields, in its form and order.

    A nested field becomes the id of its row. Raise TypeError for a field without a column that is
    not one of `computed`.
    """
    found = []
    for name in schema._declared_fields:
        if name in without or name in schema.computed:
            continue
        attribute = getattr(model, name, None)
        if attribute is None:
            raise TypeError(f"{schema.__name__}.{name} is not a column of {model.__name__}")
        if name in _nested(schema):
            [attribute] = attribute.property.local_columns
        if isinstance(attribute.type, UtcDateTime):
            attribute = sa.type_coerce(attribute, Rfc3339Text())
        found.append(attribute.label(name))
    return found


def nested_columns(
    name: str, schema: type[Output], model: type[Base]
) -> list[sa.ColumnElement[Any]]:
    """Return the columns of a row that becomes the field `name` of another row."""
    id, *rest = columns(schema, model)
    return [id.label(name), *(column.label(f"{name}.{column.name}") for column in rest)]


def insert(schema: type[Output], model: type[Base]) -> sa.sql.dml.ReturningInsert[Any]:
    """Return an INSERT of a row that returns it as `columns` selects it."""
    table = Base.metadata.tables[model.__tablename__]
    return sa.insert(table).returning(*columns(schema, model))


def to_items(rows: Sequence[sa.Row[Any]]) -> list[Item]:
    """Return the rows of a SELECT that `select` or `columns` has made, as they are sent.

    A nested field is an object, or None if its row does not exist.
    """
    names = rows[0]._fields if rows else ()
    nested = _names_of_nested(names)
    items = []
    for row in rows:
        item = dict(zip(names, row, strict=True))  # much faster than `Row._asdict`
        for name, inner in nested.items():
            values = {key: item.pop(column) for column, key in inner}
            if item[name] is not None:
                item[name] = {"id": item[name]} | values
        items.append(item)
    return items


def to_item(row: sa.Row[Any]) -> Item:
    """Return one row as `to_items` does."""
    [item] = to_items([row])
    return item


def pick(schema: type[Output], row: sa.Row[Any]) -> Item:
    """Return the fields of a schema without nested schemas, from a row that has other columns."""
    return {name: getattr(row, name) for name in schema._declared_fields if hasattr(row, name)}


@cache
def _names_of_nested(names: tuple[str, ...]) -> dict[str, list[tuple[str, str]]]:
    """Return the columns of each nested object, with their keys in it."""
    nested: dict[str, list[tuple[str, str]]] = {}
    for name in names:
        outer, _, inner = name.partition(".")
        if inner:
            nested.setdefault(outer, []).append((name, inner))
    return nested


def _nested(schema: type[Output]) -> dict[str, type[Output]]:
    """Return the schemas that a schema nests, except those in lists."""
    return {
        name: field.nested
        for name, field in schema._declared_fields.items()
        if isinstance(field, fields.Nested) and isinstance(field.nested, type)
    }


def _target(model: type[Base], name: str) -> type[Base]:
    """Return the model to which a relationship leads."""
    relationship: RelationshipProperty[Base] = getattr(model, name).property
    return relationship.mapper.class_
