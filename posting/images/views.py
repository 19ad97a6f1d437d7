"""Images of posts: add, read, describe, delete."""

from datetime import datetime
from typing import Any, TypedDict

from flask import Response, current_app
from werkzeug.exceptions import ServiceUnavailable

from posting.accounts.current_user import (
    EDIT_LIMIT,
    READERS,
    SIGNED_IN,
    NotAuthor,
    is_author,
    lock_current_user,
    may_delete,
    user_id,
)
from posting.accounts.schemas import RemovalQuery
from posting.config import everyone_may_read
from posting.db.transactions import Row, unit_of_work
from posting.images import codec, schemas, store
from posting.images.store import NoSuchImage, NoSuchThumbnail
from posting.markdown import shorten
from posting.moderation import log
from posting.posts.schemas import IMAGES_PER_POST
from posting.posts.store import NoSuchPost, get_post_for_update
from posting.web.endpoint import SHARED, Blueprint, Reply
from posting.web.errors import InvalidInput
from posting.web.etags import Condition, etag_of, if_none_match, immutable_headers
from posting.web.limits import Counts, Limit
from posting.web.messages import Message
from posting.web.problems import Coded

TOO_MANY_IMAGES = Message(
    "too_many_images", f"A post can have {IMAGES_PER_POST} images. Delete one to add another."
)
UNUSABLE_IMAGE = Message("unusable_image", "{}")

images = Blueprint("images", __name__, description="Images of posts")

# A browser that takes an image for a page runs nothing in it and gives it no origin.
IMAGE_POLICY = "default-src 'none'; sandbox"


class ImageUploadForbidden(NotAuthor):
    description = "Only the author of a post may add images to it."


class ImageEditForbidden(NotAuthor):
    description = "Only the author of the post may edit its images."


class ImageDeletionForbidden(NotAuthor):
    description = "Only the author of the post or a moderator may delete its images."


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
LIMIT = Limit("images", "LIMIT_IMAGES", user_id, Counts.ATTEMPTS, refunded=(ImagesBusy,))


def reencode(id: str, form: dict[str, Any]) -> codec.ReencodedImage:
    """Decode and encode the file of an upload, if the current user may add it to the post."""
    with unit_of_work():
        _lock_post_with_space(id)
    try:
        with codec.place_of(user_id()):
            return codec.reencode(form["file"], max_bytes=current_app.config["MAX_IMAGE_BYTES"])
    except codec.ImageError as error:
        raise InvalidInput.at("/file", UNUSABLE_IMAGE.format(error)) from None
    except codec.OwnImageError:
        raise OwnImageInProgress from None
    except codec.BusyError:
        raise ImagesBusy from None


@images.post(
    "/posts/<nanoid:id>/images",
    access=SIGNED_IN,
    limits=[LIMIT],
    form=schemas.ImageUpload(),
    prepare=reencode,
    idempotent=True,
    status=201,
    returns=schemas.Image(),
    headers=["Location"],
    errors=[ImageUploadForbidden, NoSuchPost, ImagesBusy, OwnImageInProgress],
)
def create_image(id: str, form: dict[str, Any], prepared: codec.ReencodedImage) -> Reply:
    """Add an image to your own post: a PNG, JPEG, WebP or GIF.

    It has at most 25 megapixels and 16,384 pixels on a side; a post has at most ten images. An
    animation has at most 1,000 frames, 9 megapixels in one of them and 40 in all. The image is
    encoded again, upright and without metadata; animations are kept. It gets a thumbnail.
    """
    _lock_post_with_space(id)
    image = store.insert_image(id, prepared, form.get("alt"))
    return image, {"Location": image["url"]}


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
    return send_image(id, **_readers())


def send_image(id: str, *, is_public: bool, shown_on: str) -> Response:
    """Return the response with the file of an image. Raise NoSuchImage.

    `shown_on` says on which pages browsers show it, as `Cross-Origin-Resource-Policy` does.
    """
    file = store.get_file(id, without_data=if_none_match(id))
    headers = _headers_of_file(id, is_public=is_public, shown_on=shown_on)
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
    """Read a small rendition of an image. It never changes, so it can be cached forever."""
    file = store.get_thumbnail(id, without_data=if_none_match(id))
    headers = _headers_of_file(id, **_readers())
    return Response(getattr(file, "data", b""), headers=headers, content_type="image/webp")


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
    """Change the text alternative of an image of your own post."""
    image = store.get_image_for_update(id)
    if not is_author(image.author_id):
        raise ImageEditForbidden
    _require_match(condition, image)
    store.edit_image(image, body)
    return store.get_image(id)


@images.delete(
    "/images/<nanoid:id>",
    access=SIGNED_IN,
    query=RemovalQuery(),
    conditional=True,
    status=204,
    errors=[ImageDeletionForbidden, NoSuchImage],
)
def delete_image(id: str, query: dict[str, str], condition: Condition) -> Reply:
    """Delete an image of your own post, or any image as a moderator."""
    image = store.get_image_for_update(id)
    if not may_delete(image.author_id):
        raise ImageDeletionForbidden
    _require_match(condition, image)
    alt, reason = image.alt and shorten(image.alt), query.get("reason")
    log.record_removal(
        "image", id, image.author_id, excerpt=alt, reason=reason, post_id=image.post_id
    )
    store.delete_image(image)
    return None


class _Readers(TypedDict):
    """The readers of images: all or members only, and the pages on which browsers show images."""

    is_public: bool
    shown_on: str


def _readers() -> _Readers:
    """Return who may read images, by the settings.

    Feed readers and apps of other origins show public images. Otherwise, they could tell whether
    somebody is a member by whether their browser can show an image.
    """
    if everyone_may_read(current_app.config):
        return {"is_public": True, "shown_on": "cross-origin"}
    own = "same-site" if current_app.config["TRUSTED_ORIGINS"] else "same-origin"
    return {"is_public": False, "shown_on": own}


def _headers_of_file(id: str, *, is_public: bool, shown_on: str) -> dict[str, str]:
    """Return the headers of a file, which never changes."""
    headers = immutable_headers(id, is_public=is_public)
    return headers | {
        "Content-Security-Policy": IMAGE_POLICY,
        "Cross-Origin-Resource-Policy": shown_on,
    }


def _require_match(condition: Condition, image: Row) -> None:
    """Raise 412 unless the preconditions hold for the ETag of the metadata, or of the image."""
    etag, updated_at = etag_of(store.describe_image(image)), image.updated_at
    condition.require(etag, image.id, updated_at=datetime.fromisoformat(updated_at))


def _lock_post_with_space(id: str) -> None:
    """Lock the current user's post if it can get another image. Raise 401, 403, 404 or 422."""
    lock_current_user()
    post = get_post_for_update(id)
    if not is_author(post.author_id):
        raise ImageUploadForbidden
    if post.image_count >= IMAGES_PER_POST:
        raise InvalidInput.at("/file", TOO_MANY_IMAGES)
