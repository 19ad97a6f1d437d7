"""The base classes of models, and the session."""

from datetime import datetime
from importlib import import_module
from typing import Any, ClassVar

import sqlalchemy as sa
from flask_sqlalchemy import SQLAlchemy
from sqlalchemy import Index, String, func
from sqlalchemy.ext.hybrid import hybrid_property
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, registry

from posting.db.types import ID_LENGTH, UtcDateTime


class Base(DeclarativeBase):
    registry = registry(
        metadata=sa.MetaData(
            naming_convention={
                "ix": "ix_%(table_name)s_%(column_0_N_name)s",
                "uq": "uq_%(table_name)s_%(column_0_N_name)s",
                "ck": "ck_%(table_name)s_%(constraint_name)s",
                "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
                "pk": "pk_%(table_name)s",
            }
        ),
        type_annotation_map={datetime: UtcDateTime()},
    )


# The option of a table that belongs to one database and not to its content. Archives leave it out.
NOT_ARCHIVED = {"info": {"archived": False}}

# The service does not use its session: see `transactions`.
db = SQLAlchemy(model_class=Base)


def bytewise(length: int) -> String:
    """Return a string type that compares byte by byte on both databases, whatever the locale."""
    return String(length).with_variant(String(length, collation="C"), "postgresql")


Identifier = bytewise(ID_LENGTH)


def archived_tables() -> list[sa.Table]:
    """Return the tables of the content, each after those to which its rows refer."""
    return [table for table in db.metadata.sorted_tables if table.info.get("archived", True)]


def partial_index(*columns: Any, where: sa.ColumnElement[bool], name: str | None = None) -> Index:
    """Return an index of the rows that match a condition. Its name follows from its columns."""
    return Index(name, *columns, sqlite_where=where, postgresql_where=where)


def upsert(model: type[Base], dialect: str) -> Any:
    """Return an INSERT of a dialect, which has ON CONFLICT: `on_conflict_do_update` and others."""
    return import_module(f"sqlalchemy.dialects.{dialect}").insert(model)  # loaded by the engine


class Editable(Base):
    """A row that people edit, with the time of its last edit.

    What changes a row without being an edit, such as a count, leaves that time alone.
    """

    __abstract__ = True

    EDIT_TIME: ClassVar = "updated_at"


class EditedAt(Editable):
    """An editable row whose column `edited_at` is null until its first edit."""

    __abstract__ = True

    EDIT_TIME: ClassVar = "edited_at"

    created_at: Mapped[datetime]
    edited_at: Mapped[datetime | None] = mapped_column(sort_order=1)  # after all others

    @hybrid_property
    def updated_at(self) -> datetime:
        return self.edited_at or self.created_at

    @updated_at.inplace.expression
    @classmethod
    def _updated_at(cls) -> sa.ColumnElement[datetime]:
        return func.coalesce(cls.edited_at, cls.created_at, type_=UtcDateTime())
