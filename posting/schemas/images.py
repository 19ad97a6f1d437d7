"""Images of posts."""

from marshmallow import fields
from marshmallow.validate import Length, OneOf

from posting.schemas.base import Input, Output
from posting.schemas.fields import (
    EXAMPLE_ID,
    EXAMPLE_TIME,
    File,
    Identifier,
    Moment,
    String,
    described,
)


def alt_text(*, allow_none: bool) -> String:
    """Return the field that says what an image shows."""
    return String(
        allow_none=allow_none,
        validate=Length(max=500),
        metadata=described("A loom", "What the image shows, for those who do not see it."),
    )


class ImageChange(Input):
    """What the author of a post says of its image."""

    alt = alt_text(allow_none=True)


class ImageUpload(Input):
    """An image and what is said of it; a form has no null."""

    alt = alt_text(allow_none=False)
    file = File(
        required=True,
        metadata={"description": "PNG, JPEG, WebP or GIF; what it is, its content says."},
    )


class Image(Output):
    """An image of a post."""

    id = Identifier()
    url = fields.String(
        metadata={"format": "uri"} | described(f"https://example.org/images/{EXAMPLE_ID}")
    )
    media_type = fields.String(
        validate=OneOf(["image/png", "image/jpeg", "image/webp", "image/gif"]),
        metadata=described("image/png"),
    )
    width = fields.Integer(metadata=described(640, "In pixels."))
    height = fields.Integer(metadata=described(480, "In pixels."))
    size = fields.Integer(metadata=described(20480, "In bytes."))
    alt = fields.String(allow_none=True, metadata=described("A loom"))
    created_at = Moment(metadata=described(EXAMPLE_TIME))
