"""Clients that read and write continuously while something happens to the servers."""

import secrets
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Event
from typing import Any

import requests
import sqlalchemy as sa

TIMEOUT = 30  # seconds


class Load:
    """Clients that write posts and read lists; a write is repeated until it is acknowledged.

    `outcomes` counts the responses by method and status, or the name of the exception.
    """

    def __init__(
        self, url: str, signed_in: requests.Session, *, writers: int = 8, readers: int = 0
    ) -> None:
        self.url, self.signed_in = url, signed_in
        self.outcomes: Counter[str] = Counter()
        self.acknowledged: list[str] = []
        self.longest = 0.0
        self._stop = Event()
        self._pool = ThreadPoolExecutor(writers + readers)
        self._roles = [self._write] * writers + [self._read] * readers
        self._running: list[Future[None]] = []

    def __enter__(self) -> "Load":
        self._running = [self._pool.submit(role) for role in self._roles]
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._pool.shutdown()
        for running in self._running:
            running.result()

    def wait_for_writes(self, count: int) -> float:
        """Wait for as many more acknowledged writes; return the seconds it took."""
        goal = len(self.acknowledged) + count
        return wait_until(lambda: len(self.acknowledged) >= goal)

    @property
    def failures(self) -> dict[str, int]:
        """The outcomes other than 200 and 201."""
        return {name: n for name, n in self.outcomes.items() if name not in {"GET 200", "POST 201"}}

    def lost_and_duplicated(self, connection: sa.Connection) -> tuple[set[str], set[str]]:
        """Return the acknowledged posts that are not stored, and the posts stored twice."""
        stored = Counter(connection.execute(sa.text("SELECT title FROM posts")).scalars())
        return set(self.acknowledged) - set(stored), {title for title, n in stored.items() if n > 1}

    def _client(self) -> requests.Session:
        client = requests.Session()
        client.trust_env = False
        client.verify = self.signed_in.verify
        client.cookies.update(self.signed_in.cookies)
        return client

    def _write(self) -> None:
        with self._client() as client:
            while not self._stop.is_set():
                title = secrets.token_hex(8)
                deadline = time.monotonic() + TIMEOUT
                while not self._send_post(client, title):
                    assert time.monotonic() < deadline, self.outcomes
                    time.sleep(0.02)
                self.acknowledged.append(title)

    def _send_post(self, client: requests.Session, title: str) -> bool:
        body = {"title": title, "content": "x" * 500}
        headers = {"Idempotency-Key": title}
        return self._request(client.post, "/posts", json=body, headers=headers) == 201

    def _read(self) -> None:
        with self._client() as client:
            client.cookies.clear()
            while not self._stop.is_set():
                self._request(client.get, "/posts?limit=5")
                time.sleep(0.01)  # reads from nginx's cache would otherwise starve the servers

    def _request(self, send: Callable[..., requests.Response], path: str, **body: Any) -> int:
        started = time.monotonic()
        try:
            status = send(self.url + path, timeout=TIMEOUT, **body).status_code
        except requests.RequestException as error:
            status = 0
            outcome = type(error).__name__
        else:
            outcome = str(status)
        self.longest = max(self.longest, time.monotonic() - started)
        self.outcomes[f"{send.__name__.upper()} {outcome}"] += 1
        return status


def wait_until(condition: Callable[[], object], seconds: float = 60) -> float:
    """Wait until a condition is true; return the seconds it took."""
    started = time.monotonic()
    while not condition():
        assert time.monotonic() < started + seconds, "the condition is still false"
        time.sleep(0.02)
    return time.monotonic() - started
