"""The gunicorn configuration for Posting; `deploy/serve.py` starts it.

The environment or `.env` can set BIND (an address, or unix:/path), PORT, WEB_CONCURRENCY (the
number of workers) and MAX_REQUESTS (restart a worker after this many requests; 0 is never).
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

from gunicorn import util
from gunicorn.glogging import Logger

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from posting.config import THREADS, StartError, load_env_files, load_server, require_port

# --- Settings from the environment ---

try:
    load_env_files()
    settings = load_server()
except StartError as error:
    error.exit()

bind = settings["BIND"]
if not bind.startswith("unix:"):
    bind = f"[{bind}]:{settings['PORT']}" if ":" in bind else f"{bind}:{settings['PORT']}"
# nginx connects to a socket as a member of the service's group. Others could forge IP addresses.
umask = 0o117
workers = settings["WEB_CONCURRENCY"]
os.environ["WEB_CONCURRENCY"] = str(workers)  # gunicorn reads it as well, and fails if it is empty

# Workers are not restarted by default, because their memory does not grow (bench/results.md).
max_requests = settings["MAX_REQUESTS"]
max_requests_jitter = max_requests // 5  # so that they do not all restart at once

# --- Processes and threads ---

# A configuration error is reported once, and workers share the memory of the imported code.
preload_app = True

# Threads keep slow clients apart. Up to four hold images that wait to be decoded, and up to half of
# them hash passwords or wait to do so. The database pool has a connection for each thread,
# also for those of the outbox.
worker_class = "gthread"
threads = THREADS

# glibc keeps memory that a thread has freed, such as that of an upload, for the same thread. With a
# fixed threshold, large blocks go back to the system. See mallopt(3).
_M_MMAP_THRESHOLD = -3
_LARGE = 256 * 2**10  # bytes
_LARGE_PAGE = 64 * 2**10  # bytes; to render a page takes several times its size
_libc = ctypes.CDLL(None)
if hasattr(_libc, "mallopt"):
    _libc.mallopt(_M_MMAP_THRESHOLD, _LARGE)

# A worker touches a file to show that it is alive; that must not wait for a disk.
_shared_memory = Path("/dev/shm")  # noqa: S108 - only folders with random names are made there
worker_tmp_dir = str(_shared_memory) if _shared_memory.is_dir() else None

control_socket_disable = True

# --- Limits ---

# Longer than proxies and browsers keep idle connections, so that they close them, not the server.
keepalive = 75
graceful_timeout = 30

# 1,000 headers of 8 KB take 10 seconds of CPU time; 100 of 4 KB take 0.05 seconds.
limit_request_line = 8190
limit_request_fields = 100
limit_request_field_size = 4094

# gunicorn has no timeout for the rest of a request, and each slow request holds a thread.
# Connections inherit this timeout from their listening socket.
RECEIVE_SECONDS = 10
# For a client that does not read. nginx gives up earlier.
SEND_SECONDS = 60

# The app reads the headers that proxies set, by POSTING_PROXY_HOPS; gunicorn ignores them.
forwarded_allow_ips = ""
forwarder_headers = ""
secure_scheme_headers = {}

# --- Logs ---


class JsonLogger(Logger):
    """gunicorn's logger with the JSON lines of the app."""

    def setup(self, cfg):
        # Not before PROMETHEUS_MULTIPROC_DIR is set, which prometheus_client reads when imported.
        from posting.web.logs import JsonFormatter  # noqa: PLC0415 - as the comment says

        super().setup(cfg)
        for handler in self.error_log.handlers:
            handler.setFormatter(JsonFormatter())


is_json = settings["LOG_FORMAT"] == "json"
if is_json:
    logger_class = JsonLogger

# --- Metrics ---

# Each worker writes metrics to its own files, and /metrics sums them up. The files are named by the
# worker's slot, not by its process id: with process ids, each reload, crash and restart would add
# files that /metrics reads from then on. gunicorn runs this module again on a reload, which must
# use the same folder: hence the environment variable.
with_metrics = settings["METRICS"]
if with_metrics and "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
    folder = tempfile.mkdtemp(prefix="posting-metrics-", dir=worker_tmp_dir)
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder

    from prometheus_client import values

    values.ValueClass = values.MultiProcessValue(partial(os.environ.get, "WORKER_SLOT", "0"))


def pre_fork(server, worker):
    used = {other.slot for other in server.WORKERS.values()}
    worker.slot = next(slot for slot in count(1) if slot not in used)
    worker.first_run = None
    if worker.slot == server.num_workers:
        worker.first_run, server.first_run = server.first_run, None


def post_fork(server, worker):
    os.environ["WORKER_SLOT"] = str(worker.slot)
    os.environ["WORKER_THREADS"] = str(worker.cfg.threads)  # --threads may set another number


def on_exit(server):
    if with_metrics:
        shutil.rmtree(os.environ["PROMETHEUS_MULTIPROC_DIR"], ignore_errors=True)


# --- Start and stop ---

STOP_SIGNALS = {signal.SIGTERM, signal.SIGQUIT}


def on_starting(server):
    # gunicorn would try for five seconds, and name neither PORT nor BIND. It may have got its
    # socket from systemd or from the gunicorn that it replaces, or listen at another address.
    has_socket = "LISTEN_FDS" in os.environ or "GUNICORN_FD" in os.environ
    if server.cfg.bind == [bind] and not has_socket:
        try:
            require_port(settings)
        except StartError as error:
            error.exit()
    util.write_error = partial(write_problem, server.log)
    # Until a new worker has set up its own signal handlers, it runs the master's, which ignore a
    # signal to stop: it would be killed much later, in the middle of a request. So block these
    # signals during the fork, and let them end the worker until it handles them.
    os.register_at_fork(
        before=lambda: signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS),
        after_in_parent=lambda: signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS),
        after_in_child=restore_default_signals,
    )


def restore_default_signals():
    for number in STOP_SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)


def when_ready(server):
    for listener in server.LISTENERS:
        for option, seconds in (
            (socket.SO_RCVTIMEO, RECEIVE_SECONDS),
            (socket.SO_SNDTIMEO, SEND_SECONDS),
        ):
            listener.sock.setsockopt(socket.SOL_SOCKET, option, struct.pack("ll", seconds, 0))
    urls = [url for url in map(str, server.LISTENERS) if url.startswith("http")]
    # The last worker prints it, below the lines of the other workers.
    server.first_run = describe_first_run_of(server.app.wsgi(), urls)
    if not is_json:
        for url in urls:
            print(f"Posting is at {url} and its docs page at {url}/docs", flush=True)


def describe_first_run_of(app, urls):
    """Return what to print while there is no account, before workers are forked."""
    from posting.app import Service  # noqa: PLC0415 - metrics need the variable that is set above
    from posting.invitations.first_run import describe_first_run  # noqa: PLC0415 - as above

    if not isinstance(app, Service):  # as in benchmarks
        return None
    return describe_first_run(app, urls[0] if urls else "", with_link=not is_json)


# --- Requests ---


def pre_request(worker, req):
    # gunicorn ignores "Connection: close" from an app, so give the app a function to call instead.
    req.body.close_connection = req.force_close


def post_request(worker, req, environ, resp):
    # glibc also keeps the smaller blocks of a large page. See malloc_trim(3).
    if resp is not None and resp.sent > _LARGE_PAGE and hasattr(_libc, "malloc_trim"):
        _libc.malloc_trim(0)


def write_problem(log, client, status, reason, detail):
    """Refuse a malformed or oversized request in the format of the app's errors (RFC 9457)."""
    request_id = secrets.token_urlsafe(10)
    log.warning("Refused request %s", request_id)
    title = "Not Implemented" if status == 501 else reason  # gunicorn's reason is "Bad Request"
    problem = {
        "type": "about:blank",
        "title": title,
        "status": status,
        "code": title.lower().replace(" ", "_"),
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
        "Access-Control-Allow-Origin: *",  # any page may read an error without data
        "Access-Control-Expose-Headers: X-Request-ID",
        "X-Content-Type-Options: nosniff",
        f"X-Request-ID: {request_id}",
    )
    util.write_nonblock(client, "\r\n".join([*head, "", body]).encode())


def post_worker_init(worker):
    worker.log.error_log.addFilter(is_no_timeout)
    worker.log.error_log.addFilter(hide_tokens)
    if worker.first_run and is_json:
        worker.log.info(worker.first_run)
    elif worker.first_run:
        print(worker.first_run, flush=True)
    start_delivery(worker)


def start_delivery(worker):
    """Let a worker send what is in the outbox, such as mails, until it is to end."""
    from posting.app import Service  # noqa: PLC0415 - as in describe_first_run_of
    from posting.outbox import delivery  # noqa: PLC0415 - as above

    if isinstance(worker.wsgi, Service):  # not in benchmarks
        delivery.start(worker.wsgi, lambda: worker.alive)


def hide_tokens(record):
    """Hide the tokens in the paths of feeds, where gunicorn logs the path of a request."""
    if isinstance(record.args, tuple):
        record.args = tuple(
            re.sub("/feeds/[^/?]+", "/feeds/{token}", part) if isinstance(part, str) else part
            for part in record.args
        )
    return True


def is_no_timeout(record):
    """Drop the traceback that gunicorn logs when a client is too slow."""
    return not (record.exc_info and isinstance(record.exc_info[1], BlockingIOError))
