"""Topics."""

from marshmallow import fields

from posting.topics.models import COLORS, MAX_NAME
from posting.web.schemas import (
    ONE_LINE_PATTERN,
    Identifier,
    Input,
    Length,
    OneOf,
    Output,
    String,
    Timestamp,
    described,
    extensible,
    keeps_direction,
    not_blank,
    one_line,
)


class TopicInput(Input):
    """A topic."""

    name = String(
        required=True,
        validate=[Length(1, MAX_NAME), not_blank, one_line, keeps_direction],
        pattern=ONE_LINE_PATTERN,
        metadata=described("Looms", "One line, not blank, and no name of another topic."),
    )
    color = String(required=True, validate=OneOf(COLORS), metadata=described("green"))


class TopicOfPost(Output):
    """A topic of a post."""

    id = Identifier()
    name = fields.String(metadata=described("Looms"))
    color = fields.String(metadata=extensible(COLORS, "green"))


class Topic(TopicOfPost):
    """A topic."""

    created_at = Timestamp()
    updated_at = Timestamp()
