"""Rate limits, counted in the service's own database.

A window begins with its first hit. It is one row, which one statement increments, so the counts are
exact, however many workers and machines there are. The headers follow
draft-ietf-httpapi-ratelimit-headers-10.
"""

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum
from functools import cache
from typing import Any

import sqlalchemy as sa
from flask import Response, after_this_request, current_app
from sqlalchemy import String
from sqlalchemy.orm import Mapped, mapped_column
from werkzeug.exceptions import TooManyRequests

from posting.config import Rate
from posting.db.base import Base, db, upsert
from posting.db.purge import purge_expired
from posting.db.transactions import execute, fetch_one, unit_of_work
from posting.db.types import UtcDateTime, now
from posting.web.hosts import client_ip


class RateWindow(Base):
    """The hits of a subject within a window of a limit. The key is a hash of limit and subject."""

    EXPIRES = ("ends_at", timedelta())

    __tablename__ = "rate_windows"

    key: Mapped[str] = mapped_column(String(32), primary_key=True)
    hits: Mapped[int] = mapped_column()
    ends_at: Mapped[datetime] = mapped_column(index=True)


CLOCK_SKEW = timedelta(minutes=1)  # the largest expected difference between machines


class Counts(Enum):
    """The requests that a limit counts."""

    SUCCESSES = "counted in the view's transaction"
    ATTEMPTS = "counted and committed before the view"
    FAILURES = "counted and committed by `prepare`, which takes back the hits of a success"


@dataclass(frozen=True)
class Limit:
    """A maximum number of hits per window and subject: a setting's rate, or a multiple of it.

    `subject` returns the client or user whose hits are counted. A function that counts failures
    passes its subjects to `Hits.count_before`. An attempt that fails with an error of `refunded`
    does not count.
    """

    name: str
    setting: str
    subject: Callable[[], str] = client_ip
    counts: Counts = Counts.SUCCESSES
    times: int = 1
    refunded: tuple[type[Exception], ...] = ()

    def rate(self, config: Mapping[str, Any]) -> Rate | None:
        """Return the rate, or None if the setting is `off`."""
        rate: Rate | None = config[self.setting]
        if rate is None or self.times == 1:
            return rate
        return replace(rate, amount=rate.amount * self.times)

    def error(self, config: Mapping[str, Any]) -> TooManyRequests | None:
        """Return the error of the limit for the OpenAPI document, or None if it is `off`."""
        rate = self.rate(config)
        return LimitReached(rate, seconds=1) if rate else None


@dataclass(frozen=True)
class Window:
    """The window of a limit and subject at a time, with its number of hits."""

    limit: Limit
    rate: Rate
    key: str
    time: datetime
    ends_at: datetime
    hits: int = 0

    @property
    def seconds_left(self) -> int:
        return max(0, math.ceil((self.ends_at - self.time).total_seconds()))

    @property
    def is_new(self) -> bool:
        """Return whether the last hit began the window."""
        return self.ends_at == self.time + self.rate.window

    @property
    def policy(self) -> str:
        """The window in the header `RateLimit-Policy`."""
        seconds = round(self.rate.window.total_seconds())
        return f'"{self.limit.name}";q={self.rate.amount};w={seconds}'

    @property
    def state(self) -> str:
        """The window in the header `RateLimit`."""
        left = max(0, self.rate.amount - self.hits)
        return f'"{self.limit.name}";r={left};t={self.seconds_left}'


class LimitReached(TooManyRequests):
    """The error of a limit that allows no further hit. Its response announces `windows`."""

    def __init__(self, rate: Rate, seconds: int, windows: Sequence[Window] = ()) -> None:
        article = "an" if rate.unit == "hour" else "a"
        detail = f"No more than {rate.amount:,} {article} {rate.unit}; try again later."
        super().__init__(detail, retry_after=seconds)
        self.windows = windows

    def get_headers(self, *args: Any) -> list[tuple[str, str]]:
        return [*super().get_headers(*args), *_headers(self.windows).items()]


class Hits:
    """The hits that a request counts."""

    def __init__(self) -> None:
        self.are_counted = False  # from `count_before` to `refund`, even if all limits are `off`
        self._windows: list[Window] = []

    def count(self, *limits_and_subjects: tuple[Limit, str]) -> None:
        """Count a hit for each limit and subject within the unit of work. Raise LimitReached."""
        counted: list[Window] = []
        for limit, subject in limits_and_subjects:
            new = _new_window(limit, subject)
            if new is None:
                continue
            values = _values(new)
            row = execute(_INCREMENT, **values).one_or_none()
            if row is None:
                begin = _begin_statement(db.engine.dialect.name)
                row = execute(begin, new_end=new.ends_at, **values).one_or_none()
            if row is None:  # the window is full, and the hits before it are rolled back
                full = _open_window(new)
                others = [replace(other, hits=other.hits - 1) for other in counted]
                raise LimitReached(full.rate, full.seconds_left, [*others, full])
            counted.append(replace(new, hits=row.hits, ends_at=row.ends_at))
        self._windows += counted

    def have_space(self, *limits_and_subjects: tuple[Limit, str]) -> bool:
        """Count hits within the unit of work. Return whether all limits allow them.

        This is one statement for each limit in every case, so that its time says nothing.
        """
        begin = _begin_statement(db.engine.dialect.name)
        windows = [_new_window(limit, subject) for limit, subject in limits_and_subjects]
        counted = [
            execute(begin, new_end=window.ends_at, **_values(window)).one_or_none()
            for window in windows
            if window
        ]
        return None not in counted

    def count_before(self, *limits_and_subjects: tuple[Limit, str]) -> None:
        """Count hits in a unit of work of their own, before the result is known.

        Every response will announce them, also one to an error. If a window begins, purge windows
        that have ended. Raise LimitReached.
        """
        with unit_of_work():
            self.count(*limits_and_subjects)
            if any(window.is_new for window in self._windows):
                purge_expired(RateWindow)
        self.are_counted = True
        after_this_request(self.add_headers)

    def refund(self) -> None:
        """Take back the hits within the unit of work, if their windows have not ended.

        The windows are locked in the order of `count`, so that the two cannot deadlock.
        """
        self.are_counted = False
        if not self._windows:
            return
        table, keys = RateWindow, [window.key for window in self._windows]
        own = sa.tuple_(table.key, table.ends_at).in_(
            [(window.key, window.ends_at) for window in self._windows]
        )
        order = sa.case({key: place for place, key in enumerate(keys)}, value=table.key)
        locked = sa.select(table.key).where(own).order_by(order).with_for_update()
        statement = sa.update(table).where(table.key.in_(locked)).values(hits=table.hits - 1)
        rows = execute(statement.returning(table.key, table.hits))
        left = {row.key: row.hits for row in rows}
        self._windows = [
            replace(window, hits=left.get(window.key, window.hits)) for window in self._windows
        ]

    def add_headers(self, response: Response) -> Response:
        """Add the headers that say how many hits are left."""
        response.headers.update(_headers(self._windows))
        return response


def require_space(*limits_and_subjects: tuple[Limit, str]) -> None:
    """Raise LimitReached if a limit allows no further hit of its subject now. This counts nothing.

    So a request beyond a limit is refused before it costs anything.
    """
    new = [_new_window(limit, subject) for limit, subject in limits_and_subjects]
    windows = [_open_window(window) for window in new if window]
    for number, window in enumerate(windows):
        if window.hits >= window.rate.amount:
            raise LimitReached(window.rate, window.seconds_left, windows[: number + 1])


def _headers(windows: Sequence[Window]) -> dict[str, str]:
    """Return the headers that announce limits, if there are any."""
    if not windows:
        return {}
    return {
        "RateLimit-Policy": ", ".join(window.policy for window in windows),
        "RateLimit": ", ".join(window.state for window in windows),
    }


def _new_window(limit: Limit, subject: str) -> Window | None:
    """Return a window that begins now, or None if the limit is `off`."""
    config, time = current_app.config, now()
    rate = limit.rate(config)
    if rate is None or not config["RATE_LIMITS"]:
        return None
    # A digest, so that the database has no addresses and names.
    key = hashlib.blake2b(f"{limit.name} {subject}".encode(), digest_size=16).hexdigest()
    return Window(limit, rate, key, time, time + rate.window)


def _values(new: Window) -> dict[str, Any]:
    """Return the parameters of the statements that count a hit."""
    values = {"window": new.key, "now": new.time, "amount": new.rate.amount}
    return values | {"latest_end": new.ends_at + CLOCK_SKEW}


def _open_window(new: Window) -> Window:
    """Return the open window of the same key. If there is none, return `new`."""
    values = {"window": new.key, "now": new.time, "latest_end": new.ends_at + CLOCK_SKEW}
    row = fetch_one(_OPEN_WINDOW, **values)
    return replace(new, hits=row.hits, ends_at=row.ends_at) if row else new


def _has_ended() -> sa.ColumnElement[bool]:
    """Return the condition that a window has ended.

    A window that ends after `latest_end`, a whole window from now, was begun by a wrong clock.
    """
    present, latest = (sa.bindparam(name, type_=UtcDateTime()) for name in ("now", "latest_end"))
    return sa.or_(RateWindow.ends_at <= present, RateWindow.ends_at > latest)


_HAS_SPACE = RateWindow.hits < sa.bindparam("amount", type_=sa.Integer())
# The usual case: a window continues. Without `ends_at`, no index has to be written.
_INCREMENT = (
    sa.update(RateWindow)
    .where(RateWindow.key == sa.bindparam("window"), ~_has_ended(), _HAS_SPACE)
    .values(hits=RateWindow.hits + 1)
    .returning(RateWindow.hits, RateWindow.ends_at)
)


@cache
def _begin_statement(dialect: str) -> Any:
    """Return the statement that begins a window, or increments one that has just begun."""
    table = RateWindow
    ends_at = sa.bindparam("new_end", type_=UtcDateTime())
    begin = upsert(table, dialect).values(key=sa.bindparam("window"), hits=1, ends_at=ends_at)
    return begin.on_conflict_do_update(
        index_elements=[table.key],
        set_={
            "hits": sa.case((_has_ended(), 1), else_=table.hits + 1),
            "ends_at": sa.case((_has_ended(), begin.excluded.ends_at), else_=table.ends_at),
        },
        where=sa.or_(_has_ended(), _HAS_SPACE),
    ).returning(table.hits, table.ends_at)


_OPEN_WINDOW = sa.select(RateWindow.hits, RateWindow.ends_at).where(
    RateWindow.key == sa.bindparam("window"), ~_has_ended()
)
