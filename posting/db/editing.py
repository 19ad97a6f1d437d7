"""Edits of rows, with the time and the version that follow from them."""

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from posting.db.base import Editable
from posting.db.transactions import Row, execute
from posting.db.types import now


def edit(model: type[Editable], row: Row, changes: Mapping[str, Any]) -> bool:
    """Change columns of a locked row by name, and return whether this is an edit.

    It is none if the row has all of the values already. Raise RuntimeError if another edit has
    changed the version of the row, which was not locked then.
    """
    if all(getattr(row, name) == value for name, value in changes.items()):
        return False
    columns = model.__table__.columns
    statement = sa.update(model).where(columns.id == row.id)
    values = {**changes, model.EDIT_TIME: now()}
    if "version" in columns:
        statement = statement.where(columns.version == row.version)
        values["version"] = row.version + 1
    if execute(statement.values(values)).rowcount != 1:
        raise RuntimeError(f"A row of {model.__tablename__} was edited without a lock.")
    return True
