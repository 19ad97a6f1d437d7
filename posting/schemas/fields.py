"""Marshmallow fields and validators."""

import re
from collections.abc import Sized
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import distribution
from runpy import run_path
from typing import Any

from flask import current_app
from marshmallow import ValidationError, fields, validate
from marshmallow.validate import Regexp

from posting.db.types import ID_PATTERN
from posting.schemas.messages import MALFORMED_ID, REQUIRED, Message

EXAMPLE_ID = "V1StGXR8_Z5jdHi6B-myT"
EXAMPLE_TIME = "2026-11-21T09:30:00.125Z"
MAX_PASSWORD_LENGTH = 256
IMAGES_PER_POST = 10
# These match the same in Python and in JSON Schema (ECMA-262), whose \s differ in \x1c-\x1f, \x85
# and U+FEFF. U+2028 and U+2029 are not written, not even as escapes: client generators write such
# characters out, and these two end a line of JavaScript.
_VISIBLE = r"[^\x00\s\x1c-\x1f\x85\u180e\u200b-\u200f\u2060-\u2064\ufeff]"
_IN_LINE = (
    r"(?:[^\x00\s\x1c-\x1e\x85]"
    r"|[\t\x1f \xa0\u1680\u2000-\u200a\u202f\u205f\u3000\ufeff])"
)
NOT_BLANK_PATTERN = rf"^[^\x00]*{_VISIBLE}[^\x00]*$"
ONE_LINE_PATTERN = rf"^{_IN_LINE}*{_VISIBLE}{_IN_LINE}*$"
LINE_OR_EMPTY_PATTERN = rf"^(?:{_IN_LINE}*{_VISIBLE}{_IN_LINE}*)?$"
_is_rfc3339 = re.compile(
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", re.ASCII
).fullmatch
_has_visible = re.compile(_VISIBLE).search
_has_line_break = re.compile("[\n\v\f\r\x1c-\x1e\x85\u2028\u2029]").search  # as str.splitlines
# Escaped, since in HTML a pattern is a regular expression with the flag v.
USERNAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_\-]{2,31}$"
RESERVED_USERNAMES = frozenset(
    "admin administrator anonymous api deleted everyone guest help info me mod moderator nobody "
    "null operator posting root security staff support system undefined webmaster".split()
)


def described(example: Any, text: str | None = None) -> dict[str, Any]:
    """Return the documentation of a field for the OpenAPI document."""
    return {"examples": [example]} | ({"description": text} if text else {})


class Length(validate.Length):
    """A number of characters."""

    message_min = "Must have at least {min:,} characters."
    message_max = "Must have at most {max:,} characters."
    message_all = "Must have {min:,} to {max:,} characters."

    def _format_error(self, value: Sized, message: str) -> str:
        code = "too_short" if len(value) < (self.min or 0) else "too_long"
        return Message(code, super()._format_error(value, message))


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


class Parameter(InputField, fields.String):
    """Text in a query."""


class Words(Parameter):
    """Some of several words, separated by commas."""

    def __init__(self, *words: str, **kwargs: Any) -> None:
        self._words = words
        word = "|".join(words)
        kwargs["metadata"] = {"pattern": f"^({word})(,({word}))*$"} | kwargs.get("metadata", {})
        super().__init__(**kwargs)

    def _deserialize(self, value: Any, *args: Any, **kwargs: Any) -> Any:
        given = super()._deserialize(value, *args, **kwargs).split(",")
        if not set(given) <= set(self._words):
            text = f"Must be some of {', '.join(self._words)}, separated by commas."
            raise ValidationError(Message("not_a_choice", text))
        return frozenset(given)


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
            raise ValidationError(Message("unsupported_character", "Must not contain U+0000."))
        if not text.isascii() and re.search("[\ud800-\udfff]", text):
            message = "Must not contain lone surrogates."
            raise ValidationError(Message("unsupported_character", message))
        return text


class Identifier(String):
    """A 21-character identifier."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(
            validate=Regexp(ID_PATTERN.removesuffix("$") + r"\Z", error=MALFORMED_ID),
            pattern=ID_PATTERN,
            metadata=described(EXAMPLE_ID),
            **kwargs,
        )


class File(InputField, fields.Raw):
    """A file in a form."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> bytes:
        if not isinstance(value, bytes):
            raise ValidationError(Message("wrong_type", "Must be a file."))
        return value


class Digits(InputField, fields.Integer):
    """A whole number in ASCII digits; Python's `int` accepts 1_0 and digits of other scripts."""

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
        raise ValidationError(Message("malformed", f"Must be a timestamp such as {EXAMPLE_TIME}."))


class Timestamp(fields.AwareDateTime):
    """A timestamp in RFC 3339, in UTC with milliseconds."""

    def __init__(self, text: str | None = None, **kwargs: Any) -> None:
        super().__init__(metadata=described(EXAMPLE_TIME, text), **kwargs)


def not_blank(value: str) -> None:
    """Refuse text of white space and zero-width characters only; `Length` refuses empty text."""
    if value and not _has_visible(value):
        raise ValidationError(Message("blank", "Must not be blank."))


def one_line(value: str) -> None:
    if _has_line_break(value):
        raise ValidationError(Message("line_break", "Must not contain line breaks."))


def not_reserved(username: str) -> None:
    if username.lower() in RESERVED_USERNAMES:
        raise ValidationError(Message("reserved", "This name is reserved."))


@cache
def common_passwords() -> str:
    """Return zxcvbn's list of about 30,000 common passwords, lower case, each between two NULs.

    One string takes a twentieth of the memory of a set. Importing zxcvbn would load all its lists.
    """
    file = distribution("zxcvbn").locate_file("zxcvbn/frequency_lists.py")
    return "\0".join(["", *run_path(str(file))["FREQUENCY_LISTS"]["passwords"], ""])


def not_common(password: str) -> None:
    if f"\0{password.lower()}\0" in common_passwords():
        message = "This password is one of the most common ones."
        raise ValidationError(Message("common_password", message))


class NewPassword(String):
    """A new password, without composition rules (NIST SP 800-63B)."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(
            validate=[long_enough, Length(max=MAX_PASSWORD_LENGTH), not_common],
            metadata={"format": "password"} | described("a long walk by the sea"),
            **kwargs,
        )


def long_enough(password: str) -> None:
    least = current_app.config["PASSWORD_MIN"]
    if len(password) < least:
        raise ValidationError(Message("too_short", f"Must have at least {least} characters."))


def is_own_name(password: str, username: str) -> bool:
    return password.lower() == username.lower()
