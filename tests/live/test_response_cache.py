"""The response caches of several workers: no reader gets data older than a finished write."""

from itertools import count, takewhile
from threading import Event

import pytest
import requests

from tests.live.clients import clone, scaled, sign_in


@pytest.mark.parametrize("servers", [1, 2])
def test_no_read_is_stale(serve, pool, figure, servers):
    # Without a public URL, each server would give the cookie the name of its port.
    public = {"POSTING_PUBLIC_URL": "http://127.0.0.1"}
    few = {"GUNICORN_CMD_ARGS": "--threads 4"}  # since Postgres has 100 connections for all tests
    urls = [serve(WEB_CONCURRENCY="4", **few, **public).url for _ in range(servers)]
    ada = sign_in(urls[0], "ada")
    body = {"title": "0", "content": "x"}
    path = f"/posts/{ada.post(f'{urls[0]}/posts', json=body, timeout=20).json()['id']}"
    acknowledged, finished = [0], Event()

    def write():
        """Count up in the title, each time by any of the workers."""
        with clone(ada) as client:
            for number in count(1):
                url = urls[number % servers] + path
                response = client.patch(url, json={"title": str(number)}, timeout=20)
                assert response.status_code == 200, response.text
                acknowledged[0] = number
                if finished.wait(0.002):
                    return

    def read(times):
        """Return how many reads were older than the last write acknowledged before them.

        There are as many reads, or more until there are some writes.
        """
        stale = 0
        with requests.Session() as client:
            for number in takewhile(lambda number: number < times or is_too_early(), count()):
                url, oldest = urls[number // 2 % servers], acknowledged[0]
                if number % 2:
                    title = client.get(url + path, timeout=20).json()["title"]
                else:
                    title = client.get(f"{url}/posts", timeout=20).json()[0]["title"]
                stale += int(title) < oldest
        return stale

    def is_too_early():
        return acknowledged[0] <= 20 and not writing.done()

    writing = pool.submit(write)
    reads = scaled(4000, 100_000)
    try:
        stale = sum(pool.map(read, [reads // 8] * 8))
    finally:
        finished.set()
    writing.result()
    assert acknowledged[0] > 20
    figure(f"{stale} of {reads:,} reads stale, while {acknowledged[0]:,} edits were committed")
    assert stale == 0
