"""Clients of a real server."""

import os
import time
from functools import partial
from threading import Barrier

import requests

PASSWORD = "a long walk by the sea"


def scaled(quick, full):
    """Return `full` in `make live`, and else `quick`."""
    return full if os.environ.get("LIVE") == "full" else quick


_open_clients: list[requests.Session] = []


def new_client():
    client = requests.Session()
    _open_clients.append(client)
    return client


def close_clients():
    """Close the connections of all clients. A server that stops waits 2 seconds for open ones."""
    while _open_clients:
        _open_clients.pop().close()


def sign_in(url, username, client=None):
    client = client or new_client()
    credentials = {"username": username, "password": PASSWORD}
    for path in ("/signup", "/signin"):
        response = patiently(partial(client.post, url + path, json=credentials, timeout=20))()
    assert response.status_code == 200, response.text
    client.user = response.json()
    return client


def clone(client):
    """Return a client with the same session and its own connections."""
    other = new_client()
    other.cookies.update(client.cookies)
    return other


def patiently(send):
    """Return a function that repeats a request while too many others hash passwords."""

    def repeat():
        while (response := send()).status_code == 503 and response.json()["code"] == "busy":
            time.sleep(0.02)
        return response

    return repeat


def run_concurrently(pool, actions):
    """Start all actions at the same time; return the status codes of their responses."""
    barrier = Barrier(len(actions))

    def run(action):
        barrier.wait()
        return patiently(action)().status_code

    return list(pool.map(run, actions))
