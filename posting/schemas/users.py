"""Accounts and sessions."""

from typing import Any

from marshmallow import ValidationError, fields, validates_schema
from marshmallow.validate import Regexp

from posting.schemas.base import Input, Output
from posting.schemas.fields import (
    LINE_OR_EMPTY_PATTERN,
    MAX_PASSWORD_LENGTH,
    USERNAME_PATTERN,
    Identifier,
    Length,
    NewPassword,
    OneOf,
    Parameter,
    String,
    Timestamp,
    described,
    is_own_name,
    not_blank,
    not_reserved,
    one_line,
)
from posting.schemas.messages import SAME_AS_USERNAME, Message

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
    role = fields.String(validate=OneOf(["member", "moderator"]), metadata=described("member"))
    created_at = Timestamp()


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
