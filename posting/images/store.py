"""The SQL of images: their metadata, files and thumbnails."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from posting.changes import store as changes
from posting.db.editing import edit
from posting.db.transactions import Row, execute, fetch_all, fetch_one, fetch_value
from posting.db.types import ID_LENGTH
from posting.images import schemas
from posting.images.codec import ReencodedImage
from posting.images.models import Image, ImageData, Thumbnail
from posting.posts.models import DELETED_POSTS, Post
from posting.web.problems import NoSuch
from posting.web.rows import Item, insert, pick, select, to_item, to_items
from posting.web.urls import external_url

# The path of an image in a text, but not that of its thumbnail.
IMAGE_PATH = re.compile(rf"/images/([\w-]{{{ID_LENGTH}}})(?![\w/-])", re.ASCII)


class NoSuchImage(NoSuch, thing="image"):
    pass


class NoSuchThumbnail(NoSuch, thing="thumbnail"):
    pass


_EXISTS = Image.post_id.not_in(DELETED_POSTS)
_IS_IT = sa.and_(Image.id == sa.bindparam("id"), _EXISTS)
_IMAGES = select(schemas.Image, Image).add_columns(Image.has_thumbnail.label("has_thumbnail"))
_IMAGES = _IMAGES.where(_EXISTS)
_INSERT = insert(schemas.Image, Image)
IMAGE_COUNT = sa.select(sa.func.count()).where(Image.post_id == Post.id).scalar_subquery()
_COUNT_IMAGES = (
    sa.update(Post).where(Post.id == sa.bindparam("post")).values(image_count=IMAGE_COUNT)
)
_OF_POSTS = _IMAGES.where(Image.post_id.in_(sa.bindparam("posts", expanding=True))).order_by(
    Image.created_at, Image.id
)
_IMAGE = _IMAGES.where(_IS_IT)
_WITH_AUTHOR = _IMAGE.add_columns(Post.author_id.label("author_id")).join(Image.post)
_LOCK_POST = sa.select(Post.id).join(Image, Image.post_id == Post.id).where(_IS_IT)
_LOCK_POST = _LOCK_POST.with_for_update(of=Post)
_TYPE = sa.select(Image.media_type).where(_IS_IT)
_FILE = sa.select(Image.media_type, ImageData.data).join_from(ImageData, Image).where(_IS_IT)
_THUMBNAIL = sa.select(Thumbnail.image_id).join_from(Thumbnail, Image).where(_IS_IT)
_THUMBNAIL_FILE = _THUMBNAIL.add_columns(Thumbnail.data)
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
_THUMBNAILS = sa.select(_NUMBERED, sa.case((_NUMBERED.c.number == 2, _TEXT)).label("text"))


def get_image(id: str) -> Item:
    """Return an image as it is sent, without its bytes. Raise NoSuchImage."""
    return _with_urls(to_item(_found(fetch_one(_IMAGE, id=id))))


def get_file(id: str, *, without_data: bool) -> Row:
    """Return the media type of an image and, unless `without_data`, its bytes.

    Raise NoSuchImage.
    """
    return _found(fetch_one(_TYPE if without_data else _FILE, id=id))


def get_thumbnail(id: str, *, without_data: bool) -> Row:
    """Return the thumbnail of an image, perhaps without its bytes. Raise NoSuchThumbnail."""
    row = fetch_one(_THUMBNAIL if without_data else _THUMBNAIL_FILE, id=id)
    if row is None:
        raise NoSuchThumbnail
    return row


def get_image_for_update(id: str) -> Row:
    """Lock the post of an image, and return the image with `author_id`. Raise NoSuchImage."""
    execute(_LOCK_POST, id=id)
    return _found(fetch_one(_WITH_AUTHOR, id=id))


def _found(row: Row | None) -> Row:
    if row is None:
        raise NoSuchImage
    return row


def get_images_of_posts(ids: Sequence[str]) -> dict[str, list[Item]]:
    """Return the images of posts without URLs, oldest first, by the id of their post."""
    images: dict[str, list[Item]] = {id: [] for id in ids}
    for image in to_items(fetch_all(_OF_POSTS, posts=list(ids))):
        images[image["post_id"]].append(image)
    return images


def list_images_of_posts(ids: Sequence[str]) -> dict[str, list[Item]]:
    """Return the images of posts as they are sent, oldest first, by the id of their post."""
    return {
        id: [_with_urls(image) for image in images]
        for id, images in get_images_of_posts(ids).items()
    }


def _with_urls(image: Item) -> Item:
    """Return an image with the URLs of its file and of its thumbnail, if it has one."""
    id, has_thumbnail = image["id"], image.pop("has_thumbnail")
    thumbnail_url = external_url("images.get_thumbnail", id=id) if has_thumbnail else None
    url = external_url("images.get_image", id=id)
    return {"id": id, "url": url, "thumbnail_url": thumbnail_url} | image


def find_thumbnails_of_posts(ids: Sequence[str]) -> dict[str, Item]:
    """Return the id, width and height of the first thumbnail of each post that has any, by its id.

    The first is that of the image which the page of the post shows first.
    """
    thumbnails: dict[str, list[Row]] = {}
    rows = fetch_all(_THUMBNAILS, posts=list(ids))
    for row in sorted(rows, key=lambda row: row.number):
        thumbnails.setdefault(row.post_id, []).append(row)
    firsts = {id: _first_shown(images) for id, images in thumbnails.items()}
    return {
        id: {"id": row.id, "width": row.width, "height": row.height} for id, row in firsts.items()
    }


def _first_shown(images: Sequence[Row]) -> Row:
    """Return the image of a post that is first in its text. If none is there, return the oldest."""
    first, *others = images
    if others:
        by_id = {image.id: image for image in images}
        shown = (by_id.get(path[1]) for path in IMAGE_PATH.finditer(others[0].text))
        first = next(filter(None, shown), first)
    return first


def describe_image(image: Row) -> Item:
    """Return a row of `get_image_for_update` as it is sent."""
    return _with_urls(pick(schemas.Image, image) | {"has_thumbnail": image.has_thumbnail})


def count_images_by(author_id: str) -> int:
    """Return how many images the posts of a user have."""
    of_author = sa.select(sa.func.count()).join_from(Image, Post).where(Post.author_id == author_id)
    count: int = fetch_value(of_author)
    return count


def insert_image(post_id: str, image: ReencodedImage, alt: str | None) -> Item:
    """Add an image to a locked post, and return it as it is sent."""
    inserted = execute(
        _INSERT,
        post_id=post_id,
        media_type=image.media_type,
        width=image.width,
        height=image.height,
        size=len(image.data),
        alt=alt,
    )
    item = to_item(inserted.one())
    execute(sa.insert(ImageData), image_id=item["id"], data=image.data)
    execute(sa.insert(Thumbnail), image_id=item["id"], **vars(image.thumbnail))
    count_images(post_id)
    changes.record("image", item["id"], post_id, "created")
    return _with_urls(item | {"has_thumbnail": True})


def edit_image(image: Row, values: Mapping[str, Any]) -> None:
    """Edit an image of a locked post."""
    if edit(Image, image, values):
        changes.record("image", image.id, image.post_id, "edited")


def delete_image(image: Row) -> None:
    """Delete an image of a locked post."""
    execute(sa.delete(Image).where(Image.id == image.id))
    count_images(image.post_id)
    changes.record("image", image.id, image.post_id, "deleted")


def count_images(post_id: str) -> None:
    """Store in a locked post how many images it has."""
    execute(_COUNT_IMAGES, post=post_id)
