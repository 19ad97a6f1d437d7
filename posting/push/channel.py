"""The channel of the outbox that sends notifications to the devices of members."""

import errno
import json
import logging
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from time import monotonic

from flask import current_app

from posting.db.transactions import Row
from posting.db.types import now
from posting.languages import in_language
from posting.mail.models import LINK
from posting.markdown import shorten
from posting.notifications import sentences
from posting.outbound import NotPublicError, post
from posting.outbox.backoff import is_backing_off, is_retried
from posting.outbox.delivery import TemporaryError, WaitError, note
from posting.outbox.store import delay_all, enqueue_all, finish
from posting.push import encryption, store
from posting.push.models import PUSH

LIFETIME = 24 * 3600  # seconds in which a push service keeps a push for a device that is off
MAX_TITLE, MAX_BODY = 150, 200  # characters; push services take 4096 bytes in all
GONE = {404, 410}  # the device has ended its subscription
TOO_SLOW = "The push services of the member are slow"
# A member whose devices take longer than a second together gets nothing for ten times the seconds
# above that. After ten seconds, no other device of the member is tried.
SLOW, REST, MOST = 1.0, 10, 10.0

log = logging.getLogger("posting.outbox")


class GoneError(Exception):
    """A device can get no push, now or later. The text says why."""


class PushChannel:
    """The channel that sends notifications to devices. Each is made when it is sent."""

    name = PUSH

    def __init__(self) -> None:
        self._rests: dict[str, float] = {}  # until when a member waits, by the monotonic clock

    def plan(self) -> None:
        """Add nothing, since no push is due by the clock."""

    def prepare(self, row: Row) -> Callable[[], None] | None:
        """Return a function that sends a notification to the devices of a member.

        A row without a user is a notification for all who have devices. It is replaced by one row
        for each of these members. Raise WaitError while the devices of a member fail or are slow.
        """
        if row.user_id is None:
            if finish(row):  # in the same transaction, so that no member gets two
                wanting = store.list_wanting_push(row.about, row.about_at)
                recipients = [(user_id, row.about_at) for user_id in wanting]
                enqueue_all(PUSH, row.kind, recipients, about=row.about)
            return None
        if not is_retried(row):
            self._require_rested(row.user_id)
        member = store.find_recipient(row.user_id)
        if member is None:
            return None
        reader = {"user_id": member.id, "is_moderator": member.is_moderator}
        item = sentences.find_unread(row.about, row.about_at, **reader)
        devices = store.list_devices(member.id)
        if item is None or not devices:
            return None
        awake = [each for each in devices if is_retried(row) or not is_backing_off(each.resumes_at)]
        if not awake:
            raise WaitError(min(each.resumes_at for each in devices), "All devices are failing")
        awake.sort(key=lambda each: each.failing_since is not None)  # those that work come first
        text = "" if member.text == LINK else sentences.beginning_of(item)
        with in_language(member.language):
            sentence = sentences.sentence_of(item)
        message = {
            "title": shorten(sentence, MAX_TITLE),
            "body": shorten(text, MAX_BODY),
            "path": sentences.path_of(item),
            "tag": item["id"],  # a device shows it once, even if it gets it twice
        }
        body = json.dumps(message, ensure_ascii=False).encode()
        key, others_wait = store.find_private_key(), len(awake) < len(devices)
        return partial(self._send, row, awake, body, key, others_wait=others_wait)

    def close(self) -> None:
        """Close nothing, since each push has a connection of its own."""

    def _send(
        self, row: Row, devices: Sequence[Row], message: bytes, key: str, *, others_wait: bool
    ) -> None:
        """Send a message to devices. Raise TemporaryError if none gets it now, but one may later.

        If one gets it, it is not sent again: that device would show it after it was dismissed.
        """
        started, is_sent = monotonic(), False
        problems = ["Another device is failing"] if others_wait else []
        for device in devices:
            if monotonic() - started > MOST:
                problems.append(TOO_SLOW)
                break
            try:
                _push(device, message, key)
            except GoneError as error:
                log.info("Device %s of %s is forgotten (%s).", device.id, device.user_id, error)
                note(row, partial(store.forget_device, device.id))
            except OSError as error:
                problems.append(error.strerror or type(error).__name__)
                note(row, partial(store.note_failure, device))
            else:
                is_sent = True
                if device.failing_since:
                    note(row, partial(store.note_success, device))
        seconds = monotonic() - started
        if seconds > SLOW:
            self._let_rest(row, REST * (seconds - SLOW))
        if problems and not is_sent:
            raise TemporaryError("; ".join(problems))

    def _require_rested(self, user_id: str) -> None:
        """Raise WaitError if the devices of a member have taken much time lately."""
        seconds = self._rests.get(user_id, 0.0) - monotonic()
        if seconds > 0:
            raise WaitError(now() + timedelta(seconds=seconds), TOO_SLOW)

    def _let_rest(self, row: Row, seconds: float) -> None:
        """Send nothing to a member for some seconds, so that others get theirs."""
        time = monotonic()
        rests = {id: end for id, end in self._rests.items() if end > time}
        self._rests = rests | {row.user_id: time + seconds}
        until = now() + timedelta(seconds=seconds)
        note(row, partial(delay_all, store.waiting_for(row.user_id), until))


def _push(device: Row, message: bytes, key: str) -> None:
    """Send a message to a device. Raise GoneError, or OSError for a failure that may pass."""
    try:
        body = encryption.encrypt(message, p256dh=device.p256dh, auth=device.auth)
        headers = {
            "Authorization": encryption.sign(key, device.endpoint, _contact()),
            "Content-Encoding": "aes128gcm",
            "Content-Type": "application/octet-stream",
            "TTL": str(LIFETIME),
        }
        status = post(device.endpoint, body, headers).status
    except (encryption.DeviceError, NotPublicError) as error:
        raise GoneError(str(error)) from error
    if status in GONE:
        raise GoneError(f"The push service answers {status}")
    if not 200 <= status < 300:
        raise OSError(errno.EPROTO, f"The push service answers {status}")


def _contact() -> str:
    """Return a URL by which a push service could reach the operator (RFC 8292, section 2.1)."""
    url: str = current_app.config["PUBLIC_URL"] or ""
    sender = current_app.config["MAIL_FROM"]
    if url.startswith("https:"):
        return url
    return f"mailto:{sender.user}@{sender.domain}" if sender else "mailto:postmaster@localhost"
