"""Deletion of expired sessions, idempotency keys and rate-limit windows."""

import sqlalchemy as sa

from posting.db.engine import db
from posting.db.models import EXPIRING
from posting.db.types import now

MAX_ROWS = 100


def purge_expired() -> None:
    """Delete the oldest hundred expired rows of each kind.

    Skip locked rows. Call this last in a transaction, so that the deletes cannot deadlock.
    """
    for timestamp, lifetime in EXPIRING:
        kind = timestamp.class_
        key = sa.inspect(kind).primary_key
        expired = sa.select(*key).where(timestamp < now() - lifetime).order_by(timestamp)
        oldest = expired.limit(MAX_ROWS).with_for_update(skip_locked=True)
        delete = sa.delete(kind).where(sa.tuple_(*key).in_(oldest))
        db.session.execute(delete, execution_options={"synchronize_session": False})
