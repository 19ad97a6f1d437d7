"""The state of the unit of work."""

from posting.db import transactions


def is_in_transaction():
    """Return whether the transaction of a unit of work has begun."""
    unit = transactions._unit.get()
    return unit is not None and unit.connection is not None
