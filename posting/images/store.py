"""The SQL of images: their metadata, bytes, thumbnails and sizes.

What they share with files is in `attachments`.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from posting import attachments
from posting.changes import store as changes
from posting.db.editing import edit
from posting.db.purge import purge_expired
from posting.db.transactions import Row, execute, fetch_all, fetch_one, fetch_value
from posting.db.types import ID_LENGTH, now
from posting.images import schemas
from posting.images.codec import SIZES, ReencodedImage, Renditions
from posting.images.models import Image, ImageData, ImageSize, Thumbnail
from posting.posts.models import Post
from posting.web.errors import NoSuch
from posting.web.hosts import external_url
from posting.web.schemas import Item, columns, insert, select, to_item, to_items

MAX_PURGED = 10  # expired images with each new one, since each may have megabytes
# The path of an image in a text, but not that of its thumbnail or of a size.
IMAGE_PATH = re.compile(rf"/images/([\w-]{{{ID_LENGTH}}})(?![\w/-])", re.ASCII)


class NoSuchImage(NoSuch, thing="image"):
    pass


class NoSuchThumbnail(NoSuch, thing="thumbnail"):
    pass


class NoSuchSize(NoSuch, thing="size"):
    pass


_EXISTS, _IS_FREE = attachments.is_shown(Image), attachments.is_free(Image)
_IS_IT = sa.and_(Image.id == sa.bindparam("id"), _EXISTS)
_IMAGES = select(schemas.Image, Image).add_columns(Image.has_thumbnail.label("has_thumbnail"))
# An image has a row for each of its sizes, or one without `side`.
_SIZE = {"side": ImageSize.side, "side_width": ImageSize.width, "side_height": ImageSize.height}
_ORDER = (Image.position, Image.created_at, Image.id)
_IMAGES = (
    _IMAGES.add_columns(*(column.label(name) for name, column in _SIZE.items()))
    .outerjoin(ImageSize, ImageSize.image_id == Image.id)
    .order_by(*_ORDER, ImageSize.side)
)
_COLUMNS = columns(schemas.Image, Image)
_INSERT = insert(schemas.Image, Image)
_OF_POSTS = _IMAGES.where(
    _EXISTS, Image.post_id.in_(sa.bindparam("posts", expanding=True)), Image.comment_id.is_(None)
)
_OF_COMMENTS = _IMAGES.where(
    _EXISTS, Image.comment_id.in_(sa.bindparam("comments", expanding=True))
)
_IMAGE = _IMAGES.where(Image.id == sa.bindparam("id"), sa.or_(_EXISTS, _IS_FREE))
_FREE = _IMAGES.where(_IS_FREE)
_PREVIEW = (
    sa.select(Image.media_type, ImageSize.data.label("size_data"), ImageData.data)
    .join(ImageData, ImageData.image_id == Image.id)
    .outerjoin(ImageSize, sa.and_(ImageSize.image_id == Image.id, ImageSize.side == min(SIZES)))
    .where(Image.id == sa.bindparam("id"), _IS_FREE)
)
_TYPE = sa.select(Image.media_type).where(_IS_IT)
_FILE = sa.select(Image.media_type, ImageData.data).join_from(ImageData, Image).where(_IS_IT)
_THUMBNAIL = sa.select(Thumbnail.image_id).join_from(Thumbnail, Image).where(_IS_IT)
_THUMBNAIL_FILE = _THUMBNAIL.add_columns(Thumbnail.data)
_IS_SIZE = sa.and_(_IS_IT, ImageSize.side == sa.bindparam("side"))
_HAS_SIZE = sa.select(ImageSize.side).join_from(ImageSize, Image).where(_IS_SIZE)
_SIZE_FILE = _HAS_SIZE.add_columns(ImageSize.data)
# Of a post with several thumbnails, the second comes with the text, which says which is the first.
_NUMBERED = (
    sa.select(
        Image.post_id,
        Image.id,
        Thumbnail.width,
        Thumbnail.height,
        sa.func.row_number().over(partition_by=Image.post_id, order_by=_ORDER).label("number"),
    )
    .join(Thumbnail, Thumbnail.image_id == Image.id)
    .where(Image.post_id.in_(sa.bindparam("posts", expanding=True)), Image.comment_id.is_(None))
    .subquery()
)
_TEXT = sa.select(Post.content).where(Post.id == _NUMBERED.c.post_id).scalar_subquery()
_THUMBNAILS = sa.select(_NUMBERED, sa.case((_NUMBERED.c.number == 2, _TEXT)).label("text"))


def get_image(id: str, owner_id: str | None = None) -> Item:
    """Return an image as it is sent, without its bytes. Raise NoSuchImage.

    With `owner_id`, it may be an image of this user that is not attached.
    """
    images = _with_sizes(fetch_all(_IMAGE, id=id, owner=owner_id))
    if not images:
        raise NoSuchImage
    return _with_urls(images[0])


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


def get_size(id: str, side: int, *, without_data: bool) -> Row:
    """Return an image in a size, perhaps without its bytes. Raise NoSuchSize."""
    row = fetch_one(_HAS_SIZE if without_data else _SIZE_FILE, id=id, side=side)
    if row is None:
        raise NoSuchSize
    return row


def get_image_for_update(id: str, user_id: str) -> Row:
    """Lock an image for a user, and return it with `author_id`. Raise NoSuchImage.

    This locks the post of the image, or the image itself if it is not attached. Then only its owner
    may know of it.
    """
    return _found(attachments.get_for_update(Image, _COLUMNS, id, user_id))


def lock_unattached_image(id: str, user_id: str) -> Row:
    """Lock an image of a user that is not attached, and return it. Raise NoSuchImage."""
    return _found(attachments.lock_unattached(Image, _COLUMNS, id, user_id))


def list_unattached_images(owner_id: str) -> list[Item]:
    """Return the images of a user that are not attached yet, as they are sent, oldest first."""
    return [_with_urls(image) for image in _with_sizes(fetch_all(_FREE, owner=owner_id))]


def get_preview(id: str, owner_id: str) -> tuple[str, bytes]:
    """Return the media type and bytes of an image that is not attached, in its smallest size.

    Raise NoSuchImage.
    """
    row = _found(fetch_one(_PREVIEW, id=id, owner=owner_id))
    return ("image/webp", row.size_data) if row.size_data else (row.media_type, row.data)


def _found(row: Row | None) -> Row:
    if row is None:
        raise NoSuchImage
    return row


def get_images_of_posts(ids: Sequence[str]) -> dict[str, list[Item]]:
    """Return the images of posts without URLs, in their order, by the id of their post."""
    images: dict[str, list[Item]] = {id: [] for id in ids}
    for image in _with_sizes(fetch_all(_OF_POSTS, posts=list(ids))) if ids else ():
        images[image["post_id"]].append(image)
    return images


def list_images_of_posts(ids: Sequence[str]) -> dict[str, list[Item]]:
    """Return the images of posts as they are sent, in their order, by the id of their post."""
    return {
        id: [_with_urls(image) for image in images]
        for id, images in get_images_of_posts(ids).items()
    }


def get_images_of_comments(ids: Sequence[str]) -> dict[str, list[Item]]:
    """Return the images of comments without URLs, in their order, by the id of their comment."""
    images: dict[str, list[Item]] = {id: [] for id in ids}
    for image in _with_sizes(fetch_all(_OF_COMMENTS, comments=list(ids))) if ids else ():
        images[image["comment_id"]].append(image)
    return images


def list_images_of_comments(ids: Sequence[str]) -> dict[str, list[Item]]:
    """Return the images of comments as they are sent, in order, by the id of their comment."""
    return {
        id: [_with_urls(image) for image in images]
        for id, images in get_images_of_comments(ids).items()
    }


def add_images_to_comments(comments: list[Item]) -> list[Item]:
    """Replace `image_count` of comments by their images as they are sent. Return the comments."""
    found = list_images_of_comments([each["id"] for each in comments if each["image_count"]])
    for comment in comments:
        comment["images"] = found.get(comment["id"], [])
        del comment["image_count"]
    return comments


def _with_sizes(rows: Sequence[Row]) -> list[Item]:
    """Return the images of rows of `_IMAGES`, with the side, width and height of their `sizes`."""
    images: dict[str, Item] = {}
    for row in to_items(rows):
        side, width, height = (row.pop(name) for name in _SIZE)
        image = images.setdefault(row["id"], row | {"sizes": []})
        if side:
            image["sizes"].append((side, width, height))
    return list(images.values())


def _with_urls(image: Item) -> Item:
    """Return an image with the URLs of its file, its sizes and, if it has one, its thumbnail."""
    id, has_thumbnail, sizes = image["id"], image.pop("has_thumbnail"), image.pop("sizes")
    urls = {
        "id": id,
        "url": external_url("images.get_image", id=id),
        "thumbnail_url": external_url("images.get_thumbnail", id=id) if has_thumbnail else None,
        "sizes": [
            {
                "width": width,
                "height": height,
                "url": external_url("images.get_size", id=id, side=str(side)),
            }
            for side, width, height in sizes
        ],
    }
    return urls | image


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


def count_images_by(author_id: str) -> int:
    """Return how many images the posts and comments of a user have."""
    of_author = sa.select(sa.func.count()).where(Image.owner_id == author_id, _EXISTS)
    count: int = fetch_value(of_author)
    return count


def insert_image(
    post_id: str | None, owner_id: str, image: ReencodedImage, alt: str | None
) -> Item:
    """Add an image to a locked post, or to none, and return it as it is sent."""
    is_last = sa.select(sa.func.coalesce(sa.func.max(Image.position), 0))
    is_last = is_last.where(Image.post_id == post_id, Image.comment_id.is_(None))
    inserted = execute(
        _INSERT,
        post_id=post_id,
        comment_id=None,
        owner_id=owner_id,
        media_type=image.media_type,
        width=image.width,
        height=image.height,
        size=len(image.data),
        alt=alt,
        position=fetch_value(is_last) if post_id else 0,
        unattached_since=None if post_id else now(),
        resized_at=now(),
    )
    item = to_item(inserted.one())
    execute(sa.insert(ImageData), image_id=item["id"], data=image.data)
    thumbnail, sizes = image.renditions.thumbnail, image.renditions.sizes
    execute(sa.insert(Thumbnail), image_id=item["id"], **vars(thumbnail))
    if sizes:
        execute(sa.insert(ImageSize), size_rows(item["id"], image.renditions))
    if post_id:
        attachments.count(Image, post_id)
        changes.record_change("image", item["id"], post_id, "created")
    purge_expired(Image, most=MAX_PURGED)
    shown = [(side, size.width, size.height) for side, size in sizes.items()]
    return _with_urls(item | {"has_thumbnail": True, "sizes": shown})


def set_images(
    ids: Sequence[str], owner_id: str, *, post_id: str, comment_id: str | None = None
) -> bool:
    """Give images to a locked post, or to a comment on it. Return whether this changes anything.

    See `attachments.attach`.
    """
    attached = attachments.attach(Image, ids, owner_id, post_id=post_id, comment_id=comment_id)
    if attached is None:
        return False
    if attached.deleted:
        changes.record_changes("image", dict.fromkeys(attached.deleted, post_id), "deleted")
    if attached.created:
        changes.record_changes("image", dict.fromkeys(attached.created, post_id), "created")
    return True


def size_rows(image_id: str, renditions: Renditions) -> list[Item]:
    """Return the rows of the sizes of an image."""
    return [
        {"image_id": image_id, "side": side, **vars(size)}
        for side, size in renditions.sizes.items()
    ]


def edit_image(image: Row, values: Mapping[str, Any]) -> None:
    """Edit a locked image."""
    if edit(Image, image, values) and image.post_id:
        changes.record_change("image", image.id, image.post_id, "edited")


def delete_image(image: Row) -> None:
    """Delete a locked image."""
    execute(sa.delete(Image).where(Image.id == image.id))
    if image.post_id:
        attachments.count(Image, image.post_id, image.comment_id)
        changes.record_change("image", image.id, image.post_id, "deleted")


def delete_images_of_comments(ids: Collection[str]) -> None:
    """Delete the images of comments on locked posts."""
    deleted = {row.id: row.post_id for row in attachments.delete_of_comments(Image, ids)}
    if deleted:
        changes.record_changes("image", deleted, "deleted")
