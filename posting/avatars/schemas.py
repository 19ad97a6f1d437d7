"""Avatars."""

from posting.web.schemas import File, Input


class AvatarUpload(Input):
    """A new avatar."""

    file = File(
        "MAX_IMAGE_BYTES",
        metadata={
            "description": "PNG, JPEG, WebP or GIF, detected from its content. The avatar is the "
            "largest square in its middle."
        },
    )
