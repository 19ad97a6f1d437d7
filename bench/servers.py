"""Server processes on one core, and wrk on another."""

import itertools
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
SERVER_CORE, CLIENT_CORE = CORES[0], CORES[-1]  # the same core on a machine with one
QUIET = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
_ports = itertools.cycle(random.sample(range(20_000, 32_000), 12_000))
NO_VERIFICATION = ssl.create_default_context()  # the certificate is self-signed
NO_VERIFICATION.check_hostname = False
NO_VERIFICATION.verify_mode = ssl.CERT_NONE


def free_port() -> int:
    """Return a free port below the ephemeral range, in which a client could connect to itself.

    It is another one with each call, until all have been returned.
    """
    for port in _ports:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)):
                return port
    raise AssertionError("The ports never end.")


@contextmanager
def serve(
    command: Sequence[str], url: str, cores: Sequence[int] = (SERVER_CORE,), **environment: str
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a server on the given cores, and enter the block when it answers."""
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
    """Serve a WSGI app as Posting is served, with a worker per core; yield its URL and process."""
    port = str(free_port())
    url = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "gunicorn", "-c", "deploy/gunicorn.conf.py", app]
    settings = {"PORT": port, "WEB_CONCURRENCY": str(len(cores)), "MALLOC_ARENA_MAX": "2"}
    with serve(command, url + path, cores, **settings | environment) as process:
        yield url, process


def mebibytes_of_worker(master: subprocess.Popen[bytes]) -> float:
    """Return the memory of the only worker of a gunicorn."""
    [worker] = Path(f"/proc/{master.pid}/task/{master.pid}/children").read_text().split()
    status = Path(f"/proc/{worker}/status").read_text()
    return int(search_report(r"VmRSS:\s+(\d+) kB", status)[0]) / 1024


def per_second(url: str, seconds: int, *options: str, connections: int = CONNECTIONS) -> float:
    """Return the number of requests per second."""
    report = wrk(url, seconds, *options, connections=connections)
    return float(search_report(r"Requests/sec:\s+([\d.]+)", report)[0])


def milliseconds(
    url: str, seconds: int, *options: str, percentile: int = 50, connections: int = 1
) -> float:
    """Return a percentile of the latency."""
    report = wrk(url, seconds, "--latency", *options, connections=connections)
    value, unit = search_report(rf"{percentile}%\s+([\d.]+)(us|ms|s)", report)
    return float(value) * {"us": 0.001, "ms": 1, "s": 1000}[unit]


def wrk(url: str, seconds: int, *options: str, connections: int = CONNECTIONS) -> str:
    """Return the report of a run without errors."""
    pinned = ["taskset", "--cpu-list", str(CLIENT_CORE)]
    load = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", *options, url]
    run = subprocess.run([*pinned, *load], check=True, capture_output=True, text=True)
    assert "Non-2xx" not in run.stdout, run.stdout
    assert "Socket errors" not in run.stdout, run.stdout
    return run.stdout


def search_report(pattern: str, report: str) -> tuple[str, ...]:
    match = re.search(pattern, report)
    assert match, report
    return match.groups()


def _wait(url: str, process: subprocess.Popen[bytes]) -> None:
    for _ in range(2000):
        assert process.poll() is None, f"{process.args} has exited"
        try:
            with urlopen(url, timeout=5, context=NO_VERIFICATION):
                return
        except OSError:
            time.sleep(0.01)
    raise AssertionError(f"{url} does not answer")
