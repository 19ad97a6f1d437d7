"""Edits of rows, with the time and the version that follow from them."""

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from posting.db.base import Editable
from posting.db.transactions import Row, execute
from posting.db.types import now


def edit(
    model: type[Editable], row: Row, changes: Mapping[str, Any], *, is_edit: bool = False
) -> bool:
    """Change columns of a locked row by name, and return whether this is an edit.

    If the row has all of the values already, this is not an edit, unless `is_edit`. Raise
    RuntimeError if the version of the row has changed, because the row was not locked.
    """
    if not is_edit and all(getattr(row, name) == value for name, value in changes.items()):
        return False
    columns = model.__table__.columns
    statement = sa.update(model).where(columns.id == row.id)
    if "version" in columns:
        statement = statement.where(columns.version == row.version)
    if execute(statement.values({**changes, **edit_stamp(model)})).rowcount != 1:
        raise RuntimeError(f"A row of {model.__tablename__} was edited without a lock.")
    return True


def edit_stamp(model: type[Editable]) -> dict[str, Any]:
    """Return the columns that each edit of a row sets: its time, and its version if it has one."""
    columns = model.__table__.columns
    stamp: dict[str, Any] = {model.EDIT_TIME: now()}
    return stamp | {"version": columns.version + 1} if "version" in columns else stamp
