"""Marshmallow fields and validators."""

import re
from collections.abc import Callable, Iterable, Sized
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from flask import current_app
from marshmallow import ValidationError, fields, validate
from marshmallow.validate import Regexp

from posting.characters import has_visible, leaves_direction_open
from posting.db.types import ID_PATTERN
from posting.web.messages import MALFORMED_ID, REQUIRED, Message

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
NOT_A_TIMESTAMP = Message("malformed", f"Must be a timestamp such as {EXAMPLE_TIME}.")
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


class Words(Parameter):
    """One or more of the given words, separated by commas."""

    def __init__(self, *words: str, **kwargs: Any) -> None:
        self.words = words
        super().__init__(**kwargs)

    def _deserialize(self, value: Any, *args: Any, **kwargs: Any) -> Any:
        given = super()._deserialize(value, *args, **kwargs).split(",")
        if not set(given) <= set(self.words):
            raise ValidationError(OTHER_WORDS.format(", ".join(self.words)))
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
            raise ValidationError(HAS_NUL)
        if not text.isascii() and re.search("[\ud800-\udfff]", text):
            raise ValidationError(HAS_SURROGATES)
        return text


class Identifier(String):
    """A 21-character identifier."""

    def __init__(self, text: str | None = None, **kwargs: Any) -> None:
        super().__init__(
            validate=Regexp(ID_PATTERN.removesuffix("$") + r"\Z", error=MALFORMED_ID),
            pattern=ID_PATTERN,
            metadata=described(EXAMPLE_ID, text),
            **kwargs,
        )


class File(InputField, fields.Raw):
    """A file in a form."""

    def configured_limits(self) -> dict[str, Any]:
        most, text = current_app.config["MAX_IMAGE_BYTES"], self.metadata["description"]
        return {"description": f"{text} At most {most:,} bytes."}

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> bytes:
        if not isinstance(value, bytes):
            raise ValidationError(NOT_A_FILE)
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


class ExtensibleString(fields.String):
    """A word of responses. `known` returns all words, once all features are imported."""

    def __init__(self, known: Callable[[], Iterable[str]], example: str) -> None:
        super().__init__(required=True)
        self.known, self.example = known, example


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
