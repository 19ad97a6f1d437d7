"""INSERT with ON CONFLICT, which SQLAlchemy has for each dialect."""

from importlib import import_module
from typing import Any

from posting.db.base import Base


def upsert(model: type[Base], dialect: str) -> Any:
    """Return an INSERT that has `on_conflict_do_nothing` and `on_conflict_do_update`."""
    return import_module(f"sqlalchemy.dialects.{dialect}").insert(model)  # loaded by the engine
