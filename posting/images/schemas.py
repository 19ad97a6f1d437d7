"""Images of posts."""

from marshmallow import fields

from posting.web.schemas import (
    EXAMPLE_ID,
    VISIBLE_OR_EMPTY_PATTERN,
    File,
    Identifier,
    Input,
    Length,
    Output,
    String,
    Timestamp,
    described,
    extensible,
    not_blank,
)

MEDIA_TYPES = ("image/png", "image/jpeg", "image/webp", "image/gif")


def alt_text(*, allow_none: bool) -> String:
    """Return the field of an image's text alternative."""
    return String(
        allow_none=allow_none,
        validate=[Length(max=500), not_blank],
        pattern=VISIBLE_OR_EMPTY_PATTERN,
        metadata=described("A loom", "A text alternative for people who do not see the image."),
    )


class ImageChange(Input):
    """A change to an image."""

    alt = alt_text(allow_none=True)


class ImageUpload(Input):
    """A new image; a form has no null."""

    alt = alt_text(allow_none=False)
    file = File(
        "MAX_IMAGE_BYTES",
        metadata={"description": "PNG, JPEG, WebP or GIF, detected from its content."},
    )


class ImageSize(Output):
    """A smaller copy of an image, as WebP."""

    width = fields.Integer(metadata=described(640, "In pixels."))
    height = fields.Integer(metadata=described(480, "In pixels."))
    url = fields.String(
        metadata={"format": "uri"} | described(f"https://example.org/images/{EXAMPLE_ID}/640")
    )


class Image(Output):
    """An image of a post or of a comment, or one that is not attached yet."""

    computed: tuple[str, ...] = ("url", "thumbnail_url", "sizes")

    id = Identifier()
    url = fields.String(
        metadata={"format": "uri"} | described(f"https://example.org/images/{EXAMPLE_ID}")
    )
    thumbnail_url = fields.String(
        allow_none=True,
        metadata={"format": "uri"}
        | described(
            f"https://example.org/images/{EXAMPLE_ID}/thumbnail",
            "A WebP of at most 320 pixels on a side and 20 KB. Null if there is none.",
        ),
    )
    sizes = fields.List(
        fields.Nested(ImageSize),
        metadata={
            "description": "Copies for pages, of at most 640 and 1600 pixels on a side. Only those "
            "that are smaller than the image in pixels and in bytes."
        },
    )
    post_id = Identifier(
        "The post with it, or with its comment. Null until it is attached.", allow_none=True
    )
    comment_id = Identifier("Null unless it is an image of a comment.", allow_none=True)
    media_type = fields.String(metadata=extensible(MEDIA_TYPES, "image/png"))
    width = fields.Integer(metadata=described(640, "In pixels."))
    height = fields.Integer(metadata=described(480, "In pixels."))
    size = fields.Integer(metadata=described(20480, "In bytes."))
    alt = fields.String(allow_none=True, metadata=described("A loom"))
    created_at = Timestamp()
    updated_at = Timestamp("When `alt` was last changed.")
