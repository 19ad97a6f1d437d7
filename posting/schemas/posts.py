"""Posts."""

from marshmallow import fields
from marshmallow.validate import Length

from posting.schemas.base import Input, Output, PageQuery, author
from posting.schemas.fields import (
    IMAGES_PER_POST,
    NOT_BLANK_PATTERN,
    ONE_LINE_PATTERN,
    Identifier,
    String,
    Timestamp,
    described,
    not_blank,
    one_line,
)
from posting.schemas.images import Image


class PostsQuery(PageQuery):
    """A page of posts."""

    author = Identifier()


class PostInput(Input):
    """A new post."""

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
        metadata=described("They *weave* algebra.", "Plain text or Markdown; not blank."),
    )


class PostBrief(Output):
    """A post in a list."""

    id = Identifier()
    title = fields.String(metadata=described("On engines"))
    author = author()
    created_at = Timestamp()
    updated_at = Timestamp()
    comment_count = fields.Integer(metadata=described(0))


class Post(PostBrief):
    """A post with its content and images."""

    content = fields.String(metadata=described("They *weave* algebra."))
    images = fields.List(fields.Nested(Image), validate=Length(max=IMAGES_PER_POST))
