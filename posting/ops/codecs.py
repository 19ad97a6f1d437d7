"""Values of columns in JSON: written without loss, and read so that both databases take them.

SQLite stores texts that are too long, and whole numbers where text belongs; Postgres does not. So
what is read here is checked for what no constraint of SQLite's checks, and what is written too, so
that it can be read.
"""

import base64
import itertools
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from posting.db.models import Identifier, User
from posting.db.types import ID_LENGTH, ID_PATTERN, UtcDateTime, to_rfc3339
from posting.schemas.fields import USERNAME_PATTERN


@dataclass(frozen=True)
class Form:
    """How values are written; `read` undoes it, or raises ValueError with the rule."""

    write: Callable[[Any], Any]
    read: Callable[[Any], Any]


def form_of(column: sa.Column[Any]) -> Form:
    """Return the form of a column's values; both ways, it takes only what can be read.

    Error: KeyError for a type that has no form yet.
    """
    form = _form_of(column)
    longest = getattr(column.type, "length", None)

    def write(value: Any) -> Any:
        written = None if value is None else form.write(value)
        read(written)
        return written

    def read(value: Any) -> Any:
        if value is None:
            if not column.nullable:
                raise ValueError("must not be null")
            return None
        found = form.read(value)
        if longest is not None and len(found) > longest:
            raise ValueError(f"must have at most {longest} characters")
        return found

    return Form(write, read)


def _form_of(column: sa.Column[Any]) -> Form:
    if column.type is Identifier:
        return IDENTIFIER
    return USERNAME if column is User.__table__.c.username else FORMS[type(column.type)]


def _same(value: Any) -> Any:
    return value


def _read_text(value: Any) -> str:
    if not isinstance(value, str) or re.search("[\0\ud800-\udfff]", value):
        raise ValueError("must be text, without U+0000 and lone surrogates")
    return value


def _read_identifier(value: Any) -> str:
    if not re.fullmatch(ID_PATTERN, _read_text(value)):
        raise ValueError(f"must be {ID_LENGTH} characters of A-Z, a-z, 0-9, '_' and '-'")
    return str(value)


def _read_username(value: Any) -> str:
    if not re.fullmatch(USERNAME_PATTERN, _read_text(value)):
        raise ValueError("must be a name to sign up with")
    return str(value)


def _read_whole_number(value: Any) -> int:
    if type(value) is not int or not -(2**31) <= value < 2**31:
        raise ValueError("must be a whole number of 32 bits")
    return value


def _read_moment(value: Any) -> datetime:
    rule = "must be a moment such as 2026-11-21T09:30:00.125Z"
    try:
        moment = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise ValueError(rule) from None
    if moment.tzinfo is not UTC or to_rfc3339(moment) != value:
        raise ValueError(rule)
    return moment


def _write_bytes(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _read_bytes(value: Any) -> bytes:
    try:
        return base64.b64decode(value, validate=True)
    except (TypeError, ValueError):
        raise ValueError("must be base64") from None


def _read_texts(value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        raise ValueError("must be an object of texts")
    for text in itertools.chain(*value.items()):
        _read_text(text)
    return value


TEXT = Form(_same, _read_text)
IDENTIFIER = Form(_same, _read_identifier)
USERNAME = Form(_same, _read_username)
FORMS = {
    sa.String: TEXT,
    sa.Text: TEXT,
    sa.Integer: Form(_same, _read_whole_number),
    sa.LargeBinary: Form(_write_bytes, _read_bytes),
    sa.JSON: Form(_same, _read_texts),
    UtcDateTime: Form(to_rfc3339, _read_moment),
}
