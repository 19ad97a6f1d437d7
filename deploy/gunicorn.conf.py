"""How gunicorn serves Posting: `gunicorn -c deploy/gunicorn.conf.py wsgi:app`.

In the environment: BIND (an address, or unix:/path), PORT, WEB_CONCURRENCY (the number of workers)
and MAX_REQUESTS (after which a worker is replaced).
"""

import os
import shutil
import tempfile
from itertools import count
from pathlib import Path

_memory = Path("/dev/shm")  # noqa: S108 - only folders with random names are made there
RAM = str(_memory) if _memory.is_dir() else None

_address = os.environ.get("BIND", "127.0.0.1")
bind = _address if _address.startswith("unix:") else f"{_address}:{os.environ.get('PORT', '8000')}"
workers = int(os.environ.get("WEB_CONCURRENCY") or os.cpu_count() or 1)

# Threads keep slow clients apart, and images that wait to be decoded hold up to four of them. The
# database pool has a connection for each.
worker_class = "gthread"
threads = 8

# A mistake in the settings is told once, and workers share what the start has loaded.
preload_app = True

# Workers are replaced now and then, not all at once, so that nothing can pile up for years.
max_requests = int(os.environ.get("MAX_REQUESTS") or 100_000)
max_requests_jitter = max_requests // 5

# Workers show that they live by touching a file, which must not wait for a disk.
worker_tmp_dir = RAM

# Longer than proxies and browsers keep a connection that idles, so that they close it and not we.
keepalive = 75
graceful_timeout = 30

# What proxies say of the client is read in one place, by POSTING_PROXY_HOPS.
forwarded_allow_ips = ""
forwarder_headers = ""
secure_scheme_headers = {}

control_socket_disable = True

if os.environ.get("POSTING_METRICS") == "on":
    # Each worker writes its figures into files of its own, from which /metrics adds them up. They
    # are named by the worker's place and not by its process, so that they do not become ever more.
    metrics_folder = tempfile.mkdtemp(prefix="posting-metrics-", dir=RAM)
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = metrics_folder

    from prometheus_client import values

    own = {"place": 0}
    values.ValueClass = values.MultiProcessValue(lambda: own["place"])

    def pre_fork(server, worker):
        taken = {other.place for other in server.WORKERS.values()}
        worker.place = next(number for number in count(1) if number not in taken)

    def post_fork(server, worker):
        own["place"] = worker.place

    def on_exit(server):
        shutil.rmtree(metrics_folder, ignore_errors=True)
