"""Changes and their cursors."""

from marshmallow import fields

from posting.changes.models import CHANGES, KINDS
from posting.web.schemas import (
    Identifier,
    Input,
    Length,
    Output,
    Parameter,
    Timestamp,
    described,
    extensible,
    page_size,
)

EXAMPLE_CURSOR = "5f2c9d7a41e0b388.0.1234"


class ChangesQuery(Input):
    """A place in the order of changes."""

    limit = page_size(20)
    after = Parameter(
        validate=Length(max=512),
        metadata=described(
            EXAMPLE_CURSOR,
            "The `cursor` of the last response. Without it, the response has no changes, and the "
            "cursor of now.",
        ),
    )


class Change(Output):
    """A post, comment or image that was created, edited or deleted, or an account of a member."""

    kind = fields.String(metadata=extensible(KINDS, "comment"))
    id = Identifier()
    post_id = Identifier(
        "The post to which the object belongs, or the post itself. Null for an account.",
        allow_none=True,
    )
    change = fields.String(metadata=extensible(CHANGES, "created"))
    at = Timestamp()


class Changes(Output):
    """Changes in the order of their commits."""

    changes = fields.List(fields.Nested(Change))
    cursor = fields.String(
        metadata=described(EXAMPLE_CURSOR, "The value of `after` for the next request.")
    )
