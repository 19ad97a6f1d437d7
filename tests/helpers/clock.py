"""The clock of the service, set to another time."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, tzinfo
from unittest.mock import patch


@contextmanager
def shifted_clock(**by: float) -> Iterator[None]:
    """Let the clock be ahead, or behind if the duration is negative."""

    class Shifted(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:
            return datetime.now(tz) + timedelta(**by)

    with patch("posting.db.types.datetime", Shifted):
        yield
