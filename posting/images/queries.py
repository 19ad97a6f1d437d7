"""The SELECTs of images."""

from collections.abc import Sequence

import sqlalchemy as sa

from posting.db.session import fetch_all, fetch_one
from posting.images import schemas
from posting.images.models import Image, ImageData
from posting.posts.locks import get_after_locking_post
from posting.web.problems import NoSuch
from posting.web.rows import Item, insert, select


class NoSuchImage(NoSuch, thing="image"):
    pass


IMAGES = select(schemas.Image, Image)
INSERT_IMAGE = insert(schemas.Image, Image)
IMAGES_OF_POST = IMAGES.where(Image.post_id == sa.bindparam("post")).order_by(
    Image.created_at, Image.id
)
IMAGES_OF_POSTS = IMAGES.where(Image.post_id.in_(sa.bindparam("posts", expanding=True))).order_by(
    Image.created_at, Image.id
)
IMAGE = IMAGES.where(Image.id == sa.bindparam("id"))
IMAGE_FILE = sa.select(Image.media_type, ImageData.data).join_from(ImageData, Image)
IMAGE_FILE = IMAGE_FILE.where(Image.id == sa.bindparam("id"))
IMAGE_TYPE = sa.select(Image.media_type).where(Image.id == sa.bindparam("id"))


def get_image(id: str) -> Item:
    """Return an image without its bytes. Raise NoSuchImage."""
    row = fetch_one(IMAGE, id=id)
    if row is None:
        raise NoSuchImage
    return row._asdict()


def get_images_of_post(id: str) -> list[Item]:
    """Return the images of a post in the order in which they were added."""
    return [row._asdict() for row in fetch_all(IMAGES_OF_POST, post=id)]


def get_images_of_posts(ids: Sequence[str]) -> dict[str, list[Item]]:
    """Return the images of several posts by the id of their post, as `get_images_of_post` does."""
    images: dict[str, list[Item]] = {id: [] for id in ids}
    for row in fetch_all(IMAGES_OF_POSTS, posts=list(ids)):
        images[row.post_id].append(row._asdict())
    return images


def get_image_for_update(id: str) -> Image:
    """Lock the post of an image and return the image. Raise NoSuchImage."""
    image = get_after_locking_post(Image, id)
    if image is None:
        raise NoSuchImage
    return image
