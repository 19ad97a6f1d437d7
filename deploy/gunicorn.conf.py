"""How gunicorn serves Posting: `gunicorn -c deploy/gunicorn.conf.py wsgi:app`.

In the environment: BIND (an address, or unix:/path), PORT, WEB_CONCURRENCY (the number of workers)
and MAX_REQUESTS (after which a worker is replaced).
"""

import os
import shutil
import signal
import sys
import tempfile
from itertools import count
from pathlib import Path

_memory = Path("/dev/shm")  # noqa: S108 - only folders with random names are made there
RAM = str(_memory) if _memory.is_dir() else None


def whole_number(name, default):
    value = os.environ.get(name) or str(default)
    if not value.isdecimal():
        print(f"posting: {name} must be a whole number; it is {value!r}.", file=sys.stderr)
        sys.exit(3)
    return int(value)


_address = os.environ.get("BIND", "127.0.0.1")
bind = _address if _address.startswith("unix:") else f"{_address}:{whole_number('PORT', 8000)}"
workers = whole_number("WEB_CONCURRENCY", os.cpu_count() or 1)

# Threads keep slow clients apart, and images that wait to be decoded hold up to four of them. The
# database pool has a connection for each.
worker_class = "gthread"
threads = 8

# A mistake in the settings is told once, and workers share what the start has loaded.
preload_app = True

# Workers are replaced now and then, not all at once, so that nothing can pile up for years.
max_requests = whole_number("MAX_REQUESTS", 100_000)
max_requests_jitter = max_requests // 5

# Workers show that they live by touching a file, which must not wait for a disk.
worker_tmp_dir = RAM

# Longer than proxies and browsers keep a connection that idles, so that they close it and not we.
keepalive = 75
graceful_timeout = 30

# As long as those that nginx takes.
limit_request_line = 8190
limit_request_fields = 1000

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

    values.ValueClass = values.MultiProcessValue(lambda: os.environ.get("WORKER_PLACE", "0"))


def pre_fork(server, worker):
    taken = {other.place for other in server.WORKERS.values()}
    worker.place = next(number for number in count(1) if number not in taken)


def post_fork(server, worker):
    os.environ["WORKER_PLACE"] = str(worker.place)


# Until a worker minds signals itself it would take one for its master's and do nothing, and would
# be killed much later, with what it is doing by then. So it ends by what came since it was forked.
STOPPING = {signal.SIGTERM, signal.SIGQUIT}


def on_starting(server):
    os.register_at_fork(
        before=lambda: signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING),
        after_in_parent=lambda: signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPPING),
        after_in_child=_end_by_signals,
    )


def _end_by_signals():
    for number in STOPPING:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPPING)


def on_exit(server):
    if with_metrics:
        shutil.rmtree(os.environ["PROMETHEUS_MULTIPROC_DIR"], ignore_errors=True)
