"""The devices of the current user that get notifications by web push."""

from typing import Any

from posting.accounts.current_user import (
    EDIT_LIMIT,
    SESSION_REQUIRED,
    SIGNED_IN,
    current_user,
    lock_current_user,
)
from posting.push import encryption, schemas, store
from posting.web.endpoint import Blueprint, Reply

push = Blueprint("push", __name__, description="Devices that get notifications")


@push.get("/push/key", access=SIGNED_IN, returns=schemas.PushKey())
def get_key() -> Reply:
    """Read the key of this service, with which a browser subscribes to pushes."""
    return {"key": encryption.public_key(store.find_private_key())}


@push.put(
    "/push/subscriptions",
    access=SESSION_REQUIRED,
    limits=[EDIT_LIMIT],
    body=schemas.DeviceInput(),
    status=204,
)
def add_device(body: dict[str, Any]) -> Reply:
    """Send your notifications to a device as well. If there are more than ten, the first one ends.

    A device gets the notifications of the member who has added it last, until that session ends.
    """
    lock_current_user(exclusively=True)
    keys = body["keys"]
    store.add_device(
        current_user.id,
        str(current_user.session_id),
        body["endpoint"],
        p256dh=keys["p256dh"],
        auth=keys["auth"],
    )
    return None


@push.delete(
    "/push/subscriptions", access=SESSION_REQUIRED, query=schemas.DeviceQuery(), status=204
)
def delete_device(query: dict[str, str]) -> Reply:
    """Send no more notifications to a device, or to any. Returns 204 even if none gets them."""
    store.remove_devices(current_user.id, query.get("endpoint"))
    return None
