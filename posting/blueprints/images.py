"""Images of posts: add, hand out, describe, delete."""

from typing import Any

import sqlalchemy as sa
from flask import Response, current_app
from werkzeug.exceptions import Forbidden, ServiceUnavailable

from posting.auth.sessions import current_user, hold_account, signed_in, user_id
from posting.db import locks
from posting.db.engine import db, select
from posting.db.models import Image, ImageData
from posting.domain import imaging, moderation
from posting.http.endpoint import Blueprint, public
from posting.http.errors import InvalidInput
from posting.http.etags import client_has, immutable
from posting.http.idempotency import IdempotencyKey, idempotent
from posting.http.rate_limits import Charge, Limit, charge, give_back, limited
from posting.http.urls import with_url
from posting.schemas import images as images_schemas
from posting.schemas.fields import IMAGES_PER_POST

LIMIT = Limit("images", "LIMIT_IMAGES")

images = Blueprint("images", __name__, description="What a post shows")

# Even where a browser takes a picture for a page, it may run nothing and has no origin.
PICTURE_POLICY = {"Content-Security-Policy": "default-src 'none'; sandbox"}


class ImageUploadForbidden(Forbidden):
    description = "Only its author may add images to a post."


class ImageEditForbidden(Forbidden):
    description = "Only the author of its post may edit an image."


class ImageDeletionForbidden(Forbidden):
    description = "Only the author of its post or a moderator may delete an image."


@images.post("/posts/<nanoid:id>/images")
@signed_in
@limited(LIMIT, user_id)
@images.arguments(images_schemas.ImageUpload, location="files")
@images.arguments(IdempotencyKey, location="headers")
@idempotent
@images.answers(ImageUploadForbidden, locks.NoSuchPost)
@images.response(201, images_schemas.Image)
def create_image(form: dict[str, Any], id: str) -> Any:
    """Add an image to a post of one's own: a PNG, JPEG, WebP or GIF.

    It has at most 25 megapixels and 16,384 pixels on a side; a post has at most ten images. An
    animation has at most 1,000 frames, 9 megapixels in one of them and 40 in all. The image is
    encoded again, upright and without metadata; animations are kept.
    """
    charges = charge((LIMIT, user_id()))  # each attempt, because decoding is what costs
    db.session.commit()
    _lock_post_with_space(id)
    db.session.commit()  # decoding takes seconds: hold no transaction meanwhile
    picture = _reencode(form["file"], charges)
    _lock_post_with_space(id)
    image = _add(picture, post_id=id, alt=form.get("alt"))
    shown = _shown(image.id)
    return shown, {"Location": shown["url"]}


@images.get("/images/<nanoid:id>")
@public
@images.answers(locks.NoSuchImage)
@images.response(200, {"type": "string", "format": "binary"}, content_type="image/*")
def get_image(id: str) -> Any:
    """Hand out a picture, to be kept for good."""
    data = sa.literal(b"") if client_has(id) else ImageData.data
    stored = sa.select(data, Image.media_type).join_from(ImageData, Image)
    rows = select(stored.where(Image.id == id))
    if not rows:
        raise locks.NoSuchImage
    body, media_type = rows[0]
    return Response(body, headers=immutable(id) | PICTURE_POLICY, content_type=media_type)


@images.patch("/images/<nanoid:id>")
@signed_in
@images.arguments(images_schemas.ImageChange)
@images.answers(ImageEditForbidden, locks.NoSuchImage)
@images.response(200, images_schemas.Image)
def edit_image(changes: dict[str, Any], id: str) -> Any:
    """Describe an image of one's own for those who do not see it."""
    image = locks.get_image_for_update(id)
    if not image.editable_by(current_user()):
        raise ImageEditForbidden
    image.assign(changes)
    db.session.flush()
    shown = _shown(id)
    db.session.commit()
    return shown


@images.delete("/images/<nanoid:id>")
@signed_in
@images.answers(ImageDeletionForbidden, locks.NoSuchImage)
@images.response(204)
def delete_image(id: str) -> Any:
    """Delete an image of one's own, or any image as a moderator."""
    image = locks.get_image_for_update(id)
    if not image.deletable_by(current_user()):
        raise ImageDeletionForbidden
    moderation.record_deletion("image", id, image.post.author_id)
    db.session.delete(image)
    db.session.commit()


def _lock_post_with_space(id: str) -> None:
    """Lock a post of the current user that may get one more image. Errors: 401, 403, 404, 422."""
    hold_account()
    if not locks.get_post_for_update(id).editable_by(current_user()):
        raise ImageUploadForbidden
    count = sa.select(sa.func.count()).where(Image.post_id == id)
    if db.session.scalar(count) == IMAGES_PER_POST:
        raise InvalidInput.at("/file", f"The post has {IMAGES_PER_POST} images, and no more fit.")


def _reencode(data: bytes, charges: list[Charge]) -> imaging.ReencodedImage:
    try:
        return imaging.reencode(data, max_bytes=current_app.config["MAX_IMAGE_BYTES"])
    except imaging.ImageError as error:
        raise InvalidInput.at("/file", str(error)) from None
    except imaging.BusyError:
        give_back(charges)
        db.session.commit()
        detail = "The image cannot be processed now; try again."
        raise ServiceUnavailable(detail, retry_after=2) from None


def _add(picture: imaging.ReencodedImage, **fields: Any) -> Image:
    image = Image(
        media_type=picture.media_type,
        width=picture.width,
        height=picture.height,
        size=len(picture.data),
        **fields,
    )
    db.session.add(image)
    db.session.flush()
    db.session.execute(sa.insert(ImageData).values(image_id=image.id, data=picture.data))
    return image


def _shown(id: str) -> dict[str, Any]:
    row = db.session.execute(Image.listed().where(Image.id == id)).mappings().one()
    return with_url("images.get_image", row)
