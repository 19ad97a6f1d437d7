"""The statements of images."""

from collections.abc import Sequence

import sqlalchemy as sa

from posting.db.transactions import Row, fetch_all, fetch_one
from posting.images import schemas
from posting.images.models import Image, ImageData
from posting.posts.locks import lock_post_of
from posting.posts.models import Post
from posting.web.problems import NoSuch
from posting.web.rows import Item, insert, select, to_item, to_items


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
_WITH_AUTHOR = IMAGE.add_columns(Post.author_id.label("author_id")).join(Image.post)
IMAGE_FILE = sa.select(Image.media_type, ImageData.data).join_from(ImageData, Image)
IMAGE_FILE = IMAGE_FILE.where(Image.id == sa.bindparam("id"))
IMAGE_TYPE = sa.select(Image.media_type).where(Image.id == sa.bindparam("id"))


def get_image(id: str) -> Item:
    """Return an image without its bytes. Raise NoSuchImage."""
    row = fetch_one(IMAGE, id=id)
    if row is None:
        raise NoSuchImage
    return to_item(row)


def get_images_of_post(id: str) -> list[Item]:
    """Return the images of a post in the order in which they were added."""
    return to_items(fetch_all(IMAGES_OF_POST, post=id))


def get_images_of_posts(ids: Sequence[str]) -> dict[str, list[Item]]:
    """Return the images of several posts by the id of their post, as `get_images_of_post` does."""
    images: dict[str, list[Item]] = {id: [] for id in ids}
    for image in to_items(fetch_all(IMAGES_OF_POSTS, posts=list(ids))):
        images[image["post_id"]].append(image)
    return images


def get_image_for_update(id: str) -> Row:
    """Lock the post of an image, and return the image with `author_id`. Raise NoSuchImage."""
    lock_post_of(Image, id)
    image = fetch_one(_WITH_AUTHOR, id=id)
    if image is None:
        raise NoSuchImage
    return image
