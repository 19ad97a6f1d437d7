"""Personal access tokens."""

from marshmallow import fields

from posting.schemas.base import Input, Output
from posting.schemas.fields import (
    ONE_LINE_PATTERN,
    Identifier,
    Length,
    OneOf,
    String,
    Timestamp,
    TimestampInput,
    described,
    not_blank,
    one_line,
)

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
    scope = fields.String(validate=OneOf(SCOPES), metadata=described("write"))
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
