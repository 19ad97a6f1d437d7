"""Notifications and subscriptions when an account is deleted."""

from contextlib import suppress
from functools import partial

import sqlalchemy as sa

from posting.accounts.deletion import Content, Step
from posting.db.cascades import delete_some
from posting.db.transactions import after_commit, commit, execute, lock_table, rollback
from posting.notifications.models import Notification, Subscription
from posting.notifications.store import unlocked

ROWS_PER_STEP = 2000


def _clear_step(user_id: str, _with_content: bool) -> Step:
    """Delete notifications and subscriptions of a user, and remove the user from notifications."""
    most = max(
        _clear(user_id, limit=ROWS_PER_STEP),
        delete_some(Subscription, Subscription.user_id == user_id, ROWS_PER_STEP),
    )
    return Step(0, has_more=most == ROWS_PER_STEP)


def _clear_rest(user_id: str, _with_content: bool) -> None:
    after_commit(partial(_clear_late, user_id))


def _clear_late(user_id: str) -> None:
    """Clear the notifications that others have added while the account was deleted.

    They did not see the deletion yet, and the deletion did not see the notifications. If the
    database is too busy, these rows stay: they are never read.
    """
    try:
        lock_table(Notification)
        _clear(user_id)
        commit()
    except sa.exc.OperationalError:
        with suppress(sa.exc.OperationalError):
            rollback()


def _clear(user_id: str, *, limit: int | None = None) -> int:
    """Clear notifications, and return how many there were of the kind of which there were more.

    Locked ones are skipped, so that this does not wait.
    """
    own, caused = Notification.user_id == user_id, Notification.actor_id == user_id
    deleted = execute(sa.delete(Notification).where(unlocked(own, limit=limit)))
    changed = execute(
        sa.update(Notification).where(unlocked(caused, limit=limit)).values(actor_id=None)
    )
    return max(deleted.rowcount, changed.rowcount)


CONTENT = Content(None, _clear_step, _clear_rest)
