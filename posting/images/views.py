"""Images of posts and comments: add, read, describe, delete."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any, TypedDict

from flask import Response, current_app
from werkzeug.exceptions import ServiceUnavailable

from posting.accounts.current_user import (
    EDIT_LIMIT,
    READERS,
    SIGNED_IN,
    NotAuthor,
    current_user_id,
    is_author,
    lock_current_user,
    may_delete,
)
from posting.accounts.schemas import RemovalQuery
from posting.attachments import QuotaExceeded, purge_unattached, require_quota, require_space
from posting.config import everyone_may_read
from posting.db.transactions import Row, unit_of_work
from posting.images import codec, schemas, store
from posting.images.models import Image
from posting.images.store import NoSuchImage, NoSuchSize, NoSuchThumbnail
from posting.markdown import shorten
from posting.moderation import log
from posting.posts.schemas import IMAGES_PER_POST
from posting.posts.store import NoSuchPost, get_post_for_update
from posting.web.endpoint import SHARED, Blueprint, Reply
from posting.web.errors import Coded, InvalidInput, Message
from posting.web.etags import Condition, etag_of, if_none_match, immutable_headers
from posting.web.hosts import external_url
from posting.web.limits import Counts, Limit

TOO_MANY_IMAGES = Message(
    "too_many_images", f"A post can have {IMAGES_PER_POST} images. Delete one to add another."
)
UNUSABLE_IMAGE = Message("unusable_image", "{}")

images = Blueprint("images", __name__, description="Images of posts and comments")

# A browser that takes an image or a file for a page runs nothing in it and gives it no origin.
IMAGE_POLICY = "default-src 'none'; sandbox"


class ImageUploadForbidden(NotAuthor):
    description = "Only the author of a post may add images to it."


class ImageEditForbidden(NotAuthor):
    description = "Only the author of the post or comment may edit its images."


class ImageDeletionForbidden(NotAuthor):
    description = "Only the author of the post or comment or a moderator may delete its images."


class ImagesBusy(Coded, ServiceUnavailable):
    error_code = "images_busy"
    description = "The image cannot be processed now; try again."

    def __init__(self) -> None:
        super().__init__(retry_after=2)


class OwnImageInProgress(Coded, ServiceUnavailable):
    error_code = "own_image_in_progress"
    description = "Another image of yours is being processed; send one after the other."

    def __init__(self) -> None:
        super().__init__(retry_after=2)


# Attempts, because decoding is what costs. If only the member's own images keep the service busy,
# the attempt counts.
IMAGE_LIMIT = Limit(
    "images", "LIMIT_IMAGES", current_user_id, Counts.ATTEMPTS, refunded=(ImagesBusy,)
)


def prepare_image(form: dict[str, Any]) -> codec.ReencodedImage:
    """Decode and encode the file of an upload, if the current user may add an image."""
    with unit_of_work():
        purge_unattached(current_user_id())
    require_space(Image, current_user_id())
    return _reencode(form)


def prepare_image_of_post(id: str, form: dict[str, Any]) -> codec.ReencodedImage:
    """Decode and encode the file of an upload, if the current user may add it to the post."""
    with unit_of_work():
        _lock_post_with_space(id)
        purge_unattached(current_user_id())
    require_quota(current_user_id())
    return _reencode(form)


def _reencode(form: dict[str, Any]) -> codec.ReencodedImage:
    with decoding():
        return codec.reencode(form["file"], max_bytes=current_app.config["MAX_IMAGE_BYTES"])


@contextmanager
def decoding() -> Iterator[None]:
    """Take the current user's place in the queue of the decoder, and turn its errors into ours."""
    try:
        with codec.place_of(current_user_id()):
            yield
    except codec.ImageError as error:
        raise InvalidInput.at("/file", UNUSABLE_IMAGE.format(error)) from None
    except codec.OwnImageError:
        raise OwnImageInProgress from None
    except codec.BusyError:
        raise ImagesBusy from None


@images.post(
    "/images",
    access=SIGNED_IN,
    limits=[IMAGE_LIMIT],
    form=schemas.ImageUpload(),
    prepare=prepare_image,
    idempotent=True,
    status=201,
    returns=schemas.Image(),
    headers=["Location"],
    errors=[ImagesBusy, OwnImageInProgress, QuotaExceeded],
)
def create_unattached_image(form: dict[str, Any], prepared: codec.ReencodedImage) -> Reply:
    """Send an image before the post or comment that will have it.

    Then name its ID in `images` of the post or comment. Until then, only you can read it, by
    `GET /users/me/images/{id}`, and its `url` responds with 404. After a day it is deleted. You can
    have 40 such images. The rules for files are those of `POST /posts/{id}/images`.
    """
    lock_current_user(exclusively=True)  # so that two of their images do not exceed the quota
    owner = current_user_id()
    require_space(Image, owner, len(prepared.data))
    image = store.insert_image(None, owner, prepared, form.get("alt"))
    return image, {"Location": external_url("images.get_unattached_image", id=image["id"])}


@images.post(
    "/posts/<nanoid:id>/images",
    access=SIGNED_IN,
    limits=[IMAGE_LIMIT],
    form=schemas.ImageUpload(),
    prepare=prepare_image_of_post,
    idempotent=True,
    status=201,
    returns=schemas.Image(),
    headers=["Location"],
    errors=[ImageUploadForbidden, NoSuchPost, ImagesBusy, OwnImageInProgress, QuotaExceeded],
)
def create_image(id: str, form: dict[str, Any], prepared: codec.ReencodedImage) -> Reply:
    """Add an image to your own post: a PNG, JPEG, WebP or GIF.

    It has at most 25 megapixels and 16,384 pixels on a side; a post has at most ten images. An
    animation has at most 1,000 frames, 9 megapixels in one of them and 40 in all. The image is
    encoded again, upright and without metadata; animations are kept. It gets a thumbnail, and a
    large image gets smaller sizes.
    """
    _lock_post_with_space(id, exclusively=True)
    owner = current_user_id()
    require_quota(owner, len(prepared.data))
    image = store.insert_image(id, owner, prepared, form.get("alt"))
    return image, {"Location": image["url"]}


@images.get("/users/me/images", access=SIGNED_IN, returns=schemas.Image(many=True))
def list_unattached_images() -> Reply:
    """List your images that no post or comment has yet, 40 at most."""
    return store.list_unattached_images(current_user_id())


@images.delete(
    "/users/me/images/<nanoid:id>",
    access=SIGNED_IN,
    conditional=True,
    status=204,
    errors=[NoSuchImage],
)
def delete_unattached_image(id: str, condition: Condition) -> Reply:
    """Delete an image of yours, unless a post or comment has it."""
    image = store.lock_unattached_image(id, current_user_id())
    condition.require(id, updated_at=datetime.fromisoformat(image.updated_at))
    store.delete_image(image)
    return None


@images.get(
    "/users/me/images/<nanoid:id>",
    access=SIGNED_IN,
    returns={"type": "string", "format": "binary"},
    media_type="image/*",
    errors=[NoSuchImage],
)
def get_unattached_image(id: str) -> Reply:
    """Read an image of yours that no post or comment has yet, small if it has sizes."""
    media_type, data = store.get_preview(id, current_user_id())
    headers = {
        "ETag": f'"{id}"',
        "Content-Security-Policy": IMAGE_POLICY,
        "Cross-Origin-Resource-Policy": _own_pages(),
    }
    return Response(data, headers=headers, content_type=media_type)


@images.get(
    "/images/<nanoid:id>",
    access=READERS,
    cache=SHARED,
    returns={"type": "string", "format": "binary"},
    media_type="image/*",
    errors=[NoSuchImage],
)
def get_image(id: str) -> Reply:
    """Read an image. It never changes, so it can be cached forever."""
    return send_image(id, **readers())


def send_image(id: str, *, is_public: bool, shown_on: str) -> Response:
    """Return the response with the file of an image. Raise NoSuchImage.

    `shown_on` says on which pages browsers show it, as `Cross-Origin-Resource-Policy` does.
    """
    file = store.get_file(id, without_data=if_none_match(id))
    headers = headers_of_file(id, is_public=is_public, shown_on=shown_on)
    return Response(getattr(file, "data", b""), headers=headers, content_type=file.media_type)


@images.get(
    "/images/<nanoid:id>/thumbnail",
    access=READERS,
    cache=SHARED,
    returns={"type": "string", "format": "binary"},
    media_type="image/webp",
    errors=[NoSuchThumbnail],
)
def get_thumbnail(id: str) -> Reply:
    """Read a small copy of an image. It never changes, so it can be cached forever."""
    return _send_webp(id, store.get_thumbnail(id, without_data=if_none_match(id)))


@images.get(
    "/images/<nanoid:id>/<any('640','1600'):side>",
    access=READERS,
    cache=SHARED,
    returns={"type": "string", "format": "binary"},
    media_type="image/webp",
    errors=[NoSuchSize],
)
def get_size(id: str, side: str) -> Reply:
    """Read an image in a size for pages. It never changes, so it can be cached forever."""
    return _send_webp(id, store.get_size(id, int(side), without_data=if_none_match(id)))


def _send_webp(id: str, file: Row) -> Response:
    """Return the response with a small copy of an image."""
    data, headers = getattr(file, "data", b""), headers_of_file(id, **readers())
    return Response(data, headers=headers, content_type="image/webp")


@images.get(
    "/images/<nanoid:id>/metadata",
    access=READERS,
    cache=SHARED,
    returns=schemas.Image(),
    errors=[NoSuchImage],
)
def get_image_metadata(id: str) -> Reply:
    """Read the metadata of an image."""
    return store.get_image(id)


@images.patch(
    "/images/<nanoid:id>",
    access=SIGNED_IN,
    limits=[EDIT_LIMIT],
    body=schemas.ImageChange(),
    conditional=True,
    returns=schemas.Image(),
    errors=[ImageEditForbidden, NoSuchImage],
)
def edit_image(id: str, body: dict[str, Any], condition: Condition) -> Reply:
    """Change the text alternative of an image of your own post or comment, or of none."""
    image = store.get_image_for_update(id, current_user_id())
    if not is_author(image.author_id):
        raise ImageEditForbidden
    _require_match(condition, image)
    store.edit_image(image, body)
    return store.get_image(id, owner_id=current_user_id())


@images.delete(
    "/images/<nanoid:id>",
    access=SIGNED_IN,
    query=RemovalQuery(),
    conditional=True,
    status=204,
    errors=[ImageDeletionForbidden, NoSuchImage],
)
def delete_image(id: str, query: dict[str, str], condition: Condition) -> Reply:
    """Delete your own image, or any image of a post or comment as a moderator."""
    image = store.get_image_for_update(id, current_user_id())
    if not may_delete(image.author_id):
        raise ImageDeletionForbidden
    _require_match(condition, image)
    alt, reason = image.alt and shorten(image.alt), query.get("reason")
    log.record_removal(
        "image", id, image.author_id, excerpt=alt, reason=reason, post_id=image.post_id
    )
    store.delete_image(image)
    return None


class Readers(TypedDict):
    """The readers of images: all or members only, and the pages on which browsers show images."""

    is_public: bool
    shown_on: str


def readers() -> Readers:
    """Return who may read images, by the settings.

    Feed readers and apps of other origins show public images. Otherwise, they could tell whether
    somebody is a member by whether their browser can show an image.
    """
    if everyone_may_read(current_app.config):
        return {"is_public": True, "shown_on": "cross-origin"}
    return {"is_public": False, "shown_on": _own_pages()}


def _own_pages() -> str:
    return "same-site" if current_app.config["TRUSTED_ORIGINS"] else "same-origin"


def headers_of_file(id: str, *, is_public: bool, shown_on: str) -> dict[str, str]:
    """Return the headers of an image or a file, which never changes."""
    headers = immutable_headers(id, is_public=is_public)
    return headers | {
        "Content-Security-Policy": IMAGE_POLICY,
        "Cross-Origin-Resource-Policy": shown_on,
    }


def _require_match(condition: Condition, image: Row) -> None:
    """Raise 412 unless the preconditions hold for the ETag of the metadata, or of the image."""
    etag = etag_of(store.get_image(image.id, owner_id=current_user_id()))
    updated_at = image.updated_at
    condition.require(etag, image.id, updated_at=datetime.fromisoformat(updated_at))


def _lock_post_with_space(id: str, *, exclusively: bool = False) -> None:
    """Lock the current user's post if it can get another image. Raise 401, 403, 404 or 422."""
    lock_current_user(exclusively=exclusively)
    post = get_post_for_update(id)
    if not is_author(post.author_id):
        raise ImageUploadForbidden
    if post.image_count >= IMAGES_PER_POST:
        raise InvalidInput.at("/file", TOO_MANY_IMAGES)
