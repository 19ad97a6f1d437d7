"""Pauses of receivers that fail, such as devices and webhooks, so that others need not wait."""

from datetime import datetime, timedelta

from posting.db.transactions import Row
from posting.db.types import now

SHORTEST, LONGEST = timedelta(minutes=1), timedelta(hours=6)
FAILURE_LASTS = timedelta(days=1)  # without an attempt, a failure does not count any more


def is_backing_off(resumes_at: datetime | None) -> bool:
    """Return whether nothing is sent to a receiver now.

    A time that is too far away is that of a wrong clock.
    """
    time = now()
    return resumes_at is not None and time < resumes_at <= time + LONGEST


def is_retried(row: Row) -> bool:
    """Return whether this is the first attempt since `flask outbox retry`, which never waits."""
    return row.tried_since is not None and row.attempts == 1


def back_off(
    failing_since: datetime | None, resumes_at: datetime | None
) -> tuple[datetime, datetime]:
    """Return `failing_since` and `resumes_at` of a receiver after another failure.

    The pause is as long as the receiver has failed, but at least a minute and at most six hours.
    """
    time: datetime = now()
    is_forgotten = resumes_at is None or time > resumes_at + FAILURE_LASTS
    since = time if failing_since is None or is_forgotten else failing_since
    return since, time + min(max(time - since, SHORTEST), LONGEST)
