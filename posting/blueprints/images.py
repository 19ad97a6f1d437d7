"""Images of posts: add, read, describe, delete."""

from typing import Any

import sqlalchemy as sa
from flask import Response, current_app
from werkzeug.exceptions import Forbidden, ServiceUnavailable

from posting.auth.login import SIGNED_IN, current_user, lock_current_user, user_id
from posting.db import queries
from posting.db.engine import db, fetch_one, insert
from posting.db.errors import NoSuchImage, NoSuchPost
from posting.db.locks import get_image_for_update, get_post_for_update
from posting.db.models import Image, ImageData
from posting.domain import imaging, moderation
from posting.http import idempotency, rate_limits
from posting.http.endpoint import PUBLIC, Blueprint, Reply
from posting.http.errors import InvalidInput
from posting.http.etags import if_none_match, immutable_headers
from posting.http.rate_limits import Counts, Limit
from posting.http.urls import with_url
from posting.schemas import images as schemas
from posting.schemas.fields import IMAGES_PER_POST
from posting.schemas.messages import Message

TOO_MANY_IMAGES = Message(
    "too_many_images", f"The post has {IMAGES_PER_POST} images, the most it can."
)

# Attempts, because decoding is what costs.
LIMIT = Limit("images", "LIMIT_IMAGES", user_id, Counts.ATTEMPTS)

images = Blueprint("images", __name__, description="Images of posts")

# A browser that takes an image for a page runs nothing in it and gives it no origin. Images are
# public, and feed readers and apps of other origins show them.
IMAGE_POLICY = {
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "Cross-Origin-Resource-Policy": "cross-origin",
}


class ImageUploadForbidden(Forbidden):
    error_code = "not_author"
    description = "Only the author of a post may add images to it."


class ImageEditForbidden(Forbidden):
    error_code = "not_author"
    description = "Only the author of the post may edit its images."


class ImageDeletionForbidden(Forbidden):
    error_code = "not_author"
    description = "Only the author of the post or a moderator may delete its images."


class ImagesBusy(ServiceUnavailable):
    error_code = "images_busy"
    description = "The image cannot be processed now; try again."


@images.post(
    "/posts/<nanoid:id>/images",
    access=SIGNED_IN,
    limit=LIMIT,
    form=schemas.ImageUpload(),
    idempotent=True,
    status=201,
    returns=schemas.Image(),
    headers=["Location"],
    errors=[ImageUploadForbidden, NoSuchPost],
)
def create_image(id: str, form: dict[str, Any]) -> Reply:
    """Add an image to your own post: a PNG, JPEG, WebP or GIF.

    It has at most 25 megapixels and 16,384 pixels on a side; a post has at most ten images. An
    animation has at most 1,000 frames, 9 megapixels in one of them and 40 in all. The image is
    encoded again, upright and without metadata; animations are kept.
    """
    _lock_post_with_space(id)
    db.session.commit()  # decoding takes seconds: hold no transaction meanwhile
    try:
        data = imaging.reencode(form["file"], max_bytes=current_app.config["MAX_IMAGE_BYTES"])
    except imaging.ImageError as error:
        raise InvalidInput.at("/file", Message("unusable_image", str(error))) from None
    except imaging.BusyError:
        rate_limits.refund()
        db.session.commit()
        raise ImagesBusy(retry_after=2) from None
    _lock_post_with_space(id)
    row = insert(
        Image,
        post_id=id,
        media_type=data.media_type,
        width=data.width,
        height=data.height,
        size=len(data.data),
        alt=form.get("alt"),
    )
    db.session.execute(sa.insert(ImageData).values(image_id=row["id"], data=data.data))
    image = with_url("images.get_image", queries.to_item(row, Image.PUBLIC))
    headers = {"Location": image["url"]}
    idempotency.save(image, headers)
    db.session.commit()
    return image, headers


@images.get(
    "/images/<nanoid:id>",
    access=PUBLIC,
    returns={"type": "string", "format": "binary"},
    media_type="image/*",
    errors=[NoSuchImage],
)
def get_image(id: str) -> Reply:
    """Read an image. It never changes, so it can be cached forever."""
    row = fetch_one(queries.IMAGE_TYPE if if_none_match(id) else queries.IMAGE_FILE, id=id)
    if row is None:
        raise NoSuchImage
    headers = immutable_headers(id) | IMAGE_POLICY
    return Response(getattr(row, "data", b""), headers=headers, content_type=row.media_type)


@images.patch(
    "/images/<nanoid:id>",
    access=SIGNED_IN,
    body=schemas.ImageChange(),
    returns=schemas.Image(),
    errors=[ImageEditForbidden, NoSuchImage],
)
def edit_image(id: str, body: dict[str, Any]) -> Reply:
    """Change the text alternative of an image of your own post."""
    image = get_image_for_update(id)
    if not image.is_editable_by(current_user):
        raise ImageEditForbidden
    image.assign(body)
    db.session.flush()
    edited = queries.get_image(id)
    db.session.commit()
    return with_url("images.get_image", edited)


@images.delete(
    "/images/<nanoid:id>",
    access=SIGNED_IN,
    status=204,
    errors=[ImageDeletionForbidden, NoSuchImage],
)
def delete_image(id: str) -> Reply:
    """Delete an image of your own post, or any image as a moderator."""
    image = get_image_for_update(id)
    if not image.is_deletable_by(current_user):
        raise ImageDeletionForbidden
    moderation.record_deletion("image", id, image.post.author_id)
    db.session.delete(image)
    db.session.commit()
    return None


def _lock_post_with_space(id: str) -> None:
    """Lock the current user's post if it can get another image. Raise 401, 403, 404 or 422."""
    lock_current_user()
    if not get_post_for_update(id).is_editable_by(current_user):
        raise ImageUploadForbidden
    count = sa.select(sa.func.count()).where(Image.post_id == id)
    if db.session.scalar(count) == IMAGES_PER_POST:
        raise InvalidInput.at("/file", TOO_MANY_IMAGES)
