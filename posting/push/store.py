"""The SQL of the devices that get notifications by web push."""

from collections.abc import Sequence
from datetime import datetime, timedelta

import sqlalchemy as sa

from posting.accounts.models import ACTIVE, Session, User
from posting.accounts.sessions import IS_VALID, oldest_valid
from posting.db.base import db, upsert
from posting.db.epoch import Epoch
from posting.db.transactions import Row, execute, fetch_all, fetch_one, fetch_value
from posting.db.types import UtcDateTime, new_id, now
from posting.mail.models import BEGINNING, Mailbox
from posting.notifications.models import Notification
from posting.outbox.backoff import back_off
from posting.outbox.models import Outgoing
from posting.push.models import DEVICES_PER_MEMBER, PUSH, PushSubscription

DEVICE_ENDS_AFTER = timedelta(days=14)  # of failures

_DEVICES = (
    sa.select(*sa.inspect(PushSubscription).columns)
    .join(Session, Session.id == PushSubscription.session_id)
    .where(PushSubscription.user_id == sa.bindparam("owner"), IS_VALID)
    .order_by(PushSubscription.created_at, PushSubscription.id)
)
_wants_push = sa.func.coalesce(Mailbox.push, sa.true())
_WANTING = (
    sa.select(PushSubscription.user_id)
    .distinct()
    .join(
        Notification,
        sa.and_(
            Notification.user_id == PushSubscription.user_id,
            Notification.created_at == sa.bindparam("time", type_=UtcDateTime()),
            Notification.id == sa.bindparam("notification"),
        ),
    )
    .join(Session, sa.and_(Session.id == PushSubscription.session_id, IS_VALID))
    .outerjoin(Mailbox, Mailbox.user_id == PushSubscription.user_id)
    .where(Notification.read_at.is_(None), _wants_push)
)
_RECIPIENT = (
    sa.select(
        User.id,
        User.is_moderator.label("is_moderator"),
        sa.func.coalesce(Mailbox.text, BEGINNING).label("text"),
        Mailbox.language,
    )
    .outerjoin(Mailbox, Mailbox.user_id == User.id)
    .where(User.id == sa.bindparam("owner"), User.state == ACTIVE, _wants_push)
)


def add_device(user_id: str, session_id: str, endpoint: str, *, p256dh: str, auth: str) -> None:
    """Let a device get the notifications of a locked account, and of no other account.

    If the member has too many devices, the one that was added first is forgotten.
    """
    statement = upsert(PushSubscription, db.engine.dialect.name)
    values = {"user_id": user_id, "session_id": session_id, "p256dh": p256dh, "auth": auth}
    changes = values | {"created_at": now(), "failing_since": None, "resumes_at": None}
    execute(
        statement.on_conflict_do_update(
            index_elements=[PushSubscription.endpoint], set_=changes
        ).values(id=new_id(), endpoint=endpoint, **values)
    )
    own = PushSubscription.user_id == user_id
    newest = sa.select(PushSubscription.id).where(own)
    newest = newest.order_by(PushSubscription.created_at.desc(), PushSubscription.id)
    kept = newest.limit(DEVICES_PER_MEMBER).scalar_subquery()
    execute(sa.delete(PushSubscription).where(own, PushSubscription.id.not_in(kept)))


def remove_devices(user_id: str, endpoint: str | None) -> None:
    """Forget a device of a member if it is one, or all of them without `endpoint`."""
    statement = sa.delete(PushSubscription).where(PushSubscription.user_id == user_id)
    if endpoint is not None:
        statement = statement.where(PushSubscription.endpoint == endpoint)
    execute(statement)


def forget_device(id: str) -> None:
    """Forget a device that its push service does not know any more."""
    execute(sa.delete(PushSubscription).where(PushSubscription.id == id))


def note_failure(device: Row) -> None:
    """Let a device wait, longer after each failure. It is forgotten if it fails for too long."""
    since, resumes_at = back_off(device.failing_since, device.resumes_at)
    if now() - since > DEVICE_ENDS_AFTER:
        forget_device(device.id)
        return
    own = sa.update(PushSubscription).where(PushSubscription.id == device.id)
    execute(own.values(failing_since=since, resumes_at=resumes_at))


def note_success(device: Row) -> None:
    """Note that a device that has failed gets pushes again."""
    own = sa.update(PushSubscription).where(PushSubscription.id == device.id)
    execute(own.values(failing_since=None, resumes_at=None))


def list_devices(user_id: str) -> Sequence[Row]:
    """Return the devices of a member whose sessions have not ended."""
    return fetch_all(_DEVICES, owner=user_id, **oldest_valid(now()))


def list_wanting_push(notification_id: str, time: datetime) -> Sequence[str]:
    """Return the members whose devices get a notification."""
    rows = fetch_all(_WANTING, notification=notification_id, time=time, **oldest_valid(now()))
    return [row.user_id for row in rows]


def waiting_for(user_id: str) -> sa.Select[str]:
    """Return the query for the rows of the outbox that are pushes to a member."""
    return sa.select(Outgoing.id).where(Outgoing.channel == PUSH, Outgoing.user_id == user_id)


def find_recipient(user_id: str) -> Row | None:
    """Return a member who wants pushes, if the account is active."""
    return fetch_one(_RECIPIENT, owner=user_id)


def find_private_key() -> str:
    """Return the key by which push services know this service."""
    key: str = fetch_value(sa.select(Epoch.push_key))
    return key
