"""Column types and values that both databases share: ids and timestamps in UTC."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

import nanoid
import sqlalchemy as sa

ID_LENGTH = 21
ID_PATTERN = rf"^[A-Za-z0-9_-]{{{ID_LENGTH}}}$"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)
_SQLITE_TIMESTAMP = re.compile(r"(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d\.\d{3})\d*")

Position = tuple[datetime, str]  # of a row in a list: its timestamp and id


def new_id() -> str:
    """Return a random id (126 bits)."""
    return str(nanoid.generate(size=ID_LENGTH))


def now() -> datetime:
    """Return the current time in UTC, with the precision that is stored and sent."""
    return truncate_to_milliseconds(datetime.now(UTC))


def truncate_to_milliseconds(timestamp: datetime) -> datetime:
    return timestamp.replace(microsecond=timestamp.microsecond // 1000 * 1000)


def to_milliseconds(timestamp: datetime) -> int:
    """Return the milliseconds since 1970."""
    return (timestamp - EPOCH) // MILLISECOND


def from_milliseconds(milliseconds: int) -> datetime:
    """Return a timestamp. Raise OverflowError if it is not in the years 1 to 9999."""
    return EPOCH + milliseconds * MILLISECOND


def same_as_created_at(context: Any) -> datetime:
    """Return the row's `created_at`, as the default of another column."""
    created_at: datetime = context.get_current_parameters()["created_at"]
    return created_at


def same_as_id(context: Any) -> str:
    """Return the row's `id`, as the default of another column."""
    id: str = context.get_current_parameters()["id"]
    return id


def to_rfc3339(timestamp: datetime) -> str:
    """Format a timestamp as RFC 3339, in UTC with milliseconds."""
    return timestamp.astimezone(UTC).isoformat(timespec="milliseconds")[:23] + "Z"


class UtcDateTime(sa.TypeDecorator[datetime]):
    """A timestamp in UTC that is an aware datetime on both databases. It must be in UTC."""

    impl = sa.DateTime(timezone=True)
    cache_ok = True

    def process_result_value(self, value: datetime | None, dialect: sa.Dialect) -> datetime | None:
        if value is None or value.tzinfo is UTC:
            return value
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class Rfc3339Text(sa.TypeDecorator[str]):
    """A timestamp that is read as RFC 3339 text.

    For rows that are only sent: SQLite's text needs no detour through a datetime.
    """

    impl = sa.DateTime(timezone=True)
    cache_ok = True

    def result_processor(self, dialect: sa.Dialect, coltype: object) -> Callable[[Any], Any]:
        if dialect.name == "sqlite":
            return _sqlite_to_rfc3339
        return lambda timestamp: timestamp and to_rfc3339(timestamp)


@lru_cache(maxsize=5000)  # a list has dozens of timestamps, which the next one repeats
def _sqlite_to_rfc3339(text: str | None) -> str | None:
    if text is None:
        return None
    match = _SQLITE_TIMESTAMP.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a timestamp.")
    return f"{match[1]}T{match[2]}Z"
