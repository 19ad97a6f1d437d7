"""Other programs read the SQLite file of a service that is written to: no write is lost.

SQLite before 3.51, such as Debian's and Python's own, deletes the log if it takes itself for the
last process that has the file open. It looks for the locks of the others.
"""

import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest

from tests.conftest import POSTGRES
from tests.live.clients import scaled, sign_in
from tests.live.load import Load, wait_until
from tests.live.sites import require_programs

pytestmark = [
    pytest.mark.skipif(bool(POSTGRES), reason="is for SQLite"),
    pytest.mark.usefixtures("stays_consistent"),
]
INTERRUPTED = {"POST 502", "POST ChunkedEncodingError"}  # when the service is killed
# Read and copy a database with the SQLite of Python, and close it, so that SQLite tidies up.
PYTHON = """
import sqlite3, sys
for _ in range(20):
    connection = sqlite3.connect(sys.argv[1], timeout=10)
    connection.execute("SELECT count(*) FROM posts").fetchall()
    copy = sqlite3.connect(":memory:")
    connection.backup(copy)
    assert copy.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()
"""


def programs(file: Path, copy: Path) -> list[list[str]]:
    """Return commands that read a database and close it."""
    shell = ["sqlite3", "-cmd", ".timeout 10000", str(file)]
    return [
        [*shell, "SELECT count(*) FROM posts"],
        [*shell, f".backup {copy}"],
        [sys.executable, "-c", PYTHON, str(file)],
    ]


class Programs:
    """Programs that run again and again while the block runs; `runs` counts them by their name."""

    def __init__(self, file: Path, copies: Path) -> None:
        require_programs("sqlite3")
        self.runs: Counter[str] = Counter()
        self._stop = Event()
        self._pool = ThreadPoolExecutor(3)
        commands = programs(file, copies / "copy.db")
        self._running = [self._pool.submit(self._repeat, command) for command in commands]

    def _repeat(self, command: list[str]) -> None:
        while not self._stop.is_set():
            subprocess.run(command, check=True, capture_output=True, timeout=60)
            self.runs[" ".join(map(str, command[-1:]))[:20]] += 1

    def __enter__(self) -> "Programs":
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._pool.shutdown()
        for running in self._running:
            running.result()


@pytest.fixture
def file(fresh_url: str) -> Path:
    return Path(fresh_url.removeprefix("sqlite:///"))


def settle(site, how: str) -> None:
    """Let the server be new, or have opened all its connections and replaced its workers."""
    if how == "long-running":
        [gunicorn] = site.gunicorns
        ada = sign_in(site.url, "ada", site.client())
        with Load(site.url, ada, writers=16, readers=4) as load:
            load.wait_for_writes(scaled(200, 5000))
            before = set(gunicorn.workers())
            gunicorn.reload()
            wait_until(lambda: before.isdisjoint(gunicorn.workers()))
            load.wait_for_writes(scaled(200, 5000))


@pytest.mark.parametrize("server", ["fresh", "long-running"])
def test_programs_that_read_the_file_lose_no_write(
    start_site: Callable[..., object], check_load, file, tmp_path, server
):
    site = start_site(WEB_CONCURRENCY="2")
    settle(site, server)
    [gunicorn] = site.gunicorns
    ada = sign_in(site.url, "ada", site.client())
    rounds = scaled(3, 30)
    with Load(site.url, ada, readers=2) as load, Programs(file, tmp_path) as others:
        for _ in range(rounds):
            load.wait_for_writes(20)
            time.sleep(random.uniform(0, 0.5))
            gunicorn.kill()
            gunicorn.start()
        wait_until(lambda: others.runs.total() >= 3 * rounds)
        load.wait_for_writes(20)
    check_load(load, f"{others.runs.total()} runs of other programs, {rounds} kills, {server}")
    assert set(load.failures) <= INTERRUPTED | {"GET 502"}
