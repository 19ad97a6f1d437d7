"""Convert rows to JSON without loss, and back.

SQLite stores strings longer than their column and integers in text columns; Postgres does not. So
both directions check what SQLite does not, and every exported row can be imported into either.
"""

import base64
import itertools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from posting.db.models import Identifier, User
from posting.db.types import ID_LENGTH, ID_PATTERN, UtcDateTime, to_rfc3339
from posting.schemas.fields import USERNAME_PATTERN

Row = dict[str, Any]


@dataclass(frozen=True)
class Codec:
    """Convert one value to JSON and back; `decode` raises ValueError for an invalid value."""

    decode: Callable[[Any], Any]
    encode: Callable[[Any], Any] = lambda value: value  # most values are the same in JSON


class RowCodec:
    """Convert rows of a table to lines of an archive and back."""

    def __init__(self, table: sa.Table) -> None:
        self.table = table
        self.codecs = {column.name: codec_for(column) for column in table.columns}

    def encode(self, row: Mapping[Any, Any]) -> Row:
        """Return the line for a row. Raise ValueError if it could not be imported again."""
        encoded = {}
        for name, codec in self.codecs.items():
            try:
                encoded[name] = codec.encode(row[name])
            except (TypeError, ValueError) as rule:
                key = ", ".join(str(row[column.name]) for column in self.table.primary_key)
                raise ValueError(f"{name} of {key!r} {rule}") from None
        return {"table": self.table.name, "row": encoded}

    def decode(self, line: Any) -> Row:
        """Return the row of a line. Raise ValueError if the line is invalid."""
        name = self.table.name
        if not isinstance(line, dict) or line.keys() != {"table", "row"}:
            raise ValueError('not of the form {"table": …, "row": {…}}')
        if line["table"] != name:
            raise ValueError(f"not a row of {name}, although line 1 counts more of them")
        row = line["row"]
        if not isinstance(row, dict) or row.keys() != self.codecs.keys():
            raise ValueError(f"a row of {name} must have the columns {', '.join(self.codecs)}")
        for column, codec in self.codecs.items():
            try:
                row[column] = codec.decode(row[column])
            except ValueError as rule:
                raise ValueError(f"{name}.{column} {rule}") from None
        return row


def codec_for(column: sa.Column[Any]) -> Codec:
    """Return the codec for a column's type, nullability and length.

    Raise KeyError if no codec exists for its type.
    """
    if column.type is Identifier:
        codec = IDENTIFIER
    elif column is User.__table__.c.username:
        codec = USERNAME
    else:
        codec = CODECS[type(column.type)]
    max_length = getattr(column.type, "length", None)

    def encode(value: Any) -> Any:
        encoded = None if value is None else codec.encode(value)
        decode(encoded)
        return encoded

    def decode(value: Any) -> Any:
        if value is None:
            if not column.nullable:
                raise ValueError("must not be null")
            return None
        decoded = codec.decode(value)
        if max_length is not None and len(decoded) > max_length:
            raise ValueError(f"must have at most {max_length} characters")
        return decoded

    return Codec(decode, encode)


def _decode_text(value: Any) -> str:
    if not isinstance(value, str) or re.search("[\0\ud800-\udfff]", value):
        raise ValueError("must be a string without U+0000 and lone surrogates")
    return value


def _decode_matching(pattern: str, rule: str) -> Callable[[Any], str]:
    def decode(value: Any) -> str:
        if not re.fullmatch(pattern, text := _decode_text(value)):
            raise ValueError(rule)
        return text

    return decode


def _decode_integer(value: Any) -> int:
    if type(value) is not int or not -(2**31) <= value < 2**31:
        raise ValueError("must be a 32-bit integer")
    return value


def _decode_timestamp(value: Any) -> datetime:
    rule = "must be a timestamp such as 2026-11-21T09:30:00.125Z"
    try:
        timestamp = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise ValueError(rule) from None
    if timestamp.tzinfo is not UTC or to_rfc3339(timestamp) != value:
        raise ValueError(rule)
    return timestamp


def _decode_bytes(value: Any) -> bytes:
    try:
        return base64.b64decode(value, validate=True)
    except (TypeError, ValueError):
        raise ValueError("must be base64") from None


def _decode_strings(value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        raise ValueError("must be an object of strings")
    for text in itertools.chain(*value.items()):
        _decode_text(text)
    return value


ID_RULE = f"must be {ID_LENGTH} characters of A-Z, a-z, 0-9, '_' and '-'"
IDENTIFIER = Codec(_decode_matching(ID_PATTERN, ID_RULE))
USERNAME = Codec(_decode_matching(USERNAME_PATTERN, "must be a valid username"))
CODECS = {
    sa.String: Codec(_decode_text),
    sa.Text: Codec(_decode_text),
    sa.Integer: Codec(_decode_integer),
    sa.LargeBinary: Codec(_decode_bytes, lambda data: base64.b64encode(data).decode()),
    sa.JSON: Codec(_decode_strings),
    UtcDateTime: Codec(_decode_timestamp, to_rfc3339),
}
