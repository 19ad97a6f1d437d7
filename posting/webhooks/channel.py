"""The channel of the outbox that sends events to webhooks."""

import json
import logging
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

from flask import current_app
from standardwebhooks import Webhook
from werkzeug.exceptions import NotFound

from posting.comments.schemas import Comment
from posting.comments.store import get_comment
from posting.db.transactions import Row, unit_of_work
from posting.db.types import now, to_rfc3339
from posting.outbound import Answer, post
from posting.outbox.backoff import LONGEST, is_backing_off, is_retried
from posting.outbox.delivery import TemporaryError, WaitError
from posting.posts.schemas import Post
from posting.posts.store import get_post
from posting.webhooks import store
from posting.webhooks.models import WEBHOOK

GONE = 410  # the receiver wants nothing more
ASKS_TO_WAIT = {429, 503}
# What an event contains: the object as clients read it, without the URLs of images and files.
READERS: dict[str, Callable[[str], dict[str, Any]]] = {"post": get_post, "comment": get_comment}
AUTHOR = ("id", "username", "display_name")
FIELDS = {
    "post": set(Post().fields) - {"images", "files"},
    "comment": set(Comment().fields) - {"images", "files"},
}

log = logging.getLogger("posting.outbox")


class WebhookChannel:
    """The channel that sends events to webhooks. Each request is made when it is sent."""

    name = WEBHOOK

    def plan(self) -> None:
        """Add what has changed since the last time."""
        store.follow_changes()

    def prepare(self, row: Row) -> Callable[[], None] | None:
        """Return a function that sends an event, or None if there is nothing to send any more.

        Raise WaitError while the webhook is failing, unless an operator retries it.
        """
        delivery = store.find_delivery(row.id)
        if delivery is None:
            return None
        if is_backing_off(delivery.resumes_at) and not is_retried(row):
            raise WaitError(delivery.resumes_at, "The webhook is failing")
        data = describe(delivery)
        if data is None:
            store.drop_delivery(delivery.id)
            return None
        return partial(_send, delivery, to_body(delivery, data))

    def close(self) -> None:
        """Close nothing, since each request has a connection of its own."""


def describe(delivery: Row) -> dict[str, Any] | None:
    """Return what an event is about, as it is now, or None if this does not exist any more."""
    kind, _, change = delivery.event.partition(".")
    ids = {"id": delivery.object_id}
    if kind not in READERS:
        return ids
    if change == "deleted":
        return ids | {"post_id": delivery.post_id}
    try:
        found = READERS[kind](delivery.object_id)
    except NotFound:
        return None
    if found["content"] is None:  # a comment that was deleted since, which is an event of its own
        return None
    author = found["author"] and {name: found["author"][name] for name in AUTHOR}
    shown = {name: value for name, value in found.items() if name in FIELDS[kind]}
    return shown | {"author": author}


def to_body(delivery: Row, data: dict[str, Any]) -> str:
    """Return the body of a request."""
    body = {"type": delivery.event, "timestamp": to_rfc3339(delivery.happened_at), "data": data}
    return json.dumps(body, ensure_ascii=False)


def _send(delivery: Row, body: str) -> None:
    """Send an event. Raise TemporaryError if it has to be sent again."""
    time = now()
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "Posting",
        "webhook-id": delivery.id,
        "webhook-timestamp": str(int(time.timestamp())),
        "webhook-signature": Webhook(delivery.secret).sign(delivery.id, time, body),
    }
    is_private = current_app.config["WEBHOOKS"] == "all"
    answer = None
    try:
        answer = post(delivery.url, body.encode(), headers, private=is_private)
    except OSError as error:
        problem = error.strerror or type(error).__name__
    else:
        if 200 <= answer.status < 300:
            with unit_of_work():  # if this fails, it is sent again with the same ID
                store.note_success(delivery, answer.status)
            return
        problem = f"The webhook answers {answer.status}"
    _note_failure(delivery, answer, problem)


def _note_failure(delivery: Row, answer: Answer | None, problem: str) -> None:
    """Note a failure. Raise TemporaryError unless the webhook has ended with it."""
    status = answer.status if answer else None
    pause = timedelta()
    if answer and answer.status in ASKS_TO_WAIT:
        pause = min(timedelta(seconds=answer.retry_after or 0), LONGEST)
    with unit_of_work():
        has_ended = store.note_failure(
            delivery, problem, status=status, pause=pause, is_gone=status == GONE
        )
    if has_ended:
        log.warning("Webhook %s has ended: %s", delivery.webhook_id, problem)
        return
    raise TemporaryError(problem)
