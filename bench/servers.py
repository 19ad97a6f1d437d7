"""Processes that serve, on a core of their own, and wrk, which asks them from another."""

import os
import random
import re
import socket
import ssl
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
OURSELVES = ssl.create_default_context()  # who need no authority to know their certificate
OURSELVES.check_hostname = False
OURSELVES.verify_mode = ssl.CERT_NONE


def free_port() -> int:
    """Return a port below the ephemeral ones, which could connect to themselves."""
    while True:
        port = random.randint(20_000, 32_000)
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)):
                return port


@contextmanager
def serving(
    command: Sequence[str], url: str, cores: Sequence[int] = (SERVER_CORE,), **environment: str
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a server on its cores while the block runs, from when it answers."""
    pinned = ["taskset", "--cpu-list", ",".join(map(str, cores)), *command]
    process = subprocess.Popen(pinned, cwd=ROOT, env=os.environ | environment, **QUIET)
    try:
        _wait(url, process)
        yield process
    finally:
        process.terminate()
        process.wait(60)


@contextmanager
def gunicorn(
    app: str, path: str, cores: Sequence[int] = (SERVER_CORE,), **environment: str
) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Serve a WSGI app as Posting is served, a worker for each core; yield its URL and process."""
    port = str(free_port())
    url = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "gunicorn", "-c", "deploy/gunicorn.conf.py", app]
    settings = {"PORT": port, "WEB_CONCURRENCY": str(len(cores))}
    with serving(command, url + path, cores, **settings, **environment) as process:
        yield url, process


def mebibytes_of_worker(master: subprocess.Popen[bytes]) -> float:
    """Return how much memory the only worker of a gunicorn holds."""
    [worker] = Path(f"/proc/{master.pid}/task/{master.pid}/children").read_text().split()
    status = Path(f"/proc/{worker}/status").read_text()
    return int(in_report(r"VmRSS:\s+(\d+) kB", status)[0]) / 1024


def per_second(url: str, seconds: int, *options: str) -> float:
    """Return how many requests a second are answered as they should be."""
    return float(in_report(r"Requests/sec:\s+([\d.]+)", wrk(url, seconds, *options))[0])


def median_milliseconds(url: str, seconds: int) -> float:
    """Return how long one who asks again and again waits for half of the answers at most."""
    report = wrk(url, seconds, "--latency", connections=1)
    figure, unit = in_report(r"50%\s+([\d.]+)(us|ms|s)", report)
    return float(figure) * {"us": 0.001, "ms": 1, "s": 1000}[unit]


def wrk(url: str, seconds: int, *options: str, connections: int = CONNECTIONS) -> str:
    """Return the report of a run in which all is answered as it should be."""
    pinned = ["taskset", "--cpu-list", str(CLIENT_CORE)]
    load = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", *options, url]
    run = subprocess.run([*pinned, *load], check=True, capture_output=True, text=True)
    assert "Non-2xx" not in run.stdout, run.stdout
    assert "Socket errors" not in run.stdout, run.stdout
    return run.stdout


def in_report(pattern: str, report: str) -> tuple[str, ...]:
    found = re.search(pattern, report)
    assert found, report
    return found.groups()


def _wait(url: str, process: subprocess.Popen[bytes]) -> None:
    for _ in range(2000):
        assert process.poll() is None, f"{process.args} has ended"
        try:
            with urlopen(url, timeout=5, context=OURSELVES):
                return
        except OSError:
            time.sleep(0.01)
    raise AssertionError(f"{url} does not answer")
