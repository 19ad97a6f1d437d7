"""Schemas: fields and validators of input, base classes, and the rows that output schemas select.

The output schema of a resource is the only list of its fields. `columns` selects them, and
`to_items` turns the rows into what a response sends.
"""

import re
from collections.abc import Collection, Iterable, Sequence, Sized
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from typing import Any

import sqlalchemy as sa
from flask import current_app
from marshmallow import EXCLUDE, RAISE, Schema, ValidationError, fields, validate
from sqlalchemy.orm import RelationshipProperty

from posting.characters import has_visible, leaves_direction_open
from posting.db.base import Base
from posting.db.types import ID_PATTERN, Rfc3339Text, UtcDateTime
from posting.web.errors import MALFORMED_ID, REPEATED, REQUIRED, UNKNOWN, Message
from posting.web.request_body import Upload

EXAMPLE_ID = "V1StGXR8_Z5jdHi6B-myT"
EXAMPLE_TOKEN = "posting_3cqSJzQ3uvEdY5oAjSkK_Jri0qmfyaLOFT6n3zC6zxs"  # noqa: S105 - of no one
EXAMPLE_TIME = "2026-11-21T09:30:00.125Z"
BLANK = Message("blank", "Must not be blank.")
HAS_LINE_BREAK = Message("line_break", "Must not contain line breaks.")
OPEN_DIRECTION = Message(
    "open_direction", "Must close each character that changes the direction, such as U+202E."
)
HAS_NUL = Message("unsupported_character", "Must not contain U+0000.")
HAS_SURROGATES = Message("unsupported_character", "Must not contain lone surrogates.")
NOT_A_FILE = Message("wrong_type", "Must be a file.")
NOT_A_BOOLEAN = Message("wrong_type", "Must be true or false.")
NOT_A_TIMESTAMP = Message("malformed", f"Must be a timestamp such as {EXAMPLE_TIME}.")
NOT_IDENTIFIERS = Message("malformed", "Must be identifiers, separated by commas.")
OTHER_WORDS = Message("not_a_choice", "Must be some of {}, separated by commas.")
# These match the same texts in Python and in JSON Schema (ECMA-262), where \s differs in \x1c-\x1f,
# \x85 and U+FEFF. U+2028 and U+2029 are missing even as escapes: generators of clients write them
# out, and in JavaScript they end a line. Validators refuse more invisible characters than patterns
# can list: see `posting.characters`.
_VISIBLE = (
    r"[^\s\x00-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    r"\u202a-\u202e\u2060-\u206f\u2800\u3164\ue000-\uf8ff\ufe00-\ufe0f\ufeff\uffa0"
    r"\ufff0-\ufffc\ufffe\uffff]"
)
_IN_LINE = (
    r"(?:[^\x00\s\x1c-\x1e\x85]"
    r"|[\t\x1f \xa0\u1680\u2000-\u200a\u202f\u205f\u3000\ufeff])"
)
NOT_BLANK_PATTERN = rf"^[^\x00]*{_VISIBLE}[^\x00]*$"
ONE_LINE_PATTERN = rf"^{_IN_LINE}*{_VISIBLE}{_IN_LINE}*$"
VISIBLE_OR_EMPTY_PATTERN = rf"^(?:[^\x00]*{_VISIBLE}[^\x00]*)?$"
LINE_OR_EMPTY_PATTERN = rf"^(?:{_IN_LINE}*{_VISIBLE}{_IN_LINE}*)?$"
_is_rfc3339 = re.compile(
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", re.ASCII
).fullmatch
_has_line_break = re.compile("[\n\v\f\r\x1c-\x1e\x85\u2028\u2029]").search  # as str.splitlines


def described(example: Any, text: str | None = None) -> dict[str, Any]:
    """Return the documentation of a field for the OpenAPI document."""
    return {"examples": [example]} | ({"description": text} if text else {})


def extensible(values: Iterable[str], example: str, text: str = "") -> dict[str, Any]:
    """Return the documentation of a field of responses to which later versions may add values.

    Clients that are generated from an `enum` would refuse a response with a new value.
    """
    listed = [*values]
    known = f"One of {', '.join(f'`{value}`' for value in listed)}. Later versions may add others."
    return described(example, f"{text} {known}".strip()) | {"x-extensible-enum": listed}


class Length(validate.Length):
    """A number of characters."""

    message_min: Message = Message("too_short", "Must have at least {min:,} characters.")
    message_max: Message = Message("too_long", "Must have at most {max:,} characters.")
    message_all = "Must have {min:,} to {max:,} characters."

    def _format_error(self, value: Sized, message: str) -> str:
        broken = self.message_min if len(value) < (self.min or 0) else self.message_max
        return Message(broken.code, super()._format_error(value, message))


class Items(Length):
    """A number of items in a list."""

    message_min: Message = Message("too_short", "Must have an item.")
    message_max: Message = Message("too_many", "Must have at most {max:,} items.")


class Range(validate.Range):
    """A range of numbers."""

    message_all = Message("out_of_range", validate.Range.message_all)


class OneOf(validate.OneOf):
    """A choice of values."""

    default_message = Message("not_a_choice", validate.OneOf.default_message)


class InputField(fields.Field[Any]):
    """A field of an input, whose errors have codes."""

    default_error_messages = {  # noqa: RUF012 - as marshmallow types it
        "required": REQUIRED,
        "null": Message("null", "Field may not be null."),
    }

    def configured_limits(self) -> dict[str, Any]:
        """Return the part of the field's JSON Schema that depends on settings."""
        return {}


class Parameter(InputField, fields.String):
    """Text in a query."""


class Listed(Parameter):
    """Texts in a query, separated by commas. Each of them is an item of the `array`."""

    array: dict[str, Any]  # the JSON Schema

    def _deserialize(self, value: Any, *args: Any, **kwargs: Any) -> Any:
        return super()._deserialize(value, *args, **kwargs).split(",")


class Words(Listed):
    """One or more of the given words, separated by commas."""

    def __init__(self, *words: str, **kwargs: Any) -> None:
        self.words = words
        self.array = {"items": {"type": "string", "enum": [*words]}, "minItems": 1}
        super().__init__(**kwargs)

    def _deserialize(self, value: Any, *args: Any, **kwargs: Any) -> Any:
        given = super()._deserialize(value, *args, **kwargs)
        if not set(given) <= set(self.words):
            raise ValidationError(OTHER_WORDS.format(", ".join(self.words)))
        return frozenset(given)


class ListedIdentifiers(Listed):
    """One or more identifiers, separated by commas."""

    def __init__(self, text: str, *, most: int) -> None:
        items = {"type": "string", "pattern": ID_PATTERN}
        self.array = {"items": items, "minItems": 1, "maxItems": most}
        super().__init__(
            required=True, validate=Items(max=most), metadata=described([EXAMPLE_ID], text)
        )

    def _deserialize(self, value: Any, *args: Any, **kwargs: Any) -> Any:
        given = super()._deserialize(value, *args, **kwargs)
        if not all(re.fullmatch(ID_PATTERN, each, re.ASCII) for each in given):
            raise ValidationError(NOT_IDENTIFIERS)
        return list(dict.fromkeys(given))


class String(InputField, fields.String):
    """Text that both databases can store: without U+0000 and lone surrogates.

    `pattern` documents a stricter rule, which validators check.
    """

    default_error_messages = {"invalid": Message("wrong_type", "Not a valid string.")}  # noqa: RUF012 - as marshmallow types it

    def __init__(self, *, pattern: str = r"^[^\x00]*$", **kwargs: Any) -> None:
        kwargs["metadata"] = {"pattern": pattern} | kwargs.get("metadata", {})
        super().__init__(**kwargs)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        if not isinstance(value, str):
            raise self.make_error("invalid")
        text = str(super()._deserialize(value, attr, data, **kwargs))
        if "\x00" in text:
            raise ValidationError(HAS_NUL)
        if not text.isascii() and re.search("[\ud800-\udfff]", text):
            raise ValidationError(HAS_SURROGATES)
        return text


class Identifier(String):
    """A 21-character identifier."""

    def __init__(self, text: str | None = None, **kwargs: Any) -> None:
        super().__init__(
            validate=validate.Regexp(ID_PATTERN.removesuffix("$") + r"\Z", error=MALFORMED_ID),
            pattern=ID_PATTERN,
            metadata=described(EXAMPLE_ID, text),
            **kwargs,
        )


class Identifiers(InputField, fields.List[str]):
    """A list of identifiers, none of them twice."""

    default_error_messages = {"invalid": Message("wrong_type", "Not a valid list.")}  # noqa: RUF012 - as marshmallow types it

    def __init__(self, text: str, *, most: int) -> None:
        metadata = described([EXAMPLE_ID], text) | {"uniqueItems": True}
        super().__init__(Identifier(), validate=[Items(max=most), not_twice], metadata=metadata)


class File(InputField, fields.Raw):
    """A file in a form, of at most so many bytes as a setting says."""

    def __init__(self, setting: str, **kwargs: Any) -> None:
        super().__init__(required=True, **kwargs)
        self.setting = setting

    @property
    def max_bytes(self) -> int:
        return int(current_app.config[self.setting])

    def configured_limits(self) -> dict[str, Any]:
        text = self.metadata["description"]
        return {"description": f"{text} At most {self.max_bytes:,} bytes."}

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Any:
        if not isinstance(value, Upload):
            raise ValidationError(NOT_A_FILE)
        return value.data


class NamedFile(File):
    """A file in a form whose name counts."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Any:
        super()._deserialize(value, attr, data, **kwargs)
        return value


def max_file_bytes(form: Schema) -> int:
    """Return the maximum number of bytes of the file in a form."""
    [file] = [field for field in form.fields.values() if isinstance(field, File)]
    return file.max_bytes


class Boolean(InputField, fields.Boolean):
    """`true` or `false`. Marshmallow would also accept texts such as "yes"."""

    def _deserialize(self, value: Any, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(value, bool):
            raise ValidationError(NOT_A_BOOLEAN)
        return value


class Integer(InputField, fields.Integer):
    """A whole number in a JSON body. In JSON Schema, 1.0 is one too."""

    default_error_messages = {  # noqa: RUF012 - as marshmallow types it
        "invalid": Message("wrong_type", "Not a valid integer."),
        "too_large": Message("out_of_range", "Number too large."),
    }

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(strict=True, **kwargs)

    def _validated(self, value: Any) -> int:
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool):
            raise self.make_error("invalid", input=value)
        return int(super()._validated(value))


class Digits(InputField, fields.Integer):
    """A whole number in ASCII digits. Python's `int` also takes 1_0 and digits of other scripts."""

    default_error_messages = {"invalid": Message("wrong_type", "Not a valid integer.")}  # noqa: RUF012 - as marshmallow types it

    def _validated(self, value: Any) -> int:
        if not (isinstance(value, str) and value.isascii() and value.isdigit()):
            raise self.make_error("invalid", input=value)
        return int(super()._validated(value))


class TimestampInput(InputField, fields.AwareDateTime):
    """A timestamp in RFC 3339, with its offset from UTC."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> datetime:
        if isinstance(value, str) and _is_rfc3339(value):
            with suppress(ValueError, OverflowError):  # no such date, or not in the years 1 to 9999
                return datetime.fromisoformat(value).astimezone(UTC)
        raise ValidationError(NOT_A_TIMESTAMP)


class Timestamp(fields.AwareDateTime):
    """A timestamp in RFC 3339, in UTC with milliseconds."""

    def __init__(self, text: str | None = None, **kwargs: Any) -> None:
        super().__init__(metadata=described(EXAMPLE_TIME, text), **kwargs)


def not_twice(ids: Sequence[str]) -> None:
    if len(set(ids)) < len(ids):
        raise ValidationError(REPEATED)


def not_blank(value: str) -> None:
    """Refuse text without a visible character; `Length` refuses empty text."""
    if value and not has_visible(value):
        raise ValidationError(BLANK)


def one_line(value: str) -> None:
    if _has_line_break(value):
        raise ValidationError(HAS_LINE_BREAK)


def keeps_direction(value: str) -> None:
    """Refuse text that could turn around what follows it in a line of an app or a feed."""
    if leaves_direction_open(value):
        raise ValidationError(OPEN_DIRECTION)


class Input(Schema):
    """A body or query, in which an unknown name is an error."""

    class Meta:
        unknown = RAISE

    error_messages = {  # noqa: RUF012 - as marshmallow types it
        "type": Message("wrong_type", "Invalid input type."),
        "unknown": UNKNOWN,
    }


class Output(Schema):
    """A response. Every field is always present, except those in `optional`.

    A schema documents a response, and tests check responses against it. It is not run for each
    response: `select` and `insert` return data as it is sent, because dumping a row
    would take longer than reading it.
    """

    class Meta:
        unknown = EXCLUDE  # later versions may add fields

    optional: tuple[str, ...] = ()  # fields that not every response has
    computed: tuple[str, ...] = ()  # fields that are not columns of the model

    def on_bind_field(self, field_name: str, field_obj: fields.Field[object]) -> None:
        field_obj.required = field_name not in self.optional


MAX_PAGE_SIZE = 100


def page_size(default: int) -> Digits:
    """Return the field of the number of items on a page."""
    return Digits(
        load_default=default,
        validate=Range(1, MAX_PAGE_SIZE),
        metadata=described(default, "The number of items on a page."),
    )


class PageQuery(Input):
    """A page of a list."""

    limit = page_size(20)
    cursor = Parameter(
        validate=Length(max=512),
        metadata={"description": "Where the page begins, from the Link header of the page before."},
    )


Item = dict[str, Any]


def select(
    schema: type[Output], model: type[Base], *, without: Collection[str] = ()
) -> sa.Select[*tuple[Any, ...]]:
    """Return a SELECT of the fields of a schema, with the rows of other models that it nests."""
    statement = sa.select(*columns(schema, model, without=without))
    for name, related in _nested(schema).items():
        if _is_part(related):
            continue
        _, *rest = nested_columns(name, related, _target(model, name))
        statement = statement.add_columns(*rest).outerjoin(getattr(model, name))
    return statement


def columns(
    schema: type[Output], model: type[Base], *, without: Collection[str] = ()
) -> list[sa.ColumnElement[Any]]:
    """Return the columns of a model that a schema has as fields, in its form and order.

    A nested field becomes the id of its row, or all of its columns if it is a part of this row.
    Raise TypeError for a field without a column that is not one of `computed`.
    """
    found: list[sa.ColumnElement[Any]] = []
    for name in schema._declared_fields:
        if name in without or name in schema.computed:
            continue
        nested = _nested(schema).get(name)
        if nested and _is_part(nested):
            found += [part.label(f"{name}.{part.name}") for part in columns(nested, model)]
            continue
        attribute = getattr(model, name, None)
        if attribute is None:
            raise TypeError(f"{schema.__name__}.{name} is not a column of {model.__name__}")
        if nested:
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
    """Return an INSERT of a row that returns it as `columns` selects it.

    It is an INSERT into the table, since one of the model would build an object of the ORM.
    """
    table = Base.metadata.tables[model.__tablename__]
    return sa.insert(table).returning(*columns(schema, model))


def to_items(rows: Sequence[sa.Row[Any]]) -> list[Item]:
    """Return the rows of a SELECT that `select` or `columns` has made, as they are sent.

    A nested field is an object, or None if it is a row of another table that does not exist.
    """
    names = rows[0]._fields if rows else ()
    nested = _names_of_nested(names)
    items = []
    for row in rows:
        item = dict(zip(names, row, strict=True))  # much faster than `Row._asdict`
        for name, inner in nested.items():
            values = {key: item.pop(column) for column, key in inner}
            if name not in item:
                item[name] = values
            elif item[name] is not None:
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


def _is_part(schema: type[Output]) -> bool:
    """Return whether a nested schema is a part of the row itself, which has no id of its own."""
    return "id" not in schema._declared_fields


def _target(model: type[Base], name: str) -> type[Base]:
    """Return the model to which a relationship leads."""
    relationship: RelationshipProperty[Base] = getattr(model, name).property
    return relationship.mapper.class_
