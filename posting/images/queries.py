"""The statements of images."""

import re
from collections.abc import Sequence

import sqlalchemy as sa

from posting.db.transactions import Row, fetch_all, fetch_one, fetch_value
from posting.db.types import ID_LENGTH
from posting.images import schemas
from posting.images.models import Image, ImageData, Thumbnail
from posting.posts.locks import lock_post_of
from posting.posts.models import DELETED_POSTS, Post
from posting.web.problems import NoSuch
from posting.web.rows import Item, insert, select, to_item, to_items
from posting.web.urls import external_url


class NoSuchImage(NoSuch, thing="image"):
    pass


class NoSuchThumbnail(NoSuch, thing="thumbnail"):
    pass


# The path of an image in a text, but not that of its thumbnail.
IMAGE_PATH = re.compile(rf"/images/([\w-]{{{ID_LENGTH}}})(?![\w/-])", re.ASCII)

_EXISTS = Image.post_id.not_in(DELETED_POSTS)
IMAGES = select(schemas.Image, Image).add_columns(Image.has_thumbnail.label("has_thumbnail"))
IMAGES = IMAGES.where(_EXISTS)
INSERT_IMAGE = insert(schemas.Image, Image)
IMAGE_COUNT = sa.select(sa.func.count()).where(Image.post_id == Post.id).scalar_subquery()
UPDATE_COUNT = (
    sa.update(Post).where(Post.id == sa.bindparam("post")).values(image_count=IMAGE_COUNT)
)
IMAGES_OF_POST = IMAGES.where(Image.post_id == sa.bindparam("post")).order_by(
    Image.created_at, Image.id
)
IMAGES_OF_POSTS = IMAGES.where(Image.post_id.in_(sa.bindparam("posts", expanding=True))).order_by(
    Image.created_at, Image.id
)
IMAGE = IMAGES.where(Image.id == sa.bindparam("id"))
_WITH_AUTHOR = IMAGE.add_columns(Post.author_id.label("author_id")).join(Image.post)
IMAGE_FILE = sa.select(Image.media_type, ImageData.data).join_from(ImageData, Image)
IMAGE_FILE = IMAGE_FILE.where(Image.id == sa.bindparam("id"), _EXISTS)
IMAGE_TYPE = sa.select(Image.media_type).where(Image.id == sa.bindparam("id"), _EXISTS)
# Of a post with several thumbnails, the second comes with the text, which says which is the first.
_NUMBERED = (
    sa.select(
        Image.post_id,
        Image.id,
        Thumbnail.width,
        Thumbnail.height,
        sa.func.row_number()
        .over(partition_by=Image.post_id, order_by=(Image.created_at, Image.id))
        .label("number"),
    )
    .join(Thumbnail, Thumbnail.image_id == Image.id)
    .where(Image.post_id.in_(sa.bindparam("posts", expanding=True)))
    .subquery()
)
_TEXT = sa.select(Post.content).where(Post.id == _NUMBERED.c.post_id).scalar_subquery()
THUMBNAILS_OF_POSTS = sa.select(_NUMBERED, sa.case((_NUMBERED.c.number == 2, _TEXT)).label("text"))
_thumbnails = sa.select().join_from(Thumbnail, Image)
_thumbnails = _thumbnails.where(Thumbnail.image_id == sa.bindparam("id"), _EXISTS)
THUMBNAIL_FILE = _thumbnails.with_only_columns(Thumbnail.data)
THUMBNAIL_ID = _thumbnails.with_only_columns(Thumbnail.image_id)


def get_image(id: str) -> Item:
    """Return an image with `has_thumbnail` and without its bytes. Raise NoSuchImage."""
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


def get_thumbnails_of_posts(ids: Sequence[str]) -> dict[str, Item]:
    """Return the id, width and height of the first thumbnail of each post that has any, by its id.

    The first is that of the image which the page of the post shows first.
    """
    thumbnails: dict[str, list[Row]] = {}
    rows = fetch_all(THUMBNAILS_OF_POSTS, posts=list(ids))
    for row in sorted(rows, key=lambda row: row.number):
        thumbnails.setdefault(row.post_id, []).append(row)
    return {id: _pick(_first_shown(images)) for id, images in thumbnails.items()}


def _pick(row: Row) -> Item:
    """Return an image without the text of its post."""
    return {"id": row.id, "width": row.width, "height": row.height}


def _first_shown(images: Sequence[Row]) -> Row:
    """Return the image of a post that is first in its text. If none is there, return the oldest."""
    first, *others = images
    if others:
        by_id = {image.id: image for image in images}
        shown = (by_id.get(path[1]) for path in IMAGE_PATH.finditer(others[0].text))
        first = next(filter(None, shown), first)
    return first


def count_images_by(author_id: str) -> int:
    """Return how many images the posts of a user have."""
    of_author = sa.select(sa.func.count()).join_from(Image, Post).where(Post.author_id == author_id)
    count: int = fetch_value(of_author)
    return count


def get_image_for_update(id: str) -> Row:
    """Lock the post of an image, and return the image with `author_id`. Raise NoSuchImage."""
    lock_post_of(Image, id)
    image = fetch_one(_WITH_AUTHOR, id=id)
    if image is None:
        raise NoSuchImage
    return image


def list_images_of_posts(ids: Sequence[str]) -> dict[str, list[Item]]:
    """Return the images of several posts as they are sent, by the id of their post."""
    return {
        id: [with_urls(image) for image in images]
        for id, images in get_images_of_posts(ids).items()
    }


def with_urls(image: Item) -> Item:
    """Return an image with the URLs of its file and of its thumbnail, if it has one."""
    id, has_thumbnail = image["id"], image.pop("has_thumbnail")
    thumbnail_url = external_url("images.get_thumbnail", id=id) if has_thumbnail else None
    url = external_url("images.get_image", id=id)
    return {"id": id, "url": url, "thumbnail_url": thumbnail_url} | image
