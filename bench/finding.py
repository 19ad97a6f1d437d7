"""Benchmarks of what finds and follows posts: search, activity, feeds, and requests by a token."""

import json
from collections.abc import Iterator

from bench import data
from bench.harness import (
    POSTS,
    Bench,
    Row,
    create_token,
    get_body,
    sign_up_and_in,
    temporary_postgres,
)
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
SEARCHES = {
    "newest": "",
    "a rare word": f"&q={POSTS // 3}",
    "a word in half of them": "&q=even",
    "three such words": "&q=even+left+warm",
    "a word of an author": f"&q=even&author={data.user_id(7)}",
    "a word that is only in the older half": "&q=early",
}
AT_LEAST = {"by activity": 0.8} | dict.fromkeys(list(LISTS)[2:], 0.2)
SEARCHERS = 2  # at the same time: a worker lets one client wait in half of its threads
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
            contenders = {name: (url + path, *PATIENT) for name, path in LISTS.items()}
            rates = bench.compare(contenders, connections=SEARCHERS)
            targets = {(name, FIRST): ratio for name, ratio in AT_LEAST.items()}
            yield Row(f"GET /posts: 20 of {MANY:,} on {engine}", rates, targets)


def finding_comments(bench: Bench) -> Iterator[Row]:
    """Compare searches in comments with the same ones in as many posts, without the cache."""
    with temporary_postgres() as postgres_url:
        file = bench.folder / "comments.db"
        for engine, database in (("SQLite", f"sqlite:///{file}"), ("Postgres", postgres_url)):
            data.create(database, POSTS, comments=POSTS)
            url = bench.posting(database, POSTING_RESPONSE_CACHE="off")
            contenders, targets = {}, {}
            for name, query in SEARCHES.items():
                comments, posts = f"{name} in comments", f"{name} in posts"
                contenders[comments] = (f"{url}/comments?limit=20{query}", *PATIENT)
                contenders[posts] = (f"{url}/posts?limit=20{query}", *PATIENT)
                targets[comments, posts] = 0.8
            rates = bench.compare(contenders, connections=SEARCHERS)
            yield Row(f"GET /comments: 20 of {POSTS:,} on {engine}", rates, targets)


def following(bench: Bench) -> Iterator[Row]:
    """Compare pages of a million changes with a list of posts, without the cache."""
    with temporary_postgres() as postgres_url:
        file = bench.folder / "changes.db"
        for engine, database in (("SQLite", f"sqlite:///{file}"), ("Postgres", postgres_url)):
            data.create(database, POSTS)
            data.add_changes(database, MANY)
            url = bench.posting(database, POSTING_RESPONSE_CACHE="off")
            end = _cursor(f"{url}/changes")
            epoch, _, _ = end.split(".")
            start = f"{epoch}.0.0"
            _, transaction, _ = _cursor(f"{url}/changes?after={start}").split(".")
            middle = f"{epoch}.{transaction}.{MANY // 2}"
            places = {"from the start": start, "from the middle": middle, "nothing new": end}
            contenders = {name: (f"{url}/changes?after={at}",) for name, at in places.items()}
            rates = bench.compare({FIRST: (f"{url}/posts",), **contenders})
            targets = {(name, FIRST): 0.8 for name in places}
            yield Row(f"GET /changes: 20 of {MANY:,} on {engine}", rates, targets)


def _cursor(url: str) -> str:
    cursor: str = json.loads(get_body(url))["cursor"]
    return cursor


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
    token = create_token(bench.cached, cookie)
    rates = bench.compare(
        {
            SESSION: (url, "-H", f"Cookie: {cookie}"),
            TOKEN: (url, "-H", f"Authorization: Bearer {token}"),
        }
    )
    yield Row("GET /users/me", rates, {(TOKEN, SESSION): 0.9})
