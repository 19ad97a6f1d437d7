"""Notifications and subscriptions when an account is deleted."""

from contextlib import suppress

import sqlalchemy as sa

from posting.db.cascades import Step, delete_some
from posting.db.transactions import execute, lock_table, unit_of_work
from posting.notifications.models import REACTION, Notification, Seen, Subscription
from posting.notifications.store import unlocked

ROWS_PER_STEP = 2000


def clear_step(user_id: str) -> Step:
    """Delete notifications and subscriptions of a user, and remove the user from notifications."""
    most = max(
        _clear(user_id, limit=ROWS_PER_STEP),
        delete_some(Subscription, Subscription.user_id == user_id, ROWS_PER_STEP),
        delete_some(Seen, Seen.user_id == user_id, ROWS_PER_STEP),
    )
    return Step(0, has_more=most == ROWS_PER_STEP)


def clear_late(user_id: str) -> None:
    """Clear the notifications that others have added while the account was deleted.

    They did not see the deletion yet, and the deletion did not see the notifications. If the
    database is too busy, these rows stay: they are never read.
    """
    with suppress(sa.exc.SQLAlchemyError), unit_of_work():
        lock_table(Notification)
        _clear(user_id)


def _clear(user_id: str, *, limit: int | None = None) -> int:
    """Clear notifications, and return how many there were of the kind of which there were more.

    Those about the user's reactions are deleted like the reactions. Locked ones are skipped, so
    that this does not wait.
    """
    own, caused = Notification.user_id == user_id, Notification.actor_id == user_id
    is_gone = sa.or_(own, sa.and_(caused, Notification.kind == REACTION))
    deleted = execute(sa.delete(Notification).where(unlocked(is_gone, limit=limit)))
    changed = execute(
        sa.update(Notification).where(unlocked(caused, limit=limit)).values(actor_id=None)
    )
    return max(deleted.rowcount, changed.rowcount)
