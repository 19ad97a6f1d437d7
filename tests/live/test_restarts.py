"""Workers and servers are restarted, killed and slowed down under load."""

import random
import signal
import socket
import ssl
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from os import kill
from statistics import median

import pytest
import requests

from tests.live.clients import scaled, sign_in
from tests.live.load import Load, wait_until
from tests.live.sites import Gunicorn, open_listener

# The outcomes for a client when a server dies: an error from nginx, or a truncated response.
INTERRUPTED = {"POST 502", "POST ChunkedEncodingError"}

pytestmark = pytest.mark.usefixtures("stays_consistent")


@pytest.fixture
def site(start_site):
    return start_site(WEB_CONCURRENCY="2")


@pytest.fixture
def ada(site):
    return sign_in(site.url, "ada", site.client())


def test_reloads_and_restarts_fail_no_request(site, ada, check_load):
    rounds = scaled(2, 20)
    [gunicorn] = site.gunicorns
    with Load(site.url, ada, writers=4, readers=4) as load:
        for _ in range(rounds):
            before = set(gunicorn.workers())
            gunicorn.reload()
            wait_until(lambda: before.isdisjoint(gunicorn.workers()))  # noqa: B023
        for _ in range(rounds):
            gunicorn.stop()
            gunicorn.start()
            wait_until(gunicorn.workers)
    check_load(load, f"{rounds} reloads and {rounds} restarts through nginx")
    assert load.failures == {}


def test_a_stop_signal_ends_a_worker_that_is_starting(fresh_url, tmp_path):
    """A worker that missed the signal would be killed 30 seconds later, during requests."""
    slow_app = "import os, time\nfrom wsgi import app\nos.register_at_fork(after_in_child={})"
    (tmp_path / "slow.py").write_text(slow_app.format("lambda: time.sleep(1)"))
    with open_listener(tmp_path / "sock") as listener:
        environment = {"POSTING_DATABASE_URL": fresh_url, "PYTHONPATH": str(tmp_path)}
        gunicorn = Gunicorn(tmp_path, listener, app="slow:app", **environment)
        wait_until(gunicorn.workers)
        gunicorn.process.terminate()
        try:
            gunicorn.process.wait(20)  # and not the 30 seconds after which it is killed
        finally:
            with suppress(ProcessLookupError):
                gunicorn.kill()


def test_max_requests_fails_no_request(start_site, check_load):
    site = start_site(WEB_CONCURRENCY="2", MAX_REQUESTS="50")
    ada = sign_in(site.url, "ada", site.client())
    workers = set()
    with Load(site.url, ada, writers=4, readers=4) as load:
        wait_until(lambda: workers.update(site.gunicorns[0].workers()) or len(workers) > 6)
    check_load(load, f"{len(workers)} workers, each restarted after about 50 requests")
    assert load.failures == {}


def test_killing_a_worker_loses_no_write(site, ada, check_load):
    """All eight threads of both workers write."""
    rounds = scaled(20, 200)
    [gunicorn] = site.gunicorns
    killed = set()

    def alive():
        return set(gunicorn.workers()) - killed  # gunicorn lists a killed worker until it notices

    with Load(site.url, ada, writers=16) as load:
        while len(killed) < rounds:
            load.wait_for_writes(16)
            wait_until(alive)
            worker = random.choice([*alive()])
            kill(worker, signal.SIGKILL)
            killed.add(worker)
            time.sleep(random.uniform(0.05, 0.3))
        load.wait_for_writes(10)
    check_load(load, f"{len(killed)} workers killed under 16 writers")
    assert set(load.failures) <= INTERRUPTED


def test_killing_the_server_loses_no_write(site, ada, check_load):
    rounds = scaled(3, 50)
    [gunicorn] = site.gunicorns
    with Load(site.url, ada) as load:
        for _ in range(rounds):
            load.wait_for_writes(10)
            time.sleep(random.uniform(0, 0.5))
            gunicorn.kill()
            gunicorn.start()
        load.wait_for_writes(10)
    check_load(load, f"{rounds} servers killed under 8 writers")
    assert set(load.failures) <= INTERRUPTED


def test_slow_bodies_do_not_delay_other_requests(site, ada, figure):
    """Three hundred clients send a byte from time to time."""
    context = ssl.create_default_context(cafile=site.nginx.certificate)
    head = (
        "POST /signin HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        "Content-Length: 1000\r\n\r\n{"
    )

    def read():
        """Return how long a read takes. A signed-in client bypasses nginx's cache."""
        started = time.perf_counter()
        assert ada.get(f"{site.url}/posts", timeout=20).status_code == 200
        return time.perf_counter() - started

    def slowest_of(times):
        """Return the time that 99 % of reads do not exceed."""
        return sorted(times)[len(times) * 99 // 100]

    rounds = scaled(200, 2000)
    before = slowest_of([read() for _ in range(rounds)])
    times = []
    with ExitStack() as stack, ThreadPoolExecutor(50) as pool, site.client() as reader:

        def connect(_):
            plain = socket.create_connection(("127.0.0.1", site.nginx.https), 20)
            slow = context.wrap_socket(plain, server_hostname="localhost")
            slow.sendall(head.encode())
            return slow

        slow = [stack.enter_context(each) for each in pool.map(connect, range(300))]
        for number in range(rounds):
            slow[number % 300].sendall(b" ")
            times.append(read())
        assert reader.get(f"{site.url}/posts", timeout=20).status_code == 200
    slowest = slowest_of(times)
    figure(
        f"{rounds:,} reads during 300 slow bodies: median {median(times) * 1000:.1f} ms, "
        f"99 % {slowest * 1000:.1f} ms, and {before * 1000:.1f} ms before"
    )
    # A body that held a thread would do so for ten seconds.
    assert slowest < max(scaled(2, 0.1), 5 * before)


def test_metrics_include_all_workers(serve):
    """Also the workers from before a reload."""
    server = serve(WEB_CONCURRENCY="4", POSTING_METRICS="on")
    url = server.url
    count = 'posting_requests_total{method="GET",route="/healthz",status="200"} '

    def request_count():
        text = requests.get(f"{url}/metrics", timeout=20).text
        return next(float(line.split()[1]) for line in text.splitlines() if count in line)

    with ThreadPoolExecutor(8) as pool:
        send = lambda _: requests.get(f"{url}/healthz", timeout=20).status_code  # noqa: E731
        assert set(pool.map(send, range(200))) == {200}
        assert request_count() == 200
        server.process.send_signal(signal.SIGHUP)
        wait_until(lambda: server.log.read_text().count("Worker exiting") == 4)
        assert set(pool.map(send, range(100))) == {200}
        assert request_count() == 300
