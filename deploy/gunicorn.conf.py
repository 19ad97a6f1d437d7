"""How gunicorn serves Posting. `deploy/serve.py` starts it.

In the environment or in `.env`: BIND (an address, or unix:/path), PORT, WEB_CONCURRENCY (the number
of workers) and MAX_REQUESTS (after which a worker is replaced).
"""

import ctypes
import json
import os
import re
import secrets
import shutil
import signal
import socket
import struct
import sys
import tempfile
from functools import partial
from itertools import count
from pathlib import Path

from flask.cli import load_dotenv
from flask.helpers import get_load_dotenv
from gunicorn import util

_memory = Path("/dev/shm")  # noqa: S108 - only folders with random names are made there
RAM = str(_memory) if _memory.is_dir() else None


def stop(message):
    print(f"posting: {message}", file=sys.stderr)
    sys.exit(3)  # the exit code that tells systemd not to try again


def whole_number(name, default, least, most):
    value = os.environ.get(name) or str(default)
    if not re.fullmatch("[0-9]{1,9}", value) or not least <= int(value) <= most:
        stop(f"{name} must be a whole number from {least} to {most}; it is {value!r}.")
    os.environ[name] = value  # gunicorn itself reads WEB_CONCURRENCY, and fails on an empty one
    return int(value)


try:
    if get_load_dotenv():
        load_dotenv()  # the function that `flask` uses, so that both find the same settings
except (OSError, UnicodeDecodeError) as error:
    stop(f"The settings in .env cannot be read ({error}). Let the service's user read the file.")

_address = os.environ.get("BIND") or "127.0.0.1"
_port = whole_number("PORT", 8000, 0, 65_535)
if re.fullmatch("unix:/.+", _address):
    bind = _address
elif re.fullmatch("[0-9A-Za-z.-]+", _address):
    bind = f"{_address}:{_port}"
elif re.fullmatch(r"\[?[0-9A-Fa-f]*:[0-9A-Fa-f]*:[0-9A-Fa-f:.]*\]?", _address):  # IPv6
    bind = f"[{_address.strip('[]')}]:{_port}"
else:
    stop(f"BIND must be an address without a port, or unix:/path; it is {_address!r}.")
workers = whole_number("WEB_CONCURRENCY", os.cpu_count() or 1, 1, 1000)

# Threads keep slow clients apart, and images that wait to be decoded hold up to four of them. The
# database pool has a connection for each.
worker_class = "gthread"
threads = 8

# glibc keeps what a thread has freed for that thread, such as uploads; blocks above a fixed size go
# back to the system. See mallopt(3).
_M_MMAP_THRESHOLD = -3
if hasattr(_libc := ctypes.CDLL(None), "mallopt"):
    _libc.mallopt(_M_MMAP_THRESHOLD, 256 * 2**10)

# A mistake in the settings is told once, and workers share what the start has loaded.
preload_app = True

# Workers are replaced now and then, not all at once, so that nothing can pile up for years.
max_requests = whole_number("MAX_REQUESTS", 100_000, 0, 999_999_999)
max_requests_jitter = max_requests // 5

# Workers show that they live by touching a file, which must not wait for a disk.
worker_tmp_dir = RAM

# Longer than proxies and browsers keep a connection that idles, so that they close it and not we.
keepalive = 75
graceful_timeout = 30

# 1,000 headers of 8 KB cost 10 seconds of CPU, and 100 of 4 KB a twentieth of one.
limit_request_line = 8190
limit_request_fields = 100
limit_request_field_size = 4094

# gunicorn waits for the rest of a request without a limit, and each such request holds a thread.
# Connections inherit this timeout from their listening socket.
RECEIVE_SECONDS = 10

# What proxies say of the client is read in one place, by POSTING_PROXY_HOPS.
forwarded_allow_ips = ""
forwarder_headers = ""
secure_scheme_headers = {}

control_socket_disable = True

# Each worker writes its figures into files of its own, from which /metrics adds them up. They are
# named by the worker's place and not by its process, so that they do not become ever more. This
# file is read again at a reload, which must find what is there: hence the environment.
with_metrics = os.environ.get("POSTING_METRICS") == "on"
if with_metrics and "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
    folder = tempfile.mkdtemp(prefix="posting-metrics-", dir=RAM)
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder

    from prometheus_client import values

    values.ValueClass = values.MultiProcessValue(partial(os.environ.get, "WORKER_PLACE", "0"))


def post_worker_init(worker):
    worker.log.error_log.addFilter(is_no_timeout)


def is_no_timeout(record):
    """Keep everything except the traceback that gunicorn logs when a client is too slow."""
    return not (record.exc_info and isinstance(record.exc_info[1], BlockingIOError))


def pre_request(worker, req):
    # gunicorn ignores an application's "Connection: close", so let the application call this.
    req.body.close_connection = req.force_close


def pre_fork(server, worker):
    taken = {other.place for other in server.WORKERS.values()}
    worker.place = next(number for number in count(1) if number not in taken)


def post_fork(server, worker):
    os.environ["WORKER_PLACE"] = str(worker.place)


# Until a worker minds signals itself it would take one for its master's and do nothing, and would
# be killed much later, with what it is doing by then. So it ends by what came since it was forked.
STOPPING = {signal.SIGTERM, signal.SIGQUIT}


def on_starting(server):
    util.write_error = partial(write_problem, server.log)
    os.register_at_fork(
        before=lambda: signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING),
        after_in_parent=lambda: signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPPING),
        after_in_child=_end_by_signals,
    )


def write_problem(log, client, status, reason, detail):
    """Refuse a malformed or oversized request in the format of the service's errors (RFC 9457)."""
    request_id = secrets.token_urlsafe(10)
    log.warning("The refused request is %s", request_id)
    title = "Not Implemented" if status == 501 else reason  # for which gunicorn says: Bad Request
    problem = {
        "type": "about:blank",
        "title": title,
        "status": status,
        "detail": detail or title,
        "request_id": request_id,
    }
    body = json.dumps(problem)
    head = (
        f"HTTP/1.1 {status} {title}",
        "Connection: close",
        "Content-Type: application/problem+json",
        f"Content-Length: {len(body)}",
        "Cache-Control: private, no-store",
        "X-Content-Type-Options: nosniff",
        f"X-Request-ID: {request_id}",
    )
    util.write_nonblock(client, "\r\n".join([*head, "", body]).encode())


def when_ready(server):
    timeout = struct.pack("ll", RECEIVE_SECONDS, 0)
    for listener in server.LISTENERS:
        listener.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, timeout)
        if (url := str(listener)).startswith("http"):
            print(f"Posting is at {url} and its docs page at {url}/docs", flush=True)


def _end_by_signals():
    for number in STOPPING:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPPING)


def on_exit(server):
    if with_metrics:
        shutil.rmtree(os.environ["PROMETHEUS_MULTIPROC_DIR"], ignore_errors=True)
