"""What comes in and what goes out, as marshmallow schemas. They know nothing of the database."""

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any

from marshmallow import EXCLUDE, RAISE, Schema, fields, validates_schema
from marshmallow.validate import Length, OneOf, Range, Regexp

from posting.fields import (
    EXAMPLE_ID,
    EXAMPLE_TIME,
    IMAGES_PER_POST,
    NOT_BLANK_PATTERN,
    ONE_LINE_PATTERN,
    PASSWORD_MOST,
    USERNAME_PATTERN,
    Digits,
    File,
    Identifier,
    Moment,
    NewPassword,
    String,
    described,
    not_blank,
    not_reserved,
    one_line,
    refuse_own_name,
)


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

    class Meta:
        unknown = EXCLUDE  # the document lets a response gain fields

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


def alt_text(*, allow_none: bool) -> String:
    """Return the field that says what an image shows."""
    return String(
        allow_none=allow_none,
        validate=Length(max=500),
        metadata=described("A loom", "What the image shows, for those who do not see it."),
    )


class ImageChange(Input):
    """What the author of a post says of its image."""

    alt = alt_text(allow_none=True)


class ImageUpload(Input):
    """An image and what is said of it; a form has no null."""

    alt = alt_text(allow_none=False)
    file = File(
        required=True,
        metadata={"description": "PNG, JPEG, WebP or GIF; what it is, its content says."},
    )


class Image(Output):
    """An image of a post."""

    id = Identifier()
    url = fields.String(
        metadata={"format": "uri"} | described(f"https://example.org/images/{EXAMPLE_ID}")
    )
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
    images = fields.List(fields.Nested(Image), validate=Length(max=IMAGES_PER_POST))


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

    parent_id = Identifier(allow_none=True)


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
