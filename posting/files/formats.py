"""The formats of files, by the extensions of their names, and how a file of each begins.

Sources: ISO 32000 (PDF), the ZIP specification of PKWARE, which also holds for Office Open XML and
OpenDocument, [MS-CFB] (older Office), RFC 5545 (iCalendar), GPX 1.1, ID3 and ISO 11172-3 (MP3), and
RFC 3533 (Ogg). The media types are those that IANA has registered; GPX has none.
"""

import re
import unicodedata
from collections.abc import Callable
from typing import NamedTuple

from posting.characters import has_visible

MAX_NAME = 100  # characters of a name, with its extension
MAX_LENGTH = 500  # of what a client sends, since Unicode can make a long text slow to normalize
BEGINNING = 4096  # bytes of a text that are looked at
_BYTE_ORDER_MARKS = (b"\xff\xfe", b"\xfe\xff")  # of UTF-16
_JOINERS = "\u200c\u200d"  # which words of some scripts need
_is_mp3 = re.compile(rb"ID3|\xff[\xe2\xe3\xf2\xf3\xfa\xfb]").match  # a tag, or a frame of layer III
_is_control = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]").search
_is_calendar = re.compile(rb"(\xef\xbb\xbf)?BEGIN:VCALENDAR\s", re.IGNORECASE).match
_is_track = re.compile(  # after a declaration and comments
    rb"(\xef\xbb\xbf)?\s*(<\?xml[^>]*>\s*)?(<!--((?!-->).)*-->\s*)*<(\w+:)?gpx[\s>]",
    re.DOTALL | re.IGNORECASE,
).match


class Format(NamedTuple):
    """A format of files: its media type, and whether bytes are the beginning of such a file."""

    media_type: str
    matches: Callable[[bytes], object]


def _begins(*marks: bytes) -> Callable[[bytes], bool]:
    return lambda data: data.startswith(marks)


def _is_text(data: bytes) -> bool:
    """Return whether a beginning looks like text, in whatever encoding."""
    return data.startswith(_BYTE_ORDER_MARKS) or not _is_control(data)


_is_zip = _begins(b"PK\x03\x04", b"PK\x05\x06")  # with entries, or without any
_is_compound = _begins(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1")
_OFFICE = "application/vnd.openxmlformats-officedocument"
_OPEN = "application/vnd.oasis.opendocument"

FORMATS = {
    "pdf": Format("application/pdf", _begins(b"%PDF-")),
    "txt": Format("text/plain", _is_text),
    "csv": Format("text/csv", _is_text),
    "docx": Format(f"{_OFFICE}.wordprocessingml.document", _is_zip),
    "xlsx": Format(f"{_OFFICE}.spreadsheetml.sheet", _is_zip),
    "pptx": Format(f"{_OFFICE}.presentationml.presentation", _is_zip),
    "doc": Format("application/msword", _is_compound),
    "xls": Format("application/vnd.ms-excel", _is_compound),
    "ppt": Format("application/vnd.ms-powerpoint", _is_compound),
    "odt": Format(f"{_OPEN}.text", _is_zip),
    "ods": Format(f"{_OPEN}.spreadsheet", _is_zip),
    "odp": Format(f"{_OPEN}.presentation", _is_zip),
    "zip": Format("application/zip", _is_zip),
    "gpx": Format("application/gpx+xml", _is_track),
    "ics": Format("text/calendar", _is_calendar),
    "mp3": Format("audio/mpeg", _is_mp3),
    "ogg": Format("audio/ogg", _begins(b"OggS")),
}


class FileError(Exception):
    """A file cannot be taken; the message says why."""


def clean_name(path: str) -> str:
    """Return the name of a file without folders, invisible characters and what is too long."""
    name = re.sub(r"\s", " ", re.split(r"[/\\]", path)[-1][-MAX_LENGTH:])
    visible = [each for each in name if each in _JOINERS or unicodedata.category(each)[0] != "C"]
    name = " ".join(unicodedata.normalize("NFC", "".join(visible)).split())
    stem, dot, extension = name.lstrip(". ").rpartition(".")
    return stem[: max(0, MAX_NAME - len(dot + extension))].rstrip() + dot + extension


def check_file(name: str, data: bytes) -> None:
    """Raise FileError unless the name has a known extension, and the file begins as it says."""
    if not data:
        raise FileError("The file is empty.")
    stem, _, extension = name.rpartition(".")
    format = FORMATS.get(extension.lower())
    if format is None or not has_visible(stem):
        known = ", ".join(f".{each}" for each in FORMATS)
        raise FileError(f"The name must end with the extension of a file that is taken: {known}.")
    if not format.matches(data[:BEGINNING]):
        raise FileError(f"The file does not begin like a .{extension.lower()} file.")


def media_type_of(name: str) -> str:
    """Return the media type that the extension of a name stands for.

    A later version may have stored a file of a format that this one does not know.
    """
    format = FORMATS.get(name.rpartition(".")[2].lower())
    return format.media_type if format else "application/octet-stream"
