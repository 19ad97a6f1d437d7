"""Rows on signing in, which is slow by design: how near to that, and what others notice of it."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from statistics import median

from pysqlite3 import dbapi2 as sqlite

from bench import data
from bench.harness import SETTINGS, Bench, Row, send
from bench.servers import CONNECTIONS, CORES, gunicorn, median_milliseconds, per_second

SECONDS = 10  # of each run, since a hash takes a good part of one
OURS, LIMIT = "Posting", "bare Flask that checks the same hash"
ALONE, BESIDE = "alone", f"beside {CONNECTIONS} who sign in"
VISITOR = {"username": "visitor", "password": data.PASSWORD}


def signing_in(bench: Bench) -> Iterator[Row]:
    send(f"{bench.cached}/signup", VISITOR)
    options = (*bench.sending(VISITOR), "--timeout", "30s")
    bare = bench.bare(b"{}", _password_hash(bench))
    contenders = {
        OURS: (f"{bench.cached}/signin", *options),
        LIMIT: (f"{bare}/password", *options),
    }
    rates = bench.compare(contenders, SECONDS)
    yield Row(f"POST /signin, {CONNECTIONS} at once", rates, {(OURS, LIMIT): 0.90})
    yield Row(
        "GET /posts with the cache, on all cores: median wait of one client",
        _waits(bench, options),
        {(ALONE, BESIDE): 0.50},
        "ms",
    )


def _password_hash(bench: Bench) -> str:
    with sqlite.connect(bench.folder / "posting.db") as connection:
        query = "SELECT password_hash FROM users WHERE username = ?"
        [(known,)] = connection.execute(query, (VISITOR["username"],)).fetchall()
    return str(known)


def _waits(bench: Bench, options: tuple[str, ...]) -> dict[str, float]:
    """Return milliseconds, with the response cache, which each sign-in empties."""
    found: dict[str, list[float]] = {ALONE: [], BESIDE: []}
    settings = SETTINGS | {"POSTING_DATABASE_URL": bench.sqlite_url}
    with (
        gunicorn("wsgi:app", "/readyz", CORES, **settings) as (url, _),
        ThreadPoolExecutor() as pool,
    ):
        for _ in range(bench.rounds):
            found[ALONE].append(median_milliseconds(f"{url}/posts", SECONDS))
            signing = pool.submit(per_second, f"{url}/signin", SECONDS + 1, *options)
            found[BESIDE].append(median_milliseconds(f"{url}/posts", SECONDS))
            signing.result()
    return {name: median(waits) for name, waits in found.items()}
