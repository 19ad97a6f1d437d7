"""Changes of notifications and subscriptions.

No account of a recipient is locked, and no statement here waits for a locked notification. So
somebody who comments waits for no recipient.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any

import sqlalchemy as sa

from posting.db.base import Identifier, db
from posting.db.purge import purge_expired
from posting.db.transactions import execute, fetch_all, fetch_one, fetch_value
from posting.db.types import UtcDateTime, new_id, now
from posting.db.upserts import upsert
from posting.notifications.models import MAX_KEPT, Notification, Subscription
from posting.web.errors import InvalidInput
from posting.web.messages import Message

MAX_DELETED = 100  # notifications of a member at a time
NO_SUCH_NOTIFICATION = Message(
    "no_such_notification", "There is no such notification. Read the list again."
)

Recipients = sa.Select[*tuple[Any, ...]]  # the `id` of users, and the `kind` for each

_KEY = (Notification.user_id, Notification.created_at, Notification.id)
_place = sa.tuple_(Notification.created_at, Notification.id)
_IS_OWN = Notification.user_id == sa.bindparam("recipient")
_CREATED_AT = sa.select(Notification.created_at).where(
    _IS_OWN, Notification.id == sa.bindparam("notification")
)


def unlocked(
    *conditions: sa.ColumnElement[bool], limit: int | None = None
) -> sa.ColumnElement[bool]:
    """Return the condition that notifications match other conditions and are not locked.

    A CTE, because Postgres may execute a subquery again for each row if its statistics are old.
    """
    keys = sa.select(*_KEY).where(*conditions).limit(limit).with_for_update(skip_locked=True)
    return sa.tuple_(*_KEY).in_(sa.select(keys.cte("unlocked")))


def _place_of(name: str) -> sa.Tuple:
    """Return the place of a notification among those of its recipient, as two parameters."""
    time = sa.bindparam(f"{name}_time", type_=UtcDateTime())
    return sa.tuple_(time, sa.bindparam(f"{name}_id", type_=Identifier))


_MARK_READ = (
    sa.update(Notification)
    .where(unlocked(_IS_OWN, Notification.read_at.is_(None), _place <= _place_of("up_to")))
    .values(read_at=sa.bindparam("time", type_=UtcDateTime()))
)
_HAVE_SURPLUS = (
    sa.select(Notification.user_id)
    .where(Notification.user_id.in_(sa.bindparam("recipients", expanding=True)))
    .group_by(Notification.user_id)
    .having(sa.func.count() > MAX_KEPT)
)
_OLDEST_KEPT = (
    sa.select(Notification.created_at, Notification.id)
    .where(_IS_OWN)
    .order_by(Notification.created_at.desc(), Notification.id.desc())
    .offset(MAX_KEPT - 1)
    .limit(1)
)
_DELETE_OLDER = sa.delete(Notification).where(
    unlocked(_IS_OWN, _place < _place_of("oldest"), limit=MAX_DELETED)
)


def notify(
    recipients: Recipients,
    *,
    actor_id: str | None,
    post_id: str | None = None,
    comment_id: str | None = None,
    reason: str | None = None,
    excerpt: str | None = None,
    **parameters: Any,
) -> None:
    """Notify users within the transaction, by one statement for all.

    `parameters` are those of the SELECT `recipients`, which may also use the other arguments as
    parameters. If it has a column named like an argument, such as `excerpt`, each user gets their
    own value. Lock what the notification is about first.
    """
    id = new_id()
    told = execute(
        _insert(recipients),
        **{"new_id": id, "time": now(), "actor_id": actor_id, "post_id": post_id},
        **{"comment_id": comment_id, "reason": reason, "excerpt": excerpt},
        **parameters,
    )
    # With each notification, delete the surplus of one recipient in 64, so that it stays small.
    if chosen := [user_id for user_id in told.scalars() if user_id[0] == id[0]]:
        delete_surplus(chosen)


@cache
def _insert(recipients: Recipients) -> Any:
    """Return the INSERT of a notification for each recipient.

    It inserts in the order of the primary key, so that SQLite writes no page twice.
    """
    found = recipients.subquery()
    values = {
        "user_id": found.c.id,
        "kind": found.c.kind,
        "id": sa.bindparam("new_id", type_=Identifier),
        "created_at": sa.bindparam("time", type_=UtcDateTime()),
        **{
            name: found.c.get(name, sa.bindparam(name, type_=Notification.__table__.c[name].type))
            for name in ("actor_id", "post_id", "comment_id", "reason", "excerpt")
        },
    }
    rows = sa.select(*values.values()).order_by(found.c.id)
    return sa.insert(Notification).from_select([*values], rows).returning(Notification.user_id)


def delete_surplus(user_ids: Sequence[str]) -> None:
    """Delete what members have beyond the newest thousand notifications, a hundred of each."""
    for (user_id,) in fetch_all(_HAVE_SURPLUS, recipients=user_ids):
        if oldest := fetch_one(_OLDEST_KEPT, recipient=user_id):
            place = {"oldest_time": oldest.created_at, "oldest_id": oldest.id}
            execute(_DELETE_OLDER, recipient=user_id, **place)


def mark_read(user_id: str, up_to: str) -> None:
    """Mark a notification of a user and all that are older as read.

    Raise 422 if there is no such notification. Purge notifications that were read long ago.
    """
    created_at = fetch_value(_CREATED_AT, recipient=user_id, notification=up_to)
    if created_at is None:
        raise InvalidInput.at("/up_to", NO_SUCH_NOTIFICATION)
    execute(_MARK_READ, recipient=user_id, up_to_time=created_at, up_to_id=up_to, time=now())
    delete_surplus([user_id])
    purge_expired(Notification)


def subscribe(user_id: str, post_id: str, level: str) -> None:
    """Set what a member has chosen about a post. Both are locked."""
    execute(_upsert(db.engine.dialect.name), user_id=user_id, post_id=post_id, level=level)


@cache
def _upsert(dialect: str) -> Any:
    statement = upsert(Subscription, dialect)
    keys = [Subscription.post_id, Subscription.user_id]
    return statement.on_conflict_do_update(
        index_elements=keys, set_={"level": statement.excluded.level}
    )


def unsubscribe(user_id: str, post_id: str) -> None:
    """Delete what a member has chosen about a post, if anything."""
    own = sa.and_(Subscription.post_id == post_id, Subscription.user_id == user_id)
    execute(sa.delete(Subscription).where(own))
