"""Rate limits, counted in the service's own database.

A window begins with its first hit and is one row, which one statement increments. So the counts are
exact, however many workers and machines there are. Headers as in
draft-ietf-httpapi-ratelimit-headers-10.
"""

import hashlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import Any

import sqlalchemy as sa
from flask import Response, current_app, g
from sqlalchemy.dialects import postgresql, sqlite
from werkzeug.exceptions import TooManyRequests

from posting.config import Rate
from posting.db.engine import db, fetch_one
from posting.db.models import RateWindow
from posting.db.purge import purge_expired
from posting.db.types import UtcDateTime, now

CLOCK_SKEW = timedelta(minutes=1)  # the largest expected difference between machines


class Counts(Enum):
    """The requests that a limit counts."""

    SUCCESSES = "counted in the view's transaction"
    ATTEMPTS = "counted and committed before the view"
    FAILURES = "counted by `posting.auth.passwords`, which refunds the hit on success"


@dataclass(frozen=True)
class Limit:
    """A maximum number of hits per window and subject: a setting's rate, or a multiple of it."""

    name: str
    setting: str
    subject: Callable[[], str]
    counts: Counts = Counts.SUCCESSES
    times: int = 1

    def rate(self, config: Mapping[str, Any]) -> Rate | None:
        """Return the rate; None if the setting is empty."""
        rate: Rate | None = config[self.setting]
        return Rate(rate.amount * self.times, rate.unit) if rate else None

    def error(self, config: Mapping[str, Any]) -> TooManyRequests | None:
        """Return the error beyond the limit, for the OpenAPI document."""
        rate = self.rate(config)
        return _error(rate, seconds=1) if rate else None


@dataclass(frozen=True)
class Hit:
    """A counted hit."""

    limit: Limit
    rate: Rate
    key: str
    hits: int
    ends_at: datetime


def check(limit: Limit) -> None:
    """Raise 429 if the subject has no hits left. This counts nothing."""
    rate = _current_rate(limit)
    if rate is None:
        return
    window = _open_window(limit, rate, limit.subject())
    hits, ends_at = (window.hits, window.ends_at) if window else (0, None)
    seconds = _announce(limit, rate, hits, ends_at)
    if hits >= rate.amount:
        raise _error(rate, seconds)


def hit(*limits_and_subjects: tuple[Limit, str]) -> list[Hit]:
    """Count a hit for each limit and subject within the transaction. Error: 429."""
    moment, counted = now(), []
    for limit, subject in limits_and_subjects:
        rate = _current_rate(limit)
        if rate is None:
            continue
        key = _key(limit, subject)
        values = {
            "key": key,
            "now": moment,
            "ends_at": moment + rate.window,
            "latest_end": moment + rate.window + CLOCK_SKEW,
            "amount": rate.amount,
        }
        row = db.session.execute(_COUNT[db.engine.dialect.name], values).one_or_none()
        if row is None:  # the window is full
            window = _open_window(limit, rate, subject)
            raise _error(rate, _announce(limit, rate, rate.amount, window and window.ends_at))
        counted.append(Hit(limit, rate, key, row.hits, row.ends_at))
    return counted


def announce(hits: list[Hit]) -> None:
    """Add committed hits to the response's headers; purge expired rows once a window."""
    for each in hits:
        _announce(each.limit, each.rate, each.hits, each.ends_at)
    if any(each.hits == 1 for each in hits):
        purge_expired()
        db.session.commit()


def refund(hits: list[Hit]) -> None:
    """Take back hits within the transaction, if their windows have not ended."""
    table = RateWindow
    for each in hits:
        same_window = sa.and_(table.key == each.key, table.ends_at == each.ends_at)
        statement = sa.update(table).where(same_window).values(hits=table.hits - 1)
        returned = statement.returning(table.hits, table.ends_at)
        if row := db.session.execute(returned).one_or_none():
            _announce(each.limit, each.rate, row.hits, row.ends_at)


def refund_request() -> None:
    """Take back the hit of the request, within the transaction."""
    refund(g.get("hits", []))


def add_headers(response: Response) -> None:
    """Add the headers that say how many hits are left."""
    if limits := g.get("rate_limits"):
        policies, states = zip(*limits.values(), strict=True)
        response.headers["RateLimit-Policy"] = ", ".join(policies)
        response.headers["RateLimit"] = ", ".join(states)


def _current_rate(limit: Limit) -> Rate | None:
    config = current_app.config
    return None if config["RATE_LIMITS"] == "off" else limit.rate(config)


def _open_window(limit: Limit, rate: Rate, subject: str) -> sa.Row[Any] | None:
    moment = now()
    latest_end = moment + rate.window + CLOCK_SKEW
    return fetch_one(_OPEN_WINDOW, key=_key(limit, subject), now=moment, latest_end=latest_end)


def _key(limit: Limit, subject: str) -> str:
    """Return the key of a window, which reveals no address and no name."""
    return hashlib.blake2b(f"{limit.name} {subject}".encode(), digest_size=16).hexdigest()


def _announce(limit: Limit, rate: Rate, hits: int, ends_at: datetime | None) -> int:
    """Keep the values of the response's headers; return the seconds until the window ends."""
    left = (ends_at - now()) if ends_at else rate.window
    seconds = max(0, math.ceil(left.total_seconds()))
    limits = g.setdefault("rate_limits", {})
    limits[limit.name] = (
        f'"{limit.name}";q={rate.amount};w={round(rate.window.total_seconds())}',
        f'"{limit.name}";r={max(0, rate.amount - hits)};t={seconds}',
    )
    return seconds


def _error(rate: Rate, seconds: int) -> TooManyRequests:
    article = "an" if rate.unit == "hour" else "a"
    detail = f"No more than {rate.amount:,} {article} {rate.unit}; try again later."
    return TooManyRequests(detail, retry_after=seconds)


def _has_ended() -> sa.ColumnElement[bool]:
    """Return the condition that a window has ended.

    A window that ends after `latest_end`, a whole window from now, was begun by a wrong clock.
    """
    present, latest = (sa.bindparam(name, type_=UtcDateTime()) for name in ("now", "latest_end"))
    return sa.or_(RateWindow.ends_at <= present, RateWindow.ends_at > latest)


def _count_statement(insert: Callable[..., Any]) -> Any:
    """Return the statement that begins a window, or increments it unless it is full."""
    table = RateWindow
    ends_at = sa.bindparam("ends_at", type_=UtcDateTime())
    begin = insert(table).values(key=sa.bindparam("key"), hits=1, ends_at=ends_at)
    return begin.on_conflict_do_update(
        index_elements=[table.key],
        set_={
            "hits": sa.case((_has_ended(), 1), else_=table.hits + 1),
            "ends_at": sa.case((_has_ended(), begin.excluded.ends_at), else_=table.ends_at),
        },
        where=sa.or_(_has_ended(), table.hits < sa.bindparam("amount", type_=sa.Integer())),
    ).returning(table.hits, table.ends_at)


_COUNT = {
    "sqlite": _count_statement(sqlite.insert),
    "postgresql": _count_statement(postgresql.insert),
}
_OPEN_WINDOW = sa.select(RateWindow.hits, RateWindow.ends_at).where(
    RateWindow.key == sa.bindparam("key"), ~_has_ended()
)
