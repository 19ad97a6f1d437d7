"""Processes that serve, on a core of their own, and wrk, which asks them from another."""

import os
import random
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

ROOT = Path(__file__).parent.parent
CONNECTIONS = 8
CORES = sorted(os.sched_getaffinity(0))
SERVER_CORE, CLIENT_CORE = CORES[0], CORES[-1]  # one and the same where there is but one
QUIET = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


def free_port() -> int:
    """Return a port below the ephemeral ones, which could connect to themselves."""
    while True:
        port = random.randint(20_000, 32_000)
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)):
                return port


@contextmanager
def serving(
    command: Sequence[str], url: str, **environment: str
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a server on its core while the block runs, from when it answers."""
    pinned = ["taskset", "--cpu-list", str(SERVER_CORE), *command]
    process = subprocess.Popen(pinned, cwd=ROOT, env=os.environ | environment, **QUIET)
    try:
        _wait(url, process)
        yield process
    finally:
        process.terminate()
        process.wait(60)


@contextmanager
def gunicorn(app: str, path: str, **environment: str) -> Iterator[str]:
    """Serve a WSGI app as Posting is served, with one worker; yield its URL."""
    port = str(free_port())
    url = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "gunicorn", "-c", "deploy/gunicorn.conf.py", app]
    settings = {"PORT": port, "WEB_CONCURRENCY": "1"}
    with serving(command, url + path, **settings, **environment):
        yield url


def per_second(url: str, seconds: int, *options: str) -> float:
    """Return how many requests a second are answered as they should be."""
    report = wrk(url, seconds, *options)
    assert "Non-2xx" not in report, report
    assert "Socket errors" not in report, report
    return float(re.findall(r"Requests/sec:\s+([\d.]+)", report)[0])


def wrk(url: str, seconds: int, *options: str) -> str:
    pinned = ["taskset", "--cpu-list", str(CLIENT_CORE)]
    load = ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds}s", *options, url]
    return subprocess.run([*pinned, *load], check=True, capture_output=True, text=True).stdout


def _wait(url: str, process: subprocess.Popen[bytes]) -> None:
    for _ in range(400):
        assert process.poll() is None, f"{process.args} has ended"
        try:
            with urlopen(url, timeout=5):
                return
        except OSError:
            time.sleep(0.05)
    raise AssertionError(f"{url} does not answer")
