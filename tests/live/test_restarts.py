"""Workers and servers that are replaced, killed and slowed down while others write and read."""

import random
import signal
import socket
import ssl
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from os import kill

import pytest
import requests

from tests.live.clients import sign_in, sized
from tests.live.load import Load, wait_until
from tests.live.sites import Gunicorn, listening

# What a client sees of a server that dies: nginx tells it, or the answer ends halfway.
CUT_OFF = {"POST 502", "POST ChunkedEncodingError"}

pytestmark = pytest.mark.usefixtures("stays_sound")


@pytest.fixture
def site(start_site):
    return start_site(WEB_CONCURRENCY="2")


@pytest.fixture
def ada(site):
    return sign_in(site.url, "ada", site.client())


def test_reloads_and_restarts_fail_nobody(site, ada, unharmed):
    rounds = sized(2, 20)
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
    unharmed(load, f"{rounds} reloads and {rounds} restarts through nginx")
    assert load.failures == {}


def test_a_stop_meets_workers_that_are_just_born(fresh_url, tmp_path):
    """One that missed it would go on, and be killed with what it does 30 seconds later."""
    born_slowly = "import os, time\nfrom wsgi import app\nos.register_at_fork(after_in_child={})"
    (tmp_path / "slow.py").write_text(born_slowly.format("lambda: time.sleep(1)"))
    with listening(tmp_path / "sock") as listener:
        environment = {"POSTING_DATABASE_URL": fresh_url, "PYTHONPATH": str(tmp_path)}
        gunicorn = Gunicorn(tmp_path, listener, app="slow:app", **environment)
        wait_until(gunicorn.workers)
        gunicorn.process.terminate()
        try:
            gunicorn.process.wait(10)
        finally:
            with suppress(ProcessLookupError):
                gunicorn.kill()


def test_recycled_workers_fail_nobody(start_site, unharmed):
    site = start_site(WEB_CONCURRENCY="2", MAX_REQUESTS="50")
    ada = sign_in(site.url, "ada", site.client())
    workers = set()
    with Load(site.url, ada, writers=4, readers=4) as load:
        wait_until(lambda: workers.update(site.gunicorns[0].workers()) or len(workers) > 6)
    unharmed(load, f"{len(workers)} workers, each replaced after some 50 requests")
    assert load.failures == {}


def test_a_worker_that_is_killed_loses_no_write(site, ada, unharmed):
    rounds = sized(10, 200)
    [gunicorn] = site.gunicorns
    with Load(site.url, ada) as load:
        for _ in range(rounds):
            wait_until(gunicorn.workers)
            with suppress(ProcessLookupError):
                kill(random.choice(gunicorn.workers()), signal.SIGKILL)
            time.sleep(random.uniform(0.05, 0.3))
    unharmed(load, f"{rounds} workers killed under 8 writers")
    assert set(load.failures) <= CUT_OFF


def test_a_server_that_is_killed_loses_no_write(site, ada, unharmed):
    rounds = sized(3, 50)
    [gunicorn] = site.gunicorns
    with Load(site.url, ada) as load:
        for _ in range(rounds):
            time.sleep(random.uniform(0.1, 0.5))
            gunicorn.kill()
            gunicorn.start()
            wait_until(gunicorn.workers)
            time.sleep(random.uniform(0.1, 0.5))
    unharmed(load, f"{rounds} servers killed under 8 writers")
    assert set(load.failures) <= CUT_OFF


def test_slow_bodies_hold_up_nobody(site, ada, figure):
    """Three hundred clients that send a byte now and then."""
    context = ssl.create_default_context(cafile=site.nginx.certificate)
    head = (
        "POST /signin HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        "Content-Length: 1000\r\n\r\n{"
    )
    times = []
    with ExitStack() as stack, ThreadPoolExecutor(50) as pool, site.client() as reader:

        def connect(_):
            plain = socket.create_connection(("127.0.0.1", site.nginx.https), 20)
            slow = context.wrap_socket(plain, server_hostname="localhost")
            slow.sendall(head.encode())
            return slow

        slow = [stack.enter_context(each) for each in pool.map(connect, range(300))]
        for number in range(sized(200, 2000)):
            slow[number % 300].sendall(b" ")
            began = time.perf_counter()
            # Not from nginx's cache: the service itself has to answer.
            assert ada.get(f"{site.url}/posts", timeout=20).status_code == 200
            times.append(time.perf_counter() - began)
        assert reader.get(f"{site.url}/posts", timeout=20).status_code == 200
    times.sort()
    typical, slowest = times[len(times) // 2], times[len(times) * 99 // 100]
    figure(
        f"beside 300 slow bodies {len(times):,} reads: median {typical * 1000:.1f} ms, "
        f"99 % {slowest * 1000:.1f} ms"
    )
    assert slowest < 0.1


def test_all_workers_are_in_the_figures(serve):
    """Those of workers that are no more included."""
    server = serve(WEB_CONCURRENCY="4", POSTING_METRICS="on")
    url = server.url
    count = 'posting_requests_total{method="GET",route="/healthz",status="200"} '

    def counted():
        text = requests.get(f"{url}/metrics", timeout=20).text
        return next(float(line.split()[1]) for line in text.splitlines() if count in line)

    with ThreadPoolExecutor(8) as pool:
        ask = lambda _: requests.get(f"{url}/healthz", timeout=20).status_code  # noqa: E731
        assert set(pool.map(ask, range(200))) == {200}
        assert counted() == 200
        server.process.send_signal(signal.SIGHUP)
        wait_until(lambda: server.log.read_text().count("Worker exiting") == 4)
        assert set(pool.map(ask, range(100))) == {200}
        assert counted() == 300
