"""Notifications of the current user, and subscriptions to posts."""

from typing import Any

from posting.accounts.current_user import (
    SIGNED_IN,
    current_user,
    current_user_id,
    lock_current_user,
)
from posting.notifications import inbox, schemas, seen, store
from posting.posts.store import NoSuchPost, lock_post, post_exists
from posting.web.endpoint import Blueprint, Reply
from posting.web.etags import Condition
from posting.web.limits import Limit
from posting.web.schemas import Item, PageQuery

SUBSCRIPTION_LIMIT = Limit("subscriptions", "LIMIT_COMMENTS", current_user_id)
SEEN_LIMIT = Limit("seen", "LIMIT_COMMENTS", current_user_id, times=4)

notifications = Blueprint(
    "notifications", __name__, description="What members are told, and the posts that they follow"
)


@notifications.get(
    "/notifications",
    access=SIGNED_IN,
    query=schemas.NotificationsQuery(),
    returns=schemas.Notification(many=True),
    headers=["Link"],
)
def list_notifications(query: dict[str, Any]) -> Reply:
    """List your notifications, newest first."""
    page = store.list_notifications(
        current_user.id,
        limit=query["limit"],
        cursor=query.get("cursor"),
        is_moderator=current_user.is_moderator,
        unread="unread" in query,
    )
    return page.items, page.headers


@notifications.get(
    "/notifications/posts",
    access=SIGNED_IN,
    query=PageQuery(),
    returns=schemas.PostNotifications(many=True),
    headers=["Link"],
)
def list_by_post(query: dict[str, Any]) -> Reply:
    """List your notifications, those about comments on one post together, newest first."""
    page = inbox.list_by_post(
        current_user.id,
        limit=query["limit"],
        cursor=query.get("cursor"),
        is_moderator=current_user.is_moderator,
    )
    return page.items, page.headers


@notifications.get("/notifications/unread", access=SIGNED_IN, returns=schemas.UnreadCount())
def count_unread() -> Reply:
    """Count your notifications that are not read."""
    return {"count": store.count_unread(current_user.id)}


@notifications.post(
    "/notifications/read", access=SIGNED_IN, body=schemas.ReadInput(), returns=schemas.UnreadCount()
)
def mark_read(body: dict[str, Any]) -> Reply:
    """Mark your notifications as read, up to the given one, or some. Returns how many are left."""
    if "ids" in body:
        store.mark_some_read(current_user.id, body["ids"])
    else:
        store.mark_read(current_user.id, body["up_to"])
    return {"count": store.count_unread(current_user.id)}


@notifications.get(
    "/posts/<nanoid:id>/subscription",
    access=SIGNED_IN,
    returns=schemas.Subscription(),
    errors=[NoSuchPost],
)
def get_subscription(id: str) -> Reply:
    """Read what you have chosen about a post."""
    if not post_exists(id):
        raise NoSuchPost
    return _subscription(id)


@notifications.put(
    "/posts/<nanoid:id>/subscription",
    access=SIGNED_IN,
    limits=[SUBSCRIPTION_LIMIT],
    body=schemas.SubscriptionInput(),
    conditional=True,
    returns=schemas.Subscription(),
    errors=[NoSuchPost],
)
def set_subscription(id: str, body: dict[str, str], condition: Condition) -> Reply:
    """Follow a post, for notifications of all comments on it, or mute it, for none."""
    lock_current_user()
    lock_post(id)
    condition.require_body(_subscription(id))
    store.subscribe(current_user.id, id, body["level"])
    return body


@notifications.delete(
    "/posts/<nanoid:id>/subscription",
    access=SIGNED_IN,
    conditional=True,
    status=204,
    errors=[NoSuchPost],
)
def delete_subscription(id: str, condition: Condition) -> Reply:
    """Return to the default for a post, whether you have chosen something or not."""
    lock_current_user()
    lock_post(id)
    condition.require_body(_subscription(id))
    store.unsubscribe(current_user.id, id)
    return None


@notifications.get(
    "/seen", access=SIGNED_IN, query=schemas.SeenQuery(), returns=schemas.NewComments(many=True)
)
def count_new(query: dict[str, list[str]]) -> Reply:
    """Count the comments that are new to you, for each of the posts that you have seen."""
    return seen.count_new(current_user.id, query["ids"])


@notifications.get(
    "/posts/<nanoid:id>/seen", access=SIGNED_IN, returns=schemas.Seen(), errors=[NoSuchPost]
)
def get_seen(id: str) -> Reply:
    """Read how far you have read a post, and which comments are new."""
    if not post_exists(id):
        raise NoSuchPost
    return seen.get_seen(current_user.id, id)


@notifications.put(
    "/posts/<nanoid:id>/seen",
    access=SIGNED_IN,
    limits=[SEEN_LIMIT],
    body=schemas.SeenInput(),
    conditional=True,
    returns=schemas.Seen(),
    errors=[NoSuchPost],
)
def set_seen(id: str, body: dict[str, Any], condition: Condition) -> Reply:
    """Note how far you have read a post. Notifications about what you have seen become read.

    A comment before the one that is noted changes nothing, so that two devices may send this.
    """
    lock_current_user()
    written_at = seen.find_time_for_update(id)
    if written_at is None:
        raise NoSuchPost
    condition.require_body(seen.get_seen(current_user.id, id))
    seen.set_seen(current_user.id, id, written_at, body["up_to"], body.get("shown", []))
    return seen.get_seen(current_user.id, id)


def _subscription(post_id: str) -> Item:
    """Return what the current user has chosen about a post."""
    return {"level": store.find_level(current_user.id, post_id) or schemas.DEFAULT}
