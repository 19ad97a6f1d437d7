"""The lines of an archive: one JSON object each, compressed with gzip.

An export ends each row with a checksum of its line. So an import can tell the rows that this
service has written from all others. A checksum is not a signature: it shows what was changed or
made elsewhere, but anyone can compute it.

SQLite stores strings longer than their column and integers in text columns; Postgres does not. So
both directions check what SQLite does not, and every exported row can be imported into either.
"""

import base64
import gzip
import hashlib
import json
import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa
from click import ClickException

from posting.accounts.fields import USERNAME_PATTERN
from posting.db.base import Identifier
from posting.db.types import ID_LENGTH, ID_PATTERN, UtcDateTime, to_rfc3339
from posting.plurals import count

DIGEST_SIZE = 16  # bytes
CHECKSUM = b',"checksum":"%b"}\n'
CHECKSUM_LENGTH = len(CHECKSUM % (b"x" * 2 * DIGEST_SIZE))
PIECE = 3 * 2**16  # bytes, so that the base64 of the pieces is that of the whole
MAX_PROBLEMS = 20  # that an error lists

Row = dict[str, Any]
Decoded = TypeVar("Decoded")


class LineReader:
    """Read an archive line by line; each error names its line.

    Lines after a problem are still read, so that all problems can be corrected together.
    """

    def __init__(self, path: Path, file: gzip.GzipFile) -> None:
        self.path = path
        self.file = file
        self.number = 0
        self.have_checksums = True
        self.problems: list[str] = []  # the first ones
        self.problem_count = 0

    def read(self, max_bytes: int, decode: Callable[[bytes], Decoded]) -> Decoded:
        """Read the next line and return what is decoded from it.

        `decode` raises ValueError for invalid content, `read` raises ClickException.
        """
        line = self._readline(max_bytes + 1)
        try:
            if not line:
                raise ValueError("the file ends before this line")
            if len(line) > max_bytes:
                raise ValueError(f"longer than {max_bytes:,} bytes")
            return decode(line)
        except ValueError as error:
            raise self.error(str(error)) from None

    def expect_end(self) -> None:
        """Raise ClickException if lines are left, or if gzip's checksum is wrong."""
        if self._readline(1):
            raise self.error("the file should end here, as line 1 counts no more rows")

    def error(self, message: str, number: int | None = None) -> ClickException:
        """Return an error about the current line, or about an earlier one."""
        return ClickException(f"{self.path}, line {number or self.number}: {message}.")

    def add_problem(self, message: str, number: int | None = None) -> None:
        """Add a problem of the current line, or of an earlier one."""
        self.problem_count += 1
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(self.error(message, number).message)

    def raise_problems(self) -> None:
        """Raise ClickException if there are problems."""
        shown = list(self.problems)
        if others := self.problem_count - len(shown):
            shown.append(f"And {count(others, 'more problem')}.")
        if shown:
            raise ClickException("\n".join(shown))

    def _readline(self, max_bytes: int) -> bytes:
        self.number += 1
        try:
            return self.file.readline(max_bytes)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise self.error(f"damaged, or not compressed with gzip ({error})") from None


def parse(line: bytes) -> Any:
    """Return the JSON of a line. Raise ValueError."""
    try:
        return json.loads(line.decode(), object_pairs_hook=_unique_keys)
    except KeyError:
        raise ValueError("a JSON object has a duplicate key") from None
    except (ValueError, RecursionError):
        raise ValueError("not JSON in UTF-8") from None


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise KeyError
    return found


def encode_line(value: Any) -> bytes:
    """Return a line of JSON in ASCII, so that no character in a string can end the line."""
    return _to_json(value) + b"\n"


def _to_json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def encode_with_checksum(line: Row) -> Iterator[bytes]:
    """Yield the parts of the line of a row, of which the last one has the checksum."""
    digest = hashlib.blake2b(digest_size=DIGEST_SIZE)
    for part in _encode_parts(line):
        digest.update(part)
        yield part
    yield CHECKSUM % digest.hexdigest().encode()


def _encode_parts(line: Row) -> Iterator[bytes]:
    """Yield the parts of the line of a row, without its end. Large files are encoded in pieces."""
    table, row = line["table"], line["row"]
    if not any(isinstance(value, bytes) for value in row.values()):
        yield _to_json(line)[:-1]
        return
    before = b'{"table":%b,"row":{' % _to_json(table)
    for name, value in row.items():
        yield before + _to_json(name) + b":"
        before = b","
        if isinstance(value, bytes):
            pieces = range(0, len(value), PIECE)
            yield b'"'
            yield from (base64.b64encode(value[start : start + PIECE]) for start in pieces)
            yield b'"'
        else:
            yield _to_json(value)
    yield b"}"


def has_checksum(line: bytes) -> bool:
    """Return whether a line ends with its checksum, so that it is as an export has written it."""
    parts = memoryview(line)  # the line of an image may have hundreds of megabytes
    return parts[-CHECKSUM_LENGTH:] == _checksum(parts[:-CHECKSUM_LENGTH])


def _checksum(start: bytes | memoryview) -> bytes:
    """Return the end of the line that begins with `start`."""
    digest = hashlib.blake2b(start, digest_size=DIGEST_SIZE).hexdigest()
    return CHECKSUM % digest.encode()


def encode_row(table: sa.Table, row: Mapping[Any, Any]) -> Row:
    """Return the content of the line of a row.

    Raise ValueError if it could not be imported again.
    """
    encoded = {}
    for column in table.columns:
        value = row[column.name]
        encode = ENCODERS.get(type(column.type))
        try:
            if encode and value is not None:
                value = encode(value)
            if value is None or not isinstance(column.type, sa.LargeBinary):
                _decode(column, value)  # bytes can always be imported
        except (TypeError, ValueError) as rule:
            key = ", ".join(str(row[each.name]) for each in table.primary_key)
            raise ValueError(f"{column.name} of {key!r} {rule}") from None
        encoded[column.name] = value
    return {"table": table.name, "row": encoded}


def decode_row(
    table: sa.Table, add_problem: Callable[[str], None], text: bytes
) -> tuple[Row | None, bool]:
    """Return the row of a line, and whether it is as an export has written it.

    Call `add_problem` for each invalid value, and return None for the row then. Raise ValueError if
    the line is not a row of the table.
    """
    line = parse(text)
    if not isinstance(line, dict) or line.keys() - {"checksum"} != {"table", "row"}:
        raise ValueError('not of the form {"table": …, "row": {…}}')
    if line["table"] != table.name:
        raise ValueError(f"not a row of {table.name}, although line 1 counts more of them")
    given, row, names = line["row"], {}, table.columns.keys()
    needed = {column.name for column in table.columns if not column.nullable}
    if not isinstance(given, dict) or not needed <= given.keys() <= set(names):
        raise ValueError(f"a row of {table.name} must have the columns {', '.join(names)}")
    for column in table.columns:
        try:
            row[column.name] = _decode(column, given.get(column.name))
        except ValueError as rule:
            add_problem(f"{table.name}.{column.name} {rule}")
    return row if len(row) == len(names) else None, has_checksum(text)


def _decode(column: sa.Column[Any], value: Any) -> Any:
    """Return a value as it is stored. Raise ValueError with the rule that it breaks."""
    if value is None:
        if not column.nullable:
            raise ValueError("must not be null")
        return None
    decoded = DECODERS[type(column.type)](value)
    if column.type is Identifier and not re.fullmatch(ID_PATTERN, decoded):
        raise ValueError(f"must be {ID_LENGTH} characters of A-Z, a-z, 0-9, '_' and '-'")
    if (column.table.name, column.name) == ("users", "username") and not re.fullmatch(
        USERNAME_PATTERN, decoded
    ):
        raise ValueError("must be a valid username")
    max_length = column.type.length if isinstance(column.type, sa.String) else None
    if max_length is not None and len(decoded) > max_length:
        raise ValueError(f"must have at most {max_length} characters")
    return decoded


def _decode_text(value: Any) -> str:
    if not isinstance(value, str) or re.search("[\0\ud800-\udfff]", value):
        raise ValueError("must be a string without U+0000 and lone surrogates")
    return value


def _decode_integer(value: Any) -> int:
    if type(value) is not int or not -(2**31) <= value < 2**31:
        raise ValueError("must be a 32-bit integer")
    return value


def _decode_timestamp(value: Any) -> datetime:
    with suppress(TypeError, ValueError):
        timestamp = datetime.fromisoformat(value)
        if timestamp.tzinfo is UTC and to_rfc3339(timestamp) == value:
            return timestamp
    raise ValueError("must be a timestamp such as 2026-11-21T09:30:00.125Z")


def _decode_boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("must be true or false")
    return value


def _decode_bytes(value: Any) -> bytes:
    try:
        return base64.b64decode(value, validate=True)
    except (TypeError, ValueError):
        raise ValueError("must be base64") from None


def _decode_strings(value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        raise ValueError("must be an object of strings")
    for text in [*value, *value.values()]:
        _decode_text(text)
    return value


DECODERS: dict[Any, Callable[[Any], Any]] = {
    sa.String: _decode_text,
    sa.Text: _decode_text,
    sa.Integer: _decode_integer,
    sa.Boolean: _decode_boolean,
    sa.LargeBinary: _decode_bytes,
    sa.JSON: _decode_strings,
    UtcDateTime: _decode_timestamp,
}
ENCODERS: dict[Any, Callable[[Any], Any]] = {  # other values are the same in a line
    sa.LargeBinary: bytes,
    UtcDateTime: to_rfc3339,
}
