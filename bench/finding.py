"""Benchmarks of what finds and follows posts: search, activity, feeds, and requests by a token."""

import json
from collections.abc import Iterator
from urllib.request import Request, urlopen

from bench import data
from bench.harness import Bench, Row, get_body, sign_up_and_in, temporary_postgres
from bench.rows import LIMIT, MANY, OURS, UNCACHED

FIRST = "first page"
LISTS = {
    FIRST: "/posts",
    "by activity": "/posts?sort=active",
    "a rare word": f"/posts?q={MANY // 3}",
    "a word in half of the posts": "/posts?q=even",
    "three such words": "/posts?q=even+left+warm",
    "a word of an author": f"/posts?q=even&author={data.user_id(7)}",
    "a word that is only in the older half": "/posts?q=early",
    "words that are never together": "/posts?q=early+late",
}
AT_LEAST = {"by activity": 0.8} | dict.fromkeys(list(LISTS)[2:5], 0.2)
PATIENT = ("--timeout", "30s")
SESSION, TOKEN = "by session", "by token"


def finding(bench: Bench) -> Iterator[Row]:
    """Compare lists of a million posts, without the cache, which would hide the differences."""
    with temporary_postgres() as postgres_url:
        file = bench.folder / f"{MANY}.db"
        databases = {"SQLite": f"sqlite:///{file}", "Postgres": postgres_url}
        for engine, database in databases.items():
            if engine == "Postgres" or not file.exists():
                data.create(database, MANY)
            url = bench.posting(database, POSTING_RESPONSE_CACHE="off")
            rates = bench.compare({name: (url + path, *PATIENT) for name, path in LISTS.items()})
            targets = {(name, FIRST): ratio for name, ratio in AT_LEAST.items()}
            yield Row(f"GET /posts: 20 of {MANY:,} on {engine}", rates, targets)


def feeds(bench: Bench) -> Iterator[Row]:
    bare = bench.bare(get_body(f"{bench.cached}/feed.atom"))
    rates = bench.compare(
        {
            OURS: (f"{bench.cached}/feed.atom",),
            UNCACHED: (f"{bench.uncached}/feed.atom",),
            LIMIT: (f"{bare}/bytes",),
        }
    )
    yield Row("GET /feed.atom: 50 posts of 2 KB", rates, {(OURS, LIMIT): 0.75})


def tokens(bench: Bench) -> Iterator[Row]:
    url = f"{bench.cached}/users/me"
    cookie = sign_up_and_in(bench.cached, "programmer")
    body = json.dumps({"name": "Benchmark", "scope": "read"}).encode()
    headers = {"Content-Type": "application/json", "Cookie": cookie}
    with urlopen(Request(f"{bench.cached}/tokens", body, headers)) as response:
        token = json.load(response)["token"]
    rates = bench.compare(
        {
            SESSION: (url, "-H", f"Cookie: {cookie}"),
            TOKEN: (url, "-H", f"Authorization: Bearer {token}"),
        }
    )
    yield Row("GET /users/me", rates, {(TOKEN, SESSION): 0.9})
