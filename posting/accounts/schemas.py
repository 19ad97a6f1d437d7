"""Personal access tokens."""

from typing import Any

from marshmallow import ValidationError, fields, post_load, validates_schema
from marshmallow.validate import Regexp

from posting.accounts.fields import (
    MAX_PASSWORD_LENGTH,
    USERNAME_PATTERN,
    NewPassword,
    is_own_name,
    not_reserved,
)
from posting.web.fields import (
    LINE_OR_EMPTY_PATTERN,
    ONE_LINE_PATTERN,
    Identifier,
    Length,
    OneOf,
    Parameter,
    String,
    Timestamp,
    TimestampInput,
    described,
    extensible,
    not_blank,
    one_line,
)
from posting.web.messages import Message
from posting.web.schemas import Input, Output

SAME_AS_USERNAME = Message("same_as_username", "Must not be the username.")


class Author(Output):
    """An author in short."""

    id = Identifier()
    username = fields.String(metadata=described("ada"))
    display_name = fields.String(allow_none=True, metadata=described("Ada Lovelace"))


def author() -> fields.Nested:
    """Return the field of an author."""
    metadata = {"description": "Null when the account is gone."}
    return fields.Nested(Author, allow_none=True, metadata=metadata)


ROLES = ("member", "moderator")
MALFORMED_USERNAME = Message(
    "malformed",
    "Must be 3 to 32 characters of A-Z, a-z, 0-9, '_' and '-', the first a letter or digit.",
)


class UsersQuery(Input):
    """The username of the account to list."""

    username = String(
        required=True,
        validate=Length(max=256),
        metadata=described("ada", "A whole name, in upper or lower case."),
    )


class Credentials(Input):
    """A username and a password."""

    username = String(required=True, validate=Length(max=256), metadata=described("ada"))
    password = String(
        required=True,
        validate=Length(max=MAX_PASSWORD_LENGTH),
        metadata={"format": "password"} | described("a long walk by the sea"),
    )


class Profile(Input):
    """The fields of an account that its owner sets."""

    username = String(
        required=True,
        validate=[
            Regexp(USERNAME_PATTERN.removesuffix("$") + r"\Z", error=MALFORMED_USERNAME),
            not_reserved,
        ],
        pattern=USERNAME_PATTERN,
        metadata=described("ada"),
    )
    password = NewPassword(required=True)
    display_name = String(
        allow_none=True,
        validate=[Length(max=64), not_blank, one_line],
        pattern=LINE_OR_EMPTY_PATTERN,
        metadata=described("Ada Lovelace"),
    )
    bio = String(
        allow_none=True, validate=Length(max=500), metadata=described("I write about engines.")
    )

    @validates_schema
    def password_is_not_the_username(self, data: dict[str, Any], **_: Any) -> None:
        if {"password", "username"} <= data.keys() and is_own_name(
            data["password"], data["username"]
        ):
            raise ValidationError(SAME_AS_USERNAME, "password")

    @post_load
    def replace_empty_by_null(self, data: dict[str, Any], **_: Any) -> dict[str, Any]:
        return data | {name: None for name in ("display_name", "bio") if data.get(name) == ""}


class SignUp(Profile):
    """A new account."""


class ProfileChange(Profile):
    """A change to an account; a new password requires the current one."""

    current_password = String(
        validate=Length(max=MAX_PASSWORD_LENGTH),
        metadata={"format": "password"} | described("the old and tired one"),
    )


class User(Output):
    """An account's public profile."""

    id = Identifier()
    username = fields.String(metadata=described("ada"))
    display_name = fields.String(allow_none=True, metadata=described("Ada Lovelace"))
    bio = fields.String(allow_none=True, metadata=described("I write about engines."))
    role = fields.String(metadata=extensible(ROLES, "member"))
    created_at = Timestamp()
    updated_at = Timestamp("When the profile or the role was last changed.")


class DeletionQuery(Input):
    """Options for the deletion of an account."""

    content = Parameter(
        load_default="keep",
        validate=OneOf(["keep", "delete"]),
        metadata=described(
            "keep", "Keep posts and comments without an author, or delete them too."
        ),
    )


class Session(Output):
    """A sign-in of the current user."""

    id = Identifier()
    created_at = Timestamp()
    last_seen_at = Timestamp("Exact to the hour.")
    user_agent = fields.String(metadata=described("curl/8.14.1"))
    current = fields.Boolean(metadata=described(True, "Whether this request came with it."))


SCOPES = ("read", "write")


class TokenInput(Input):
    """A new token."""

    name = String(
        required=True,
        validate=[Length(1, 64), not_blank, one_line],
        pattern=ONE_LINE_PATTERN,
        metadata=described("Backup script", "What it is for, in one line."),
    )
    scope = String(
        required=True,
        validate=OneOf(SCOPES),
        metadata=described("write", "`read` for GET requests only, `write` for all."),
    )
    expires_at = TimestampInput(
        metadata=described(
            "2027-11-21T09:30:00.125Z", "At most 366 days from now, which is the default."
        )
    )


class Token(Output):
    """A token of the current user, without its secret."""

    id = Identifier()
    name = fields.String(metadata=described("Backup script"))
    scope = fields.String(metadata=extensible(SCOPES, "write"))
    created_at = Timestamp()
    expires_at = Timestamp()
    last_used_at = Timestamp("Exact to the hour; null before the first use.", allow_none=True)


class NewToken(Token):
    """A new token, with its secret."""

    token = fields.String(
        metadata=described(
            "posting_3cqSJzQ3uvEdY5oAjSkK_Jri0qmfyaLOFT6n3zC6zxs",
            "Send it as `Authorization: Bearer …`. It is not shown again.",
        )
    )
