"""The SQL of webhooks, and of what is delivered to them."""

import secrets
from base64 import b64encode
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from flask import current_app
from werkzeug.exceptions import Conflict

from posting.accounts.models import ACTIVE, User
from posting.accounts.schemas import Author
from posting.changes.store import CursorExpired, list_changes
from posting.comments.models import Comment
from posting.db.purge import purge_expired
from posting.db.transactions import Row, execute, fetch_all, fetch_one, fetch_value, unit_of_work
from posting.db.types import new_id, now
from posting.outbox.backoff import back_off
from posting.outbox.models import Outgoing
from posting.outbox.store import add_rows, delay_all, one_line
from posting.web.errors import Coded, NoSuch
from posting.web.pagination import Page, paginate
from posting.web.schemas import Item, columns, nested_columns, to_item
from posting.webhooks import schemas
from posting.webhooks.models import (
    COMMENT_DELETED,
    COMMENT_EDITED,
    CREATED,
    WEBHOOK,
    WEBHOOKS_PER_OWNER,
    Delivery,
    Webhook,
)

SECRET_BYTES = 32
CHANGES_AT_ONCE = 100
LONGEST_DELAY = timedelta(minutes=30)  # an older event counts as queued this long ago
ENDS_AFTER = timedelta(days=5)  # of failures

_WEBHOOKS = sa.select(
    *columns(schemas.Webhook, Webhook), Webhook.events, *nested_columns("creator", Author, User)
).join(User, User.id == Webhook.creator_id)
_WEBHOOK = _WEBHOOKS.where(Webhook.id == sa.bindparam("id"))
_has_owner = sa.and_(User.is_owner, User.state == ACTIVE)
_NOT_ENDED = (
    sa.select(Webhook.id, Webhook.events, Webhook.cursor, _has_owner.label("has_owner"))
    .join(User, User.id == Webhook.creator_id)
    .where(Webhook.ended_at.is_(None))
)
_LOCK_ACTIVE = (
    _NOT_ENDED.where(_has_owner)
    # One that is being deleted gets nothing.
    .with_for_update(read=True, key_share=True, skip_locked=True, of=Webhook)
)
_LOCK_FAILING = (
    sa.select(Webhook.failing_since, Webhook.resumes_at)
    .where(Webhook.id == sa.bindparam("id"))
    .with_for_update(key_share=True)
)
# The outbox has a row with the id of each delivery that is to be sent.
_waits = sa.exists().where(Outgoing.id == Delivery.id, Outgoing.failed_at.is_(None))
_state = sa.case(
    (Delivery.delivered_at.is_not(None), "delivered"), (_waits, "waiting"), else_="failed"
)
_DELIVERIES = sa.select(*columns(schemas.Delivery, Delivery), _state.label("state")).where(
    Delivery.webhook_id == sa.bindparam("webhook_id")
)
# Comments that are deleted, and kept for their replies.
_PLACEHOLDERS = sa.select(Comment.id).where(
    Comment.id.in_(sa.bindparam("ids", expanding=True)), Comment.content.is_(None)
)
# A delivery that has not arrived, if its webhook has not ended.
_DELIVERY = (
    sa.select(*sa.inspect(Delivery).columns, Webhook.url, Webhook.secret, Webhook.resumes_at)
    .join(Webhook, Webhook.id == Delivery.webhook_id)
    .join(User, User.id == Webhook.creator_id)
    .where(
        Delivery.id == sa.bindparam("id"),
        Delivery.delivered_at.is_(None),
        Webhook.ended_at.is_(None),
        _has_owner,
    )
)


class NoSuchWebhook(NoSuch, thing="webhook"):
    pass


class TooManyWebhooks(Coded, Conflict):
    error_code = "too_many_webhooks"
    description = f"You have {WEBHOOKS_PER_OWNER} webhooks; delete one of them first."


def list_webhooks(*, limit: int, cursor: str | None) -> Page:
    """Return a page of the webhooks of all owners, newest first."""
    page = paginate(_WEBHOOKS, limit=limit, cursor=cursor, name="webhooks", newest_first=True)
    return Page([_split_events(item) for item in page.items], page.next_cursor)


def get_webhook(id: str) -> Item:
    """Return a webhook as it is sent. Raise NoSuchWebhook."""
    row = fetch_one(_WEBHOOK, id=id)
    if row is None:
        raise NoSuchWebhook
    return _split_events(to_item(row))


def _split_events(item: Item) -> Item:
    return item | {"events": item["events"].split()}


def create_webhook(creator_id: str, url: str, events: Sequence[str]) -> Item:
    """Create a webhook of an exclusively locked account, and return it with its secret.

    Raise TooManyWebhooks.
    """
    own = sa.select(sa.func.count()).where(Webhook.creator_id == creator_id)
    if fetch_value(own) >= WEBHOOKS_PER_OWNER:
        raise TooManyWebhooks
    id, secret = new_id(), f"whsec_{b64encode(secrets.token_bytes(SECRET_BYTES)).decode()}"
    _, cursor = list_changes(None, 0)
    execute(
        sa.insert(Webhook),
        id=id,
        creator_id=creator_id,
        url=url,
        events=" ".join(events),
        secret=secret,
        cursor=cursor,
        created_at=now(),
    )
    _add_deliveries([{"webhook_id": id, "event": CREATED, "object_id": id}])
    return get_webhook(id) | {"secret": secret}


def delete_webhook(id: str) -> None:
    """Delete a webhook with its deliveries. Raise NoSuchWebhook."""
    if not execute(sa.delete(Webhook).where(Webhook.id == id)).rowcount:
        raise NoSuchWebhook


def list_deliveries(webhook_id: str, *, limit: int, cursor: str | None) -> Page:
    """Return a page of what was or is sent to a webhook in the last 30 days, newest first."""
    return paginate(
        _DELIVERIES,
        limit=limit,
        cursor=cursor,
        name="deliveries",
        newest_first=True,
        parameters={"webhook_id": webhook_id},
    )


def announce(event: str, object_id: str) -> None:
    """Let webhooks send an event that is not in the list of changes."""
    if current_app.config["WEBHOOKS"] == "off":
        return
    _add_deliveries(
        [
            {"webhook_id": webhook.id, "event": event, "object_id": object_id}
            for webhook in execute(_LOCK_ACTIVE).all()
            if event in webhook.events.split()
        ]
    )


def follow_changes() -> None:
    """Add deliveries for all changes that no webhook has followed yet."""
    for webhook in fetch_all(_NOT_ENDED):
        cursor = webhook.cursor
        while cursor := _follow_some(webhook, cursor):
            pass


def _follow_some(webhook: Row, cursor: str) -> str | None:
    """Add deliveries for some changes after a cursor. Return the next one if there may be more."""
    try:
        changes, next_cursor = list_changes(cursor, CHANGES_AT_ONCE)
    except CursorExpired:  # after a long pause, or a restore: go on from now
        changes, next_cursor = list_changes(None, 0)
    if next_cursor == cursor:
        return None
    wanted = webhook.events.split() if webhook.has_owner else []
    added = [event for event in _to_events(webhook.id, changes) if event["event"] in wanted]
    is_here = sa.and_(Webhook.id == webhook.id, Webhook.cursor == cursor)
    with unit_of_work():
        is_first = execute(sa.update(Webhook).where(is_here).values(cursor=next_cursor)).rowcount
        if not is_first:  # another process has added them
            return None
        _add_deliveries(added)
    return next_cursor if changes else None


def _to_events(webhook_id: str, changes: Sequence[Item]) -> list[Item]:
    """Return the deliveries for changes. A comment that becomes a placeholder counts as deleted."""
    deliveries = [
        {
            "webhook_id": webhook_id,
            "event": f"{change['kind']}.{change['change']}",
            "object_id": change["id"],
            "post_id": change["post_id"],
            "happened_at": datetime.fromisoformat(change["at"]),
        }
        for change in changes
    ]
    edited = [each for each in deliveries if each["event"] == COMMENT_EDITED]
    ids = [each["object_id"] for each in edited]
    placeholders = {row.id for row in fetch_all(_PLACEHOLDERS, ids=ids)} if ids else set()
    for each in edited:
        if each["object_id"] in placeholders:
            each["event"] = COMMENT_DELETED
    return deliveries


def _add_deliveries(deliveries: Sequence[Item]) -> None:
    """Add deliveries and their rows of the outbox, of which the oldest is due first."""
    if not deliveries:
        return
    time: datetime = now()
    common = {"post_id": None, "created_at": time, "happened_at": time, "attempts": 0}
    rows = [{"id": new_id(), **common, **delivery} for delivery in deliveries]
    execute(sa.insert(Delivery), rows)
    waiting = []
    for row in rows:
        due_at = min(max(row["happened_at"], time - LONGEST_DELAY), time)
        times = {"queued_at": due_at, "due_at": due_at}
        waiting.append({"id": row["id"], "kind": row["event"], "about": row["webhook_id"], **times})
    add_rows(WEBHOOK, waiting)
    purge_expired(Delivery)


def find_delivery(id: str) -> Row | None:
    """Return a delivery that has not arrived, with its webhook, unless this has ended."""
    return fetch_one(_DELIVERY, id=id)


def drop_delivery(id: str) -> None:
    """Delete a delivery whose object does not exist any more."""
    execute(sa.delete(Delivery).where(Delivery.id == id))


def note_success(delivery: Row, status: int) -> None:
    """Note that a delivery has arrived."""
    own = sa.update(Webhook).where(Webhook.id == delivery.webhook_id)
    is_failing = Webhook.failing_since.is_not(None)
    execute(own.where(is_failing).values(failing_since=None, resumes_at=None))
    _note(delivery, delivered_at=now(), status=status, error=None)


def note_failure(
    delivery: Row, error: str, *, status: int | None, pause: timedelta, is_gone: bool
) -> bool:
    """Note that a delivery has failed, and let the webhook wait with all of its deliveries.

    It waits longer after each failure, and for `pause` at least. It ends if it is gone, or has
    failed for too long. Return whether it has ended.
    """
    found = execute(_LOCK_FAILING, id=delivery.webhook_id).one_or_none()
    if found is None:
        return False
    time = now()
    since, resumes_at = back_off(found.failing_since, found.resumes_at)
    has_ended = is_gone or time - since > ENDS_AFTER
    resumes_at = max(resumes_at, time + pause)
    values = {"failing_since": since, "resumes_at": resumes_at}
    values |= {"ended_at": time} if has_ended else {}
    execute(sa.update(Webhook).where(Webhook.id == delivery.webhook_id).values(**values))
    _note(delivery, status=status, error=one_line(error))
    own = sa.and_(Delivery.webhook_id == delivery.webhook_id, Delivery.delivered_at.is_(None))
    delay_all(sa.select(Delivery.id).where(own), resumes_at)
    return has_ended


def _note(delivery: Row, **values: Any) -> None:
    own = sa.update(Delivery).where(Delivery.id == delivery.id)
    execute(own.values(attempts=Delivery.attempts + 1, **values))
