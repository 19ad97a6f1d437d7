"""Deletion of expired sessions, idempotency keys and rate-limit windows."""

import sqlalchemy as sa

from posting.db.engine import Base, db
from posting.db.models import EXPIRING
from posting.db.types import now

MAX_ROWS = 100


def purge_expired(model: type[Base], connection: sa.Connection | None = None) -> None:
    """Delete the oldest hundred expired rows of a table; call this where rows are added to it.

    Skip locked rows. Call this last among the statements that lock such rows, so that the delete
    cannot deadlock.
    """
    timestamp, lifetime = EXPIRING[model]
    key = sa.inspect(model).primary_key
    expired = sa.select(*key).where(timestamp < now() - lifetime).order_by(timestamp)
    oldest = expired.limit(MAX_ROWS).with_for_update(skip_locked=True)
    delete = sa.delete(model).where(sa.tuple_(*key).in_(oldest))
    (connection or db.session).execute(delete, execution_options={"synchronize_session": False})
