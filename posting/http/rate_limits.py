"""How often somebody may do something, counted in the service's own database.

A window begins with its first hit and is one row, which one statement counts up. So the numbers are
exact, however many workers and machines there are. Headers as in
draft-ietf-httpapi-ratelimit-headers-10.
"""

import hashlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from flask import Response, current_app, g, request
from sqlalchemy.dialects import postgresql, sqlite
from werkzeug.exceptions import TooManyRequests

from posting.config import Rate
from posting.db import purge
from posting.db.engine import db, select
from posting.db.models import RateWindow
from posting.db.types import UtcDateTime, now
from posting.http.endpoint import View
from posting.http.openapi import DocumentedBlueprint

CLOCK_SKEW = timedelta(minutes=1)  # by which clocks of several machines may differ


@dataclass(frozen=True)
class Limit:
    """So many hits a window, for each subject: what a setting says, or `times` that."""

    name: str
    setting: str
    times: int = 1

    @property
    def rate(self) -> Rate | None:
        """The rate; None while nothing is limited."""
        rate: Rate | None = current_app.config[self.setting]
        if rate is None or current_app.config["RATE_LIMITS"] == "off":
            return None
        return Rate(rate.amount * self.times, rate.unit)

    def documented(self, config: Mapping[str, Any]) -> TooManyRequests | None:
        """Return the error beyond this limit, for the document; None where nothing is limited."""
        rate: Rate | None = config[self.setting]
        return _refusal(Rate(rate.amount * self.times, rate.unit), 1) if rate else None


Count = tuple[Limit, str]
Charge = tuple[Limit, Rate, str, datetime]


def limited(limit: Limit, subject: Callable[[], str]) -> Callable[[View], View]:
    """Refuse a request, before its body is read, whose subject has no more hits.

    The view itself charges them. What may be sent again under a key is left to the view alone.
    Error: 429.
    """

    def check() -> None:
        if "Idempotency-Key" not in request.headers:
            _check(limit, subject())

    def decorate(view: View) -> View:
        view.limit = check  # type: ignore[attr-defined]  # read where views are registered
        documented: View = DocumentedBlueprint.answers(limit.documented)(view)
        return documented

    return decorate


def charge(*counts: Count) -> list[Charge]:
    """Count a hit for each limit and subject, as a part of the transaction. Error: 429."""
    moment, begins, charged = now(), False, []
    for limit, subject in counts:
        if (rate := limit.rate) is None:
            continue
        key = _key(limit, subject)
        ends_at = moment + rate.window
        row = {"key": key, "ends_at": ends_at, "moment": moment, "amount": rate.amount}
        row["latest_end"] = ends_at + CLOCK_SKEW
        counted = db.session.execute(_COUNT[db.engine.dialect.name], row).one_or_none()
        if counted is None:
            raise _refusal(rate, _note(limit, rate, *_found(limit, rate, subject)))
        charged.append((limit, rate, key, counted))
        begins |= counted.hits == 1
    for limit, rate, _, counted in charged:
        _note(limit, rate, *counted)
    if begins:
        purge.purge_expired()
    return [(limit, rate, key, counted.ends_at) for limit, rate, key, counted in charged]


def give_back(charges: list[Charge]) -> None:
    """Take back hits that were charged, if their windows have not ended."""
    for limit, rate, key, ends_at in charges:
        table = RateWindow
        charged = sa.update(table).where(table.key == key, table.ends_at == ends_at)
        one_less = charged.values(hits=table.hits - 1).returning(table.hits, table.ends_at)
        if row := db.session.execute(one_less).one_or_none():
            _note(limit, rate, *row)


def finish(response: Response) -> None:
    """Add the headers that tell what is left."""
    if noted := g.get("rate_limits"):
        policies, states = zip(*noted.values(), strict=True)
        response.headers["RateLimit-Policy"] = ", ".join(policies)
        response.headers["RateLimit"] = ", ".join(states)


def _check(limit: Limit, subject: str) -> None:
    if (rate := limit.rate) is None:
        return
    hits, ends_at = _found(limit, rate, subject)
    seconds = _note(limit, rate, hits, ends_at)
    if hits >= rate.amount:
        raise _refusal(rate, seconds)


def _found(limit: Limit, rate: Rate, subject: str) -> tuple[int, datetime | None]:
    moment = now()
    latest = moment + rate.window + CLOCK_SKEW
    key = _key(limit, subject)
    rows = select(RateWindow.open(), key=key, moment=moment, latest_end=latest)
    return (rows[0].hits, rows[0].ends_at) if rows else (0, None)


def _key(limit: Limit, subject: str) -> str:
    """Return the key of a window, which tells no address and no name."""
    return hashlib.blake2b(f"{limit.name} {subject}".encode(), digest_size=16).hexdigest()


def _note(limit: Limit, rate: Rate, hits: int, ends_at: datetime | None) -> int:
    """Note what the headers will tell; return the seconds until the window ends."""
    left = (ends_at - now()) if ends_at else rate.window
    seconds = max(0, math.ceil(left.total_seconds()))
    noted = g.setdefault("rate_limits", {})
    noted[limit.name] = (
        f'"{limit.name}";q={rate.amount};w={round(rate.window.total_seconds())}',
        f'"{limit.name}";r={max(0, rate.amount - hits)};t={seconds}',
    )
    return seconds


def _refusal(rate: Rate, seconds: int) -> TooManyRequests:
    article = "an" if rate.unit == "hour" else "a"
    detail = f"No more than {rate.amount:,} {article} {rate.unit}; try again later."
    return TooManyRequests(detail, retry_after=seconds)


def _counting(insert: Callable[..., Any]) -> Any:
    """Return the statement that begins a window or counts it up, or does nothing if it is full."""
    table = RateWindow
    ends_at = sa.bindparam("ends_at", type_=UtcDateTime())
    first = insert(table).values(key=sa.bindparam("key"), hits=1, ends_at=ends_at)
    moment, latest_end = (
        sa.bindparam(name, type_=UtcDateTime()) for name in ("moment", "latest_end")
    )
    over = table.has_ended(moment, latest_end)
    return first.on_conflict_do_update(
        index_elements=[table.key],
        set_={
            "hits": sa.case((over, 1), else_=table.hits + 1),
            "ends_at": sa.case((over, first.excluded.ends_at), else_=table.ends_at),
        },
        where=sa.or_(over, table.hits < sa.bindparam("amount", type_=sa.Integer())),
    ).returning(table.hits, table.ends_at)


_COUNT = {"sqlite": _counting(sqlite.insert), "postgresql": _counting(postgresql.insert)}
