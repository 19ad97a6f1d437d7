"""Clients of a real server, and what they do at the same time."""

import os
from threading import Barrier

import requests

PASSWORD = "a long walk by the sea"


def sized(usually, in_full):
    """Return how often to do something: less, but for `make live`."""
    return in_full if os.environ.get("LIVE") == "full" else usually


def sign_in(url, username, client=None):
    client = client or requests.Session()
    credentials = {"username": username, "password": PASSWORD}
    client.post(f"{url}/signup", json=credentials, timeout=20)
    answer = client.post(f"{url}/signin", json=credentials, timeout=20)
    assert answer.status_code == 200, answer.text
    client.user = answer.json()
    return client


def copy_of(client):
    """A client with the same session and connections of its own."""
    other = requests.Session()
    other.cookies.update(client.cookies)
    return other


def at_once(pool, actions):
    """Run all actions, begun together; return their statuses."""
    barrier = Barrier(len(actions))

    def run(action):
        barrier.wait()
        return action().status_code

    return list(pool.map(run, actions))
