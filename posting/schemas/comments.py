"""Comments."""

from marshmallow import fields
from marshmallow.validate import Length

from posting.schemas.base import Author, Input, Output, PageQuery, limit
from posting.schemas.fields import (
    EXAMPLE_TIME,
    NOT_BLANK_PATTERN,
    Identifier,
    Moment,
    String,
    described,
    not_blank,
)


class CommentsQuery(PageQuery):
    """Which comments to list."""

    limit = limit(50)


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
