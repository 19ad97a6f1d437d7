"""Invitations."""

from typing import Any

from marshmallow import fields, post_load, validate

from posting.accounts.schemas import Author
from posting.invitations.models import MAX_USES
from posting.web.schemas import (
    LINE_OR_EMPTY_PATTERN,
    Identifier,
    Input,
    Integer,
    Length,
    Output,
    Range,
    String,
    Timestamp,
    TimestampInput,
    described,
    not_blank,
    one_line,
)


class InvitationInput(Input):
    """A new invitation."""

    note = String(
        allow_none=True,
        validate=[Length(max=100), not_blank, one_line],
        pattern=LINE_OR_EMPTY_PATTERN,
        metadata=described("For the choir", "Whom it is for, in one line."),
    )
    uses = Integer(
        validate=Range(1, MAX_USES),
        metadata=described(1, "How many accounts can be created by it. The default is one."),
    )
    expires_at = TimestampInput(
        metadata=described(
            "2026-12-05T09:30:00.125Z", "At most 90 days from now. The default is 14 days from now."
        )
    )

    @post_load
    def replace_empty_by_null(self, data: dict[str, Any], **_: Any) -> dict[str, Any]:
        return data | ({"note": None} if data.get("note") == "" else {})


class Invitation(Output):
    """An invitation, without its secret."""

    computed: tuple[str, ...] = ("used_by",)

    id = Identifier()
    note = fields.String(allow_none=True, metadata=described("For the choir"))
    uses = fields.Integer(metadata=described(1))
    uses_left = fields.Integer(metadata=described(1))
    created_by = fields.Nested(
        Author, allow_none=True, metadata={"description": "Null for an invitation of an operator."}
    )
    created_at = Timestamp()
    expires_at = Timestamp()
    used_by = fields.List(
        fields.Nested(Author),
        validate=validate.Length(max=MAX_USES),
        metadata={"description": "The accounts that were created by it, oldest first."},
    )


class NewInvitation(Invitation):
    """A new invitation, with its secret."""

    url = fields.String(
        metadata=described(
            "https://example.org/signup"
            "#V1StGXR8_Z5jdHi6B-myT3cqSJzQ3uvEdY5oAjSkK_Jri0qmfyaLOFT6n3zC6zxs",
            "The page to sign up. The part after `#` is the `invitation` of `POST /signup`. It is "
            "not shown again.",
        )
    )
