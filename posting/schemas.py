"""What comes in and what goes out, as marshmallow schemas. They know nothing of the database."""

import re
from collections.abc import Callable
from datetime import datetime
from functools import cache, cached_property, partial
from importlib.metadata import distribution
from runpy import run_path
from typing import Any

from flask import current_app
from flask_smorest.fields import Upload
from marshmallow import RAISE, Schema, ValidationError, fields, validates_schema
from marshmallow.validate import Length, OneOf, Range, Regexp

from posting.database import ID_PATTERN, ID_RULE
from posting.moments import written

EXAMPLE_ID = "V1StGXR8_Z5jdHi6B-myT"
EXAMPLE_TIME = "2026-11-21T09:30:00.125Z"
PASSWORD_MOST = 256
_LINE = r"[^\u0000\n\r\v\f\x1c-\x1e\x85\u2028\u2029]"
_SPACE = r"\s\x1c-\x1f\x85"  # Python's: fewer characters are \s to JSON Schema (ECMA-262)
NOT_BLANK_PATTERN = rf"^[^\u0000]*[^{_SPACE}\u0000][^\u0000]*$"
ONE_LINE_PATTERN = rf"^{_LINE}*(?![{_SPACE}]){_LINE}+$"
USERNAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_-]{2,31}$"
RESERVED_USERNAMES = frozenset(
    "admin administrator anonymous api deleted everyone guest help info me mod moderator nobody "
    "null operator posting root security staff support system undefined webmaster".split()
)


def described(example: Any, text: str | None = None) -> dict[str, Any]:
    """Return the documentation of a field for the OpenAPI document."""
    return {"examples": [example]} | ({"description": text} if text else {})


class String(fields.String):
    """Text that both databases and UTF-8 can hold: no U+0000 and no lone surrogates.

    `pattern` documents a narrower rule that validators check.
    """

    def __init__(self, *, pattern: str = r"^[^\u0000]*$", **kwargs: Any) -> None:
        kwargs["metadata"] = {"pattern": pattern} | kwargs.get("metadata", {})
        super().__init__(**kwargs)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        if not isinstance(value, str):
            raise self.make_error("invalid")
        text = str(super()._deserialize(value, attr, data, **kwargs))
        if "\x00" in text:
            raise ValidationError("Must not contain U+0000.")
        if not text.isascii() and re.search("[\ud800-\udfff]", text):
            raise ValidationError("Must not contain lone surrogates.")
        return text


class Identifier(String):
    """A 21-character identifier."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(
            validate=Regexp(ID_PATTERN.removesuffix("$") + r"\Z", error=ID_RULE),
            pattern=ID_PATTERN,
            metadata=described(EXAMPLE_ID),
            **kwargs,
        )


class File(Upload):  # type: ignore[misc]  # it has no type hints
    """A file in a form."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> bytes:
        if not isinstance(value, bytes):
            raise ValidationError("Must be a file.")
        return value


class Digits(fields.Integer):
    """A whole number of a query, in digits alone; Python takes 1_0 too, and those of any script."""

    def _validated(self, value: Any) -> int:
        if not (isinstance(value, str) and value.isascii() and value.isdigit()):
            raise self.make_error("invalid", input=value)
        return int(super()._validated(value))


class Moment(fields.AwareDateTime):
    """A moment as RFC 3339 writes it, in UTC with milliseconds."""

    def _serialize(self, value: datetime | None, *args: Any, **kwargs: Any) -> str | None:
        return None if value is None else written(value)


class Input(Schema):
    """A body or query in which an unknown name is an error."""

    class Meta:
        unknown = RAISE


AS_SENT = (fields.String, fields.Integer, fields.Boolean, Moment)


class Output(Schema):
    """A body that always has all of its fields.

    Rows come as plain dicts, their moments as they are sent, and are dumped by what the fields say,
    without asking each of them again for each row.
    """

    def on_bind_field(self, field_name: str, field_obj: fields.Field[Any]) -> None:
        field_obj.required = True

    def dump(self, obj: Any, *, many: bool | None = None) -> Any:
        several = self.many if many is None else many
        if several:
            return [self.plain(each) for each in obj]
        return self.plain(obj) if isinstance(obj, dict) else super().dump(obj, many=False)

    def plain(self, row: dict[str, Any]) -> dict[str, Any]:
        """Return one plain dict as the fields dump it."""
        dumped = {name: row[source] for name, source in self._sources}
        for name, write in self._writers:
            dumped[name] = write(dumped[name])
        return dumped

    @cached_property
    def _sources(self) -> list[tuple[str, str]]:
        return [
            (field.data_key or name, field.attribute or name)
            for name, field in self.dump_fields.items()
        ]

    @cached_property
    def _writers(self) -> list[tuple[str, Callable[[Any], Any]]]:
        writers = (
            (field.data_key or name, _writer(field)) for name, field in self.dump_fields.items()
        )
        return [(name, write) for name, write in writers if write]


def _writer(field: fields.Field[Any]) -> Callable[[Any], Any] | None:
    """Return what turns a row's value of a field into JSON; None where it is the same."""
    if isinstance(field, fields.Nested) and isinstance(field.schema, Output):
        plain = field.schema.plain
        if field.many:
            return lambda rows: [plain(row) for row in rows]
        return lambda row: None if row is None else plain(row)
    return None if isinstance(field, AS_SENT) else partial(_by_field, field)


def _by_field(field: fields.Field[Any], value: Any) -> Any:
    return field._serialize(value, None, None)


def not_blank(value: str) -> None:
    if not value.strip():
        raise ValidationError("Must not be blank.")


def one_line(value: str) -> None:
    if len(value.splitlines()) > 1 or value[-1:] in "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029":
        raise ValidationError("Must not contain line breaks.")


def not_reserved(username: str) -> None:
    if username.lower() in RESERVED_USERNAMES:
        raise ValidationError("This name is reserved.")


@cache
def common_passwords() -> str:
    """Return zxcvbn's list of about 30,000 common passwords, lower case, each between two NULs.

    As one text it takes a twentieth of a set's memory. The package itself would load all its lists.
    """
    file = distribution("zxcvbn").locate_file("zxcvbn/frequency_lists.py")
    return "\0".join(["", *run_path(str(file))["FREQUENCY_LISTS"]["passwords"], ""])


def not_common(password: str) -> None:
    if f"\0{password.lower()}\0" in common_passwords():
        raise ValidationError("This password is among the most common ones.")


class NewPassword(String):
    """A password to be; kept byte for byte, without composition rules (NIST SP 800-63B)."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(
            validate=[long_enough, Length(max=PASSWORD_MOST), not_common],
            metadata={"format": "password"} | described("a long walk by the sea"),
            **kwargs,
        )


def long_enough(password: str) -> None:
    least = current_app.config["PASSWORD_MIN"]
    if len(password) < least:
        raise ValidationError(f"Must have at least {least} characters.")


class Author(Output):
    """Who wrote something, in short."""

    id = Identifier()
    username = fields.String(metadata=described("ada"))
    display_name = fields.String(allow_none=True, metadata=described("Ada Lovelace"))


class Credentials(Input):
    """What signs a user in."""

    username = String(required=True, validate=Length(max=256), metadata=described("ada"))
    password = String(
        required=True,
        validate=Length(max=PASSWORD_MOST),
        metadata={"format": "password"} | described("a long walk by the sea"),
    )


class Profile(Input):
    """The part of an account that its owner writes."""

    username = String(
        required=True,
        validate=[
            Regexp(
                USERNAME_PATTERN.removesuffix("$") + r"\Z",
                error="Must be 3 to 32 characters of A-Z, a-z, 0-9, '_' and '-', "
                "the first a letter or digit.",
            ),
            not_reserved,
        ],
        pattern=USERNAME_PATTERN,
        metadata=described("ada"),
    )
    password = NewPassword(required=True)
    display_name = String(
        allow_none=True, validate=Length(max=64), metadata=described("Ada Lovelace")
    )
    bio = String(
        allow_none=True, validate=Length(max=500), metadata=described("I write about engines.")
    )

    @validates_schema
    def password_is_not_the_name(self, data: dict[str, Any], **_: Any) -> None:
        refuse_own_name(data.get("password"), data.get("username"))


def refuse_own_name(password: str | None, username: str | None) -> None:
    """Raise ValidationError for a password that is the name of its user."""
    if password and username and password.lower() == username.lower():
        raise ValidationError("Must not be the username.", "password")


class SignUp(Profile):
    """A new account."""


class ProfileChange(Profile):
    """Changes to an account; a new password needs the current one beside it."""

    current_password = String(
        validate=Length(max=PASSWORD_MOST),
        metadata={"format": "password"} | described("the old and tired one"),
    )


class User(Output):
    """An account, as everyone sees it."""

    id = Identifier()
    username = fields.String(metadata=described("ada"))
    display_name = fields.String(allow_none=True, metadata=described("Ada Lovelace"))
    bio = fields.String(allow_none=True, metadata=described("I write about engines."))
    role = fields.String(validate=OneOf(["member", "moderator"]), metadata=described("member"))
    created_at = Moment(metadata=described(EXAMPLE_TIME))


class DeletionQuery(Input):
    """What becomes of what a deleted account has written."""

    content = fields.String(
        load_default="keep",
        validate=OneOf(["keep", "delete"]),
        metadata=described(
            "keep", "Keep posts and comments without an author, or delete them too."
        ),
    )


class Session(Output):
    """A sign-in of the user who asks."""

    id = Identifier()
    created_at = Moment(metadata=described(EXAMPLE_TIME))
    last_seen_at = Moment(metadata=described(EXAMPLE_TIME, "Exact to the hour."))
    user_agent = fields.String(metadata=described("curl/8.14.1"))
    current = fields.Boolean(metadata=described(True, "Whether this request came with it."))


def limit(default: int) -> Digits:
    """Return the field that says how many rows a page holds."""
    return Digits(
        load_default=default,
        validate=Range(1, 100),
        metadata=described(default, "How many rows a page holds."),
    )


class PageQuery(Input):
    """Which page of a list."""

    limit = limit(20)
    cursor = fields.String(
        validate=Length(max=512),
        metadata={"description": "Where the page begins: the Link header of the one before says."},
    )


class PostsQuery(PageQuery):
    """Which posts to list."""

    author = Identifier()


class CommentsQuery(PageQuery):
    """Which comments to list."""

    limit = limit(50)


class PostInput(Input):
    """What an author writes."""

    title = String(
        required=True,
        validate=[Length(1, 200), not_blank, one_line],
        pattern=ONE_LINE_PATTERN,
        metadata=described("On engines", "One line, not blank."),
    )
    content = String(
        required=True,
        validate=[Length(1, 100_000), not_blank],
        pattern=NOT_BLANK_PATTERN,
        metadata=described("They *weave* algebra.", "Plain text, Markdown by custom; not blank."),
    )


class PostBrief(Output):
    """A post as lists show it."""

    id = Identifier()
    title = fields.String(metadata=described("On engines"))
    author = fields.Nested(
        Author, allow_none=True, metadata={"description": "Null when that account is gone."}
    )
    created_at = Moment(metadata=described(EXAMPLE_TIME))
    updated_at = Moment(metadata=described(EXAMPLE_TIME))
    comment_count = fields.Integer(metadata=described(0))


class ImageChange(Input):
    """What the author of a post says of its image."""

    alt = String(
        allow_none=True,
        validate=Length(max=500),
        metadata=described("A loom", "What the image shows, for those who do not see it."),
    )


class ImageUpload(ImageChange):
    """An image and what is said of it."""

    file = File(
        required=True,
        metadata={"description": "PNG, JPEG, WebP or GIF; what it is, its content says."},
    )


class Image(Output):
    """An image of a post."""

    id = Identifier()
    url = fields.Url(metadata=described(f"https://example.org/images/{EXAMPLE_ID}"))
    media_type = fields.String(
        validate=OneOf(["image/png", "image/jpeg", "image/webp", "image/gif"]),
        metadata=described("image/png"),
    )
    width = fields.Integer(metadata=described(640, "In pixels."))
    height = fields.Integer(metadata=described(480, "In pixels."))
    size = fields.Integer(metadata=described(20480, "In bytes."))
    alt = fields.String(allow_none=True, metadata=described("A loom"))
    created_at = Moment(metadata=described(EXAMPLE_TIME))


class Post(PostBrief):
    """A whole post."""

    content = fields.String(metadata=described("They *weave* algebra."))
    images = fields.List(fields.Nested(Image))


class CommentChange(Input):
    """What a comment says."""

    content = String(
        required=True,
        validate=[Length(1, 10_000), not_blank],
        pattern=NOT_BLANK_PATTERN,
        metadata=described("And *cloth*?", "Plain text, Markdown by custom; not blank."),
    )


class CommentInput(CommentChange):
    """A new comment, and to which other one it replies, if any."""

    parent_id = Identifier(allow_none=True, load_default=None)


class Comment(Output):
    """A comment on a post."""

    id = Identifier()
    post_id = Identifier()
    parent_id = Identifier(allow_none=True)
    author = fields.Nested(
        Author, allow_none=True, metadata={"description": "Null when that account is gone."}
    )
    content = fields.String(allow_none=True, metadata=described("And *cloth*?"))
    deleted = fields.Boolean(
        metadata=described(False, "Whether only its place is left, for the sake of its replies.")
    )
    created_at = Moment(metadata=described(EXAMPLE_TIME))
    updated_at = Moment(metadata=described(EXAMPLE_TIME))


class Health(Output):
    """That all is well."""

    status = fields.String(required=True, metadata=described("ok"))
