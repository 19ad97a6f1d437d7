"""Readers and writers that go on while something happens to the servers."""

import secrets
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Event
from typing import Any

import requests
import sqlalchemy as sa

PATIENCE = 30  # seconds


class Load:
    """Clients of one user's, who write posts and read lists; each write is sent until it is done.

    `answers` counts what came back, by method and status or name of error. `lost` and `doubled` say
    whether the database holds each acknowledged post once.
    """

    def __init__(
        self, url: str, signed_in: requests.Session, *, writers: int = 8, readers: int = 0
    ) -> None:
        self.url, self.signed_in = url, signed_in
        self.answers: Counter[str] = Counter()
        self.acknowledged: list[str] = []
        self.longest = 0.0
        self._over = Event()
        self._pool = ThreadPoolExecutor(writers + readers)
        self._roles = [self._write] * writers + [self._read] * readers
        self._running: list[Future[None]] = []

    def __enter__(self) -> "Load":
        self._running = [self._pool.submit(role) for role in self._roles]
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._pool.shutdown()
        for running in self._running:
            running.result()

    @property
    def failures(self) -> dict[str, int]:
        """What was neither 200 nor 201."""
        return {name: n for name, n in self.answers.items() if name not in {"GET 200", "POST 201"}}

    def missing_and_doubled(self, connection: sa.Connection) -> tuple[set[str], set[str]]:
        """Return which acknowledged posts are not in the database, and which are there twice."""
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
            while not self._over.is_set():
                title = secrets.token_hex(8)
                deadline = time.monotonic() + PATIENCE
                while not self._sent(client, title):
                    assert time.monotonic() < deadline, self.answers
                    time.sleep(0.02)
                self.acknowledged.append(title)

    def _sent(self, client: requests.Session, title: str) -> bool:
        body = {"title": title, "content": "x" * 500}
        headers = {"Idempotency-Key": title}
        answered = self._ask(client.post, "/posts", json=body, headers=headers)
        return answered == 201

    def _read(self) -> None:
        with self._client() as client:
            client.cookies.clear()
            while not self._over.is_set():
                self._ask(client.get, "/posts?limit=5")
                time.sleep(0.01)  # or nginx's cache would leave the servers no time

    def _ask(self, ask: Callable[..., requests.Response], path: str, **body: Any) -> int:
        began = time.monotonic()
        try:
            status = ask(self.url + path, timeout=PATIENCE, **body).status_code
        except requests.RequestException as error:
            status = 0
            outcome = type(error).__name__
        else:
            outcome = str(status)
        self.longest = max(self.longest, time.monotonic() - began)
        self.answers[f"{ask.__name__.upper()} {outcome}"] += 1
        return status


def wait_until(condition: Callable[[], object], seconds: float = 30) -> float:
    """Return how long it took until a condition held."""
    began = time.monotonic()
    while not condition():
        assert time.monotonic() < began + seconds, "it took too long"
        time.sleep(0.02)
    return time.monotonic() - began
