"""The lines of an archive: one JSON object each, compressed with gzip."""

import gzip
import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

T = TypeVar("T")


class ArchiveError(click.ClickException):
    """The archive cannot be written or read, and nothing has changed; the message says why."""


class LineReader:
    """Read an archive line by line; each error names its line."""

    def __init__(self, path: Path, file: gzip.GzipFile) -> None:
        self.path = path
        self.file = file
        self.number = 0

    def read(self, max_bytes: int, decode: Callable[[Any], T]) -> T:
        """Read the next line and return its decoded JSON.

        `decode` raises ValueError for invalid content, `read` raises ArchiveError.
        """
        self.number += 1
        try:
            line = self._decompress(self.file.readline, max_bytes + 1)
            if not line:
                raise ValueError("the file ends before this line")
            if len(line) > max_bytes:
                raise ValueError(f"longer than {max_bytes:,} bytes")
            return decode(_parse(line))
        except ValueError as error:
            raise self.error(str(error)) from None

    def expect_end(self) -> None:
        """Raise ArchiveError if lines are left, or if gzip's checksum is wrong."""
        self.number += 1
        if self._decompress(self.file.read, 1):
            raise self.error("the file should end here, as line 1 counts no more rows")

    def error(self, message: str, number: int | None = None) -> ArchiveError:
        """Return an error about the current line, or about an earlier one."""
        return ArchiveError(f"{self.path}, line {number or self.number}: {message}.")

    def _decompress(self, read: Callable[[int], bytes], size: int) -> bytes:
        try:
            return read(size)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise self.error(f"damaged, or not compressed with gzip ({error})") from None


def encode_line(value: Any) -> bytes:
    """Return a line of JSON in ASCII, so that no character in a string can end the line."""
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"


def _parse(line: bytes) -> Any:
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
