"""Benchmarks of notifications: comments that notify members, and the count of unread ones."""

import json
from collections.abc import Iterator
from urllib.request import Request, urlopen

from bench import data
from bench.harness import NEW_POST, Bench, Row, get_body, post, sign_up_and_in
from bench.writing import LIMITS, NEW_COMMENT

NONE, ONE, THREE = "notifies no member", "notifies one member", "notifies three members"
COUNT, LIST = "count", "GET /posts without cache"


def telling(bench: Bench) -> Iterator[Row]:
    url = bench.posting(bench.sqlite_url, **LIMITS)
    writer, *readers = (sign_up_and_in(url, f"member-{n}-of-bench") for n in range(3))
    post(f"{url}/posts", NEW_POST, writer)
    [own, *_] = json.loads(get_body(f"{url}/posts"))
    for reader in readers:
        _follow(f"{url}/posts/{data.post_id(11)}/subscription", reader)
    posts = {NONE: own["id"], ONE: data.post_id(10), THREE: data.post_id(11)}
    options = bench.wrk_options(NEW_COMMENT, {"Cookie": writer})
    contenders = {name: (f"{url}/posts/{id}/comments", *options) for name, id in posts.items()}
    targets = {(ONE, NONE): 0.8, (THREE, NONE): 0.8}
    yield Row("POST /posts/{id}/comments", bench.compare(contenders), targets)
    count = (f"{url}/notifications/unread", "-H", f"Cookie: {readers[0]}")
    rates = bench.compare({COUNT: count, LIST: (f"{bench.uncached}/posts",)})
    yield Row("GET /notifications/unread", rates, {(COUNT, LIST): 3.3})


def _follow(url: str, cookie: str) -> None:
    headers = {"Content-Type": "application/json", "Cookie": cookie}
    body = json.dumps({"level": "all"}).encode()
    with urlopen(Request(url, body, headers, method="PUT")):
        pass
