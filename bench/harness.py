"""Servers on the same rows, and how they are compared."""

import json
import os
import secrets
import statistics
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.request import Request, urlopen

import psycopg

from bench import data, pocketbase
from bench.servers import OURSELVES, gunicorn, per_second

POSTS = 100_000
POSTGRES = os.environ.get("BENCH_POSTGRES", "postgresql://postgres@127.0.0.1:5432/postgres")
SETTINGS = {"POSTING_RATE_LIMITS": "off"}
SEND = """
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
wrk.headers["Cookie"] = "{cookie}"
wrk.body = '{body}'
"""


@dataclass
class Row:
    """What is measured, the figure of each, and the least ratios that are wanted."""

    what: str
    figures: dict[str, float]
    wanted: dict[tuple[str, str], float]
    unit: str = "a second"


class Bench:
    """Servers on the same rows, and how they are compared."""

    def __init__(self, folder: Path, stack: ExitStack, seconds: int, rounds: int) -> None:
        self.folder, self.stack = folder, stack
        self.seconds, self.rounds = seconds, rounds
        self.sqlite_url = f"sqlite:///{folder / 'posting.db'}"
        self.postgres_url = stack.enter_context(_postgres())
        for url in (self.sqlite_url, self.postgres_url):
            data.make(url, POSTS)
        pocketbase.make(folder / "pocketbase", POSTS)
        self.cached = self.posting(self.sqlite_url)
        self.uncached = self.posting(self.sqlite_url, POSTING_RESPONSE_CACHE="off")
        self.postgres = self.posting(self.postgres_url)
        self.pocketbase = stack.enter_context(pocketbase.serving(folder / "pocketbase"))

    def posting(self, database: str, **settings: str) -> str:
        environment = SETTINGS | {"POSTING_DATABASE_URL": database} | settings
        return self.stack.enter_context(gunicorn("wsgi:app", "/readyz", **environment))[0]

    def bare(self, body: bytes, password_hash: str = "") -> str:
        """Return the URL of a bare Flask: it hands out these bytes, stores rows, checks a hash."""
        file = self.folder / f"body-{len(body)}"
        file.write_bytes(body)
        environment = {
            "BODY": str(file),
            "DATABASE": str(self.folder / "bare.db"),
            "PASSWORD_HASH": password_hash,
        }
        return self.stack.enter_context(gunicorn("bench.bare:app", "/bytes", **environment))[0]

    def compare(
        self, contenders: dict[str, tuple[str, ...]], seconds: int | None = None
    ) -> dict[str, float]:
        """Return the median rate of each: a URL, and options of wrk."""
        found: dict[str, list[float]] = {name: [] for name in contenders}
        for _ in range(self.rounds):
            for name, (url, *options) in contenders.items():
                found[name].append(per_second(url, seconds or self.seconds, *options))
        return {name: statistics.median(rates) for name, rates in found.items()}

    def sending(self, body: dict[str, str], cookie: str = "") -> tuple[str, ...]:
        """Return the options with which wrk sends this body."""
        script = self.folder / f"send-{secrets.token_hex(8)}.lua"
        script.write_text(SEND.format(cookie=cookie, body=json.dumps(body)))
        return "-s", str(script)


def body_of(url: str) -> bytes:
    with urlopen(url, context=OURSELVES) as answer:
        body: bytes = answer.read()
    return body


def send(url: str, body: dict[str, str]) -> str:
    """Return the cookie that comes back, if any."""
    headers = {"Content-Type": "application/json"}
    with urlopen(Request(url, json.dumps(body).encode(), headers)) as answer:
        return str(answer.headers.get("Set-Cookie", "")).partition(";")[0]


def sign_up_and_in(url: str, username: str) -> str:
    """Open an account, and return the cookie of a session."""
    credentials = {"username": username, "password": data.PASSWORD}
    send(f"{url}/signup", credentials)
    return send(f"{url}/signin", credentials)


@contextmanager
def _postgres() -> Iterator[str]:
    """Yield the URL of a database of its own on the server that BENCH_POSTGRES names."""
    name = f"posting_bench_{secrets.token_hex(8)}"
    with psycopg.connect(POSTGRES, autocommit=True) as server:
        server.execute(f"CREATE DATABASE {name}")
        try:
            yield POSTGRES.rpartition("/")[0] + f"/{name}"
        finally:
            server.execute(f"DROP DATABASE {name} WITH (FORCE)")
