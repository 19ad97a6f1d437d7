"""Rate limits are exact with several workers."""

from collections import Counter
from http.client import HTTPConnection
from json import dumps
from urllib.parse import urlsplit

import pytest
import requests

from tests.live.clients import PASSWORD, clone, run_concurrently, sign_in


@pytest.fixture
def url(serve):
    limits = {"POSTING_LIMIT_POSTS": "20/hour", "POSTING_LIMIT_SIGNIN": "10/hour"}
    return serve(WEB_CONCURRENCY="4", POSTING_RATE_LIMITS="on", **limits).url


def repeat(pool, actions, rounds):
    return sum((Counter(run_concurrently(pool, actions)) for _ in range(rounds)), Counter())


def test_concurrent_posts_stop_at_the_limit(url, pool, status_counts):
    clients = [clone(client) for client in [sign_in(url, "ada")] * 16]
    body = {"title": "x", "content": "x"}
    writes = [lambda c=client: c.post(f"{url}/posts", json=body, timeout=20) for client in clients]
    status_counts += repeat(pool, writes, 4)
    assert status_counts == {201: 20, 429: 44}
    assert len(requests.get(f"{url}/posts?limit=100", timeout=20).json()) == 20


def test_concurrent_guesses_stop_at_the_limit_of_their_address(url, pool, status_counts):
    sign_in(url, "ada")
    guess = {"username": "ada", "password": "a guess of a password"}
    guesses = [lambda: requests.post(f"{url}/signin", json=guess, timeout=20)] * 16
    status_counts += repeat(pool, guesses, 4)
    assert status_counts == {401: 10, 429: 54}
    credentials = dumps({"username": "ada", "password": PASSWORD})
    headers = {"Content-Type": "application/json"}
    refused = requests.post(f"{url}/signin", data=credentials, headers=headers, timeout=20)
    assert refused.status_code == 429
    elsewhere = HTTPConnection(urlsplit(url).netloc, timeout=20, source_address=("127.0.0.2", 0))
    elsewhere.request("POST", "/signin", credentials, headers)
    response = elsewhere.getresponse()
    elsewhere.close()
    assert response.status == 200
