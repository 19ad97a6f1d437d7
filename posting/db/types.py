"""Moments: stored in UTC with milliseconds on both engines, and sent as RFC 3339 writes them."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import nanoid
import sqlalchemy as sa

ID_LENGTH = 21
ID_PATTERN = rf"^[A-Za-z0-9_-]{{{ID_LENGTH}}}$"
ID_RULE = "Must be exactly 21 characters of A-Z, a-z, 0-9, '_' and '-'."


def new_id() -> str:
    """Return a fresh 21-character identifier (126 random bits)."""
    return str(nanoid.generate(size=ID_LENGTH))


def now() -> datetime:
    """Return this moment in UTC, cut to the milliseconds that are stored and sent."""
    return truncate_to_milliseconds(datetime.now(UTC))


def truncate_to_milliseconds(moment: datetime) -> datetime:
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


class UtcDateTime(sa.TypeDecorator[datetime]):
    """A moment in UTC with milliseconds, aware on both engines."""

    impl = sa.DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: sa.Dialect) -> datetime | None:
        return value and value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: sa.Dialect) -> datetime | None:
        if value is None or value.tzinfo is UTC:
            return value
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class Rfc3339Text(sa.TypeDecorator[str]):
    """A moment, never null, as it is sent: rows that only go out need no datetime in between."""

    impl = sa.DateTime(timezone=True)
    cache_ok = True

    def result_processor(self, dialect: sa.Dialect, coltype: object) -> Callable[[Any], str]:
        return _from_sqlite if dialect.name == "sqlite" else to_rfc3339


def _from_sqlite(text: str) -> str:
    return f"{text[:10]}T{text[11:23]}Z"


def to_rfc3339(moment: datetime) -> str:
    """Return a moment as RFC 3339 writes it, in UTC with milliseconds."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds")[:23] + "Z"
