"""Benchmarks of signing in, which is slow by design, and of other requests at the same time."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from statistics import median

from pysqlite3 import dbapi2 as sqlite

from bench import data
from bench.harness import SETTINGS, Bench, Row, post
from bench.servers import CORES, gunicorn, milliseconds, per_second

CLIENTS = 3  # at the same time: of one address, a worker hashes no more
SECONDS = 10  # per run, because a hash takes a large part of a second
OURS, LIMIT = "Posting", "bare Flask, same hash"
ALONE, DURING = "alone", f"during {CLIENTS} concurrent sign-ins"
VISITOR = {"username": "visitor", "password": data.PASSWORD}


def signing_in(bench: Bench) -> Iterator[Row]:
    post(f"{bench.cached}/signup", VISITOR)
    options = (*bench.wrk_options(VISITOR), "--timeout", "30s")
    bare = bench.bare(b"{}", _password_hash(bench))
    contenders = {OURS: (f"{bench.cached}/signin", *options), LIMIT: (f"{bare}/password", *options)}
    rates = bench.compare(contenders, SECONDS, CLIENTS)
    yield Row(f"POST /signin, {CLIENTS} concurrent clients", rates, {(OURS, LIMIT): 0.90})
    yield Row(
        "GET /posts with cache, on all cores: median latency of one client",
        _latencies(bench, options),
        {(ALONE, DURING): 0.50},
        "ms",
    )


def _password_hash(bench: Bench) -> str:
    with sqlite.connect(bench.folder / "posting.db") as connection:
        query = "SELECT password_hash FROM users WHERE username = ?"
        [(password_hash,)] = connection.execute(query, (VISITOR["username"],)).fetchall()
    return str(password_hash)


def _latencies(bench: Bench, options: tuple[str, ...]) -> dict[str, float]:
    """Return milliseconds, with the response cache, which each sign-in empties."""
    latencies: dict[str, list[float]] = {ALONE: [], DURING: []}
    settings = SETTINGS | {"POSTING_DATABASE_URL": bench.sqlite_url}
    with (
        gunicorn("wsgi:app", "/readyz", CORES, **settings) as (url, _),
        ThreadPoolExecutor() as pool,
    ):
        for _ in range(bench.rounds):
            latencies[ALONE].append(milliseconds(f"{url}/posts", SECONDS))
            signing = pool.submit(
                per_second, f"{url}/signin", SECONDS + 1, *options, connections=CLIENTS
            )
            latencies[DURING].append(milliseconds(f"{url}/posts", SECONDS))
            signing.result()
    return {name: median(values) for name, values in latencies.items()}
