"""Events of images."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ImageEvent:
    """Something happened to an image of a post. The images of a deleted post are not announced."""

    id: str
    post_id: str


class ImageAdded(ImageEvent):
    """An image was added."""


class ImageDescribed(ImageEvent):
    """The text alternative of an image was changed."""


class ImageDeleted(ImageEvent):
    """An image was deleted."""
