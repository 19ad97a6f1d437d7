"""Comments on posts."""

from marshmallow import fields

from posting.schemas.base import Input, Output, PageQuery, author, page_size
from posting.schemas.fields import (
    NOT_BLANK_PATTERN,
    Identifier,
    Length,
    OneOf,
    Parameter,
    String,
    Timestamp,
    described,
    not_blank,
)


class CommentsQuery(PageQuery):
    """A page of comments."""

    limit = page_size(50)


class CommentsOnPostQuery(CommentsQuery):
    """A page of comments on a post."""

    order = Parameter(
        load_default="oldest",
        validate=OneOf(["oldest", "newest"]),
        metadata=described("newest", "Which comments come first."),
    )


class CommentChange(Input):
    """A change to a comment."""

    content = String(
        required=True,
        validate=[Length(1, 10_000), not_blank],
        pattern=NOT_BLANK_PATTERN,
        metadata=described("And *cloth*?", "Plain text or Markdown; not blank."),
    )


class CommentInput(CommentChange):
    """A new comment, perhaps a reply to another comment."""

    parent_id = Identifier(allow_none=True)


class Comment(Output):
    """A comment on a post."""

    id = Identifier()
    post_id = Identifier()
    parent_id = Identifier(allow_none=True)
    author = author()
    content = fields.String(allow_none=True, metadata=described("And *cloth*?"))
    deleted = fields.Boolean(
        metadata=described(False, "True if it was deleted and is kept for its replies.")
    )
    created_at = Timestamp()
    updated_at = Timestamp()
