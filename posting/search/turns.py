"""Turns to search, so that clients with expensive searches leave room for all others.

A search may keep a core busy for seconds. So each worker has two places, and a client has one of
them at most. Of the clients that wait, the client that has searched least lately is next. All slow
clients share one place. A client is slow if the last search was slow, and the latest ones were slow
on average.

A request that waits holds a thread. So the requests of a client that wait have half of the threads
at most, and others are refused at once. A slow client is also refused at once if another slow
client waits that has searched less.
"""

import math
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Condition
from time import monotonic

from werkzeug.exceptions import ServiceUnavailable

from posting.config import worker_threads
from posting.web.errors import Coded

PLACES = 2
PLACES_FOR_SLOW_CLIENTS = 1
MAX_WAIT_SECONDS = 0.5
SLOW_SECONDS = 0.25  # a search for ordinary words takes milliseconds
MEMORY_SECONDS = 30  # after which a client that has stopped searching is like a new one


class SearchBusy(Coded, ServiceUnavailable):
    error_code = "search_busy"
    description = "Too many searches are in progress; try again."

    def __init__(self) -> None:
        super().__init__(retry_after=2)


@dataclass
class Recent:
    """The recent searches of a client."""

    latest: float  # the time of its latest request or search
    seconds: float = 0  # of its searches, of which earlier ones count less
    mean: float | None = None  # seconds of a search, to which later ones contribute more
    is_slow: bool = False  # whether the last search and the mean were slow

    def add(self, seconds: float) -> None:
        """Note a search. One slow search does not make a client slow whose searches are quick."""
        self.seconds += seconds
        self.mean = seconds if self.mean is None else (4 * self.mean + seconds) / 5
        self.is_slow = min(seconds, self.mean) > SLOW_SECONDS


class Turns:
    """The searches of a worker, by the clients that sent them."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._recent: dict[str, Recent] = {}
        self._running: set[str] = set()
        self._waiting: Counter[str] = Counter()

    @contextmanager
    def take(self, client: str) -> Iterator[None]:
        """Hold a place for a search of a client. Raise SearchBusy if none becomes free in time."""
        with self._changed:
            recent = self._remember(client)
            if self._waiting[client] >= max(1, worker_threads() // 2):
                raise SearchBusy
            slow = (self._recent[other] for other in self._waiting if self._is_slow(other))
            if recent.is_slow and any(other.seconds <= recent.seconds for other in slow):
                raise SearchBusy
            self._waiting[client] += 1
            try:
                if not self._changed.wait_for(lambda: self._is_next(client), MAX_WAIT_SECONDS):
                    raise SearchBusy
                self._running.add(client)
            finally:
                self._waiting -= Counter([client])  # without clients that no longer wait
                self._changed.notify_all()
        start = monotonic()
        try:
            yield
        finally:
            with self._changed:
                recent.latest = monotonic()
                recent.add(recent.latest - start)
                self._running.remove(client)
                self._changed.notify_all()

    def _remember(self, client: str) -> Recent:
        """Return what a client has searched lately, and forget clients that do not search."""
        time = monotonic()
        busy = self._running | self._waiting.keys()
        self._recent = {
            other: recent
            for other, recent in self._recent.items()
            if recent.latest > time - MEMORY_SECONDS or other in busy
        }
        recent = self._recent.setdefault(client, Recent(time))
        recent.seconds *= math.exp((recent.latest - time) / MEMORY_SECONDS)
        recent.latest = time
        return recent

    def _is_slow(self, client: str) -> bool:
        return self._recent[client].is_slow

    def _is_next(self, client: str) -> bool:
        """Return whether there is a place for a client, and for none that has searched less."""
        if not self._has_place(client):
            return False
        others = filter(self._has_place, self._waiting)
        return client == min(others, key=lambda other: self._recent[other].seconds)

    def _has_place(self, client: str) -> bool:
        if client in self._running or len(self._running) >= PLACES:
            return False
        slow = sum(map(self._is_slow, self._running))
        return not self._is_slow(client) or slow < PLACES_FOR_SLOW_CLIENTS
