"""Avatars: set, read and delete."""

from typing import Any

from flask import Response

from posting.accounts import schemas as accounts
from posting.accounts.current_user import (
    MODERATOR_REQUIRED,
    READERS,
    SIGNED_IN,
    current_user_id,
    lock_current_user,
)
from posting.accounts.schemas import RemovalQuery
from posting.accounts.store import NoSuchUser, get_user, lock_account_to_clear
from posting.avatars import schemas, store
from posting.avatars.store import NoSuchAvatar
from posting.images import codec
from posting.images.views import (
    IMAGE_LIMIT,
    ImagesBusy,
    OwnImageInProgress,
    decoding,
    headers_of_file,
    readers,
)
from posting.moderation import log
from posting.web.endpoint import SHARED, Blueprint, Reply
from posting.web.etags import if_none_match

LARGE, SMALL = codec.FACE_LIMITS

avatars = Blueprint("avatars", __name__, description="Avatars of members")


def prepare_avatar(form: dict[str, Any]) -> dict[int, bytes]:
    """Decode the file of an upload, and make an avatar of it."""
    with decoding():
        return codec.make_faces(form["file"])


@avatars.put(
    "/users/me/avatar",
    access=SIGNED_IN,
    limits=[IMAGE_LIMIT],
    form=schemas.AvatarUpload(),
    prepare=prepare_avatar,
    returns=accounts.User(),
    errors=[ImagesBusy, OwnImageInProgress],
)
def replace_avatar(form: dict[str, Any], prepared: dict[int, bytes]) -> Reply:
    """Set your avatar: a PNG, JPEG, WebP or GIF, of which it shows the square in the middle.

    The limits for images apply. It is stored without metadata, in 256 and 64 pixels.
    """
    lock_current_user(exclusively=True)
    store.replace_avatar(current_user_id(), prepared)
    return get_user(current_user_id())


@avatars.delete("/users/me/avatar", access=SIGNED_IN, status=204)
def delete_own_avatar() -> Reply:
    """Delete your avatar. Always returns 204."""
    lock_current_user(exclusively=True)
    store.delete_avatar(current_user_id())
    return None


@avatars.delete(
    '/users/<nanoid("me"):id>/avatar',
    access=MODERATOR_REQUIRED,
    query=RemovalQuery(),
    status=204,
    errors=[NoSuchUser, NoSuchAvatar],
)
def delete_avatar(id: str, query: dict[str, str]) -> Reply:
    """Delete the avatar of a member."""
    lock_current_user()
    if lock_account_to_clear(id) is None:
        raise NoSuchUser
    if not store.delete_avatar(id):
        raise NoSuchAvatar
    log.record_removal("avatar", id, id, excerpt=None, reason=query.get("reason"))
    return None


@avatars.get(
    "/avatars/<nanoid:id>",
    access=READERS,
    cache=SHARED,
    returns={"type": "string", "format": "binary"},
    media_type="image/webp",
    errors=[NoSuchAvatar],
)
def get_avatar(id: str) -> Reply:
    """Read an avatar, of 256 pixels. It never changes, so it can be cached forever."""
    return _send(id, LARGE)


@avatars.get(
    "/avatars/<nanoid:id>/64",
    access=READERS,
    cache=SHARED,
    returns={"type": "string", "format": "binary"},
    media_type="image/webp",
    errors=[NoSuchAvatar],
)
def get_small_avatar(id: str) -> Reply:
    """Read an avatar, of 64 pixels. It never changes, so it can be cached forever."""
    return _send(id, SMALL)


def _send(id: str, side: int) -> Response:
    file = store.get_file(id, side, without_data=if_none_match(id))
    return Response(file, headers=headers_of_file(id, **readers()), content_type="image/webp")
