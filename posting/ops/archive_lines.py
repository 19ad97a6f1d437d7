"""The lines of an archive: an object of JSON each, packed by gzip."""

import gzip
import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click


class ArchiveError(click.ClickException):
    """An archive cannot be written or read, and nothing has changed; the message says why."""


class Lines:
    """The lines of an archive, one at a time; what is wrong with one is told with its number."""

    def __init__(self, path: Path, file: gzip.GzipFile) -> None:
        self.path = path
        self.file = file
        self.number = 0

    def next(self, longest: int, read: Callable[[Any], Any]) -> Any:
        """Return what `read` makes of the next line, of at most so many bytes.

        Errors: ArchiveError; `read` raises ValueError for what it does not take.
        """
        self.number += 1
        try:
            line = self._unpack(self.file.readline, longest + 1)
            if not line:
                raise ValueError("the file ends before it")
            if len(line) > longest:
                raise ValueError(f"longer than {longest:,} bytes")
            return read(_parse(line))
        except ValueError as error:
            raise self.error(str(error)) from None

    def ensure_end(self) -> None:
        """Make sure that all was read, and read right. Errors: ArchiveError."""
        self.number += 1
        if self._unpack(self.file.read, 1):
            raise self.error("more than line 1 counts")

    def error(self, what: str, number: int | None = None) -> ArchiveError:
        """Return what to raise for the last line, or for one before it."""
        return ArchiveError(f"{self.path}, line {number or self.number}: {what}.")

    def _unpack(self, read: Callable[[int], bytes], size: int) -> bytes:
        try:
            return read(size)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise self.error(f"damaged, or not packed by gzip ({error})") from None


def as_line(value: Any) -> bytes:
    """Return one line of JSON, in ASCII: no text has anything in it that may end a line."""
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"


def _parse(line: bytes) -> Any:
    try:
        return json.loads(line.decode(), object_pairs_hook=_object)
    except KeyError:
        raise ValueError("a key twice in one object") from None
    except (ValueError, RecursionError):
        raise ValueError("not JSON in UTF-8") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise KeyError(key)
        found[key] = value
    return found
