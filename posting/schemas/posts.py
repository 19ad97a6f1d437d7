"""Posts."""

from marshmallow import fields
from marshmallow.validate import Length

from posting.schemas.base import Author, Input, Output, PageQuery
from posting.schemas.fields import (
    EXAMPLE_TIME,
    IMAGES_PER_POST,
    NOT_BLANK_PATTERN,
    ONE_LINE_PATTERN,
    Identifier,
    Moment,
    String,
    described,
    not_blank,
    one_line,
)
from posting.schemas.images import Image


class PostsQuery(PageQuery):
    """Which posts to list."""

    author = Identifier()


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


class Post(PostBrief):
    """A whole post."""

    content = fields.String(metadata=described("They *weave* algebra."))
    images = fields.List(fields.Nested(Image), validate=Length(max=IMAGES_PER_POST))
