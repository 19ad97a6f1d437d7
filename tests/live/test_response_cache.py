"""Readers and writers on four workers: nobody is shown what is older than the last commit."""

from itertools import count
from threading import Event

import requests

from tests.live.clients import clone, scaled, sign_in


def test_nobody_reads_anything_stale(url, pool, figure):
    ada = sign_in(url, "ada")
    body = {"title": "0", "content": "x"}
    path = ada.post(f"{url}/posts", json=body, timeout=20).headers["Location"]
    acknowledged, finished = [0], Event()

    def write():
        """Count up in a title, by one worker or another."""
        with clone(ada) as client:
            for number in count(1):
                answer = client.patch(path, json={"title": str(number)}, timeout=20)
                assert answer.status_code == 200, answer.text
                acknowledged[0] = number
                if finished.wait(0.002):
                    return

    def read(times):
        """Return how often what was read is older than what was acknowledged before."""
        stale = 0
        with requests.Session() as client:
            for number in range(times):
                least = acknowledged[0]
                if number % 2:
                    title = client.get(path, timeout=20).json()["title"]
                else:
                    title = client.get(f"{url}/posts", timeout=20).json()[0]["title"]
                stale += int(title) < least
        return stale

    writing = pool.submit(write)
    reads = scaled(4000, 100_000)
    try:
        stale = sum(pool.map(read, [reads // 8] * 8))
    finally:
        finished.set()
    writing.result()
    figure(f"{stale} of {reads:,} reads stale, while {acknowledged[0]:,} edits were committed")
    assert stale == 0
    assert acknowledged[0] > 20
