"""Fixtures with a real gunicorn, as shipped, on a new database."""

import itertools
import os
import random
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests
import sqlalchemy as sa
from aiosmtpd.controller import Controller
from playwright.sync_api import Browser, sync_playwright
from pysqlite3 import dbapi2 as sqlite

from tests.conftest import POSTGRES, new_database
from tests.helpers.assertions import assert_consistent
from tests.live.browser import People, close
from tests.live.clients import close_clients
from tests.live.load import Load
from tests.live.mails import Mailbox
from tests.live.sites import (
    CONFIG,
    HEAPS,
    ROOT,
    Gunicorn,
    Nginx,
    Site,
    gunicorn,
    open_listener,
    require_programs,
)

SETTINGS = {"POSTING_PASSWORD_HASH": "scrypt:128:8:1", "POSTING_RATE_LIMITS": "off"}


@dataclass
class Server:
    """A running server; `database_answers` is false if the test stops the database."""

    url: str
    process: subprocess.Popen[bytes]
    log: Path
    database_answers: bool = True


def ports_of_this_process() -> Iterator[int]:
    """Yield the ports that other test processes do not use, in any order, again and again.

    They are below the ephemeral range, in which a client could connect to itself.
    """
    process = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    first = 20_000 + 1_000 * (process % 12)
    return itertools.cycle(random.sample(range(first, first + 1_000), 1_000))


_ports = ports_of_this_process()


def free_port() -> int:
    """Return a free port, which no other call has returned lately."""
    for port in _ports:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)):
                return port
    raise AssertionError("The ports never end.")


@pytest.fixture(scope="session")
def shared_url(template_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """URL of a database for the tests that do not need one of their own."""
    with new_database(tmp_path_factory.mktemp("shared"), template_url) as url:
        yield url


@contextmanager
def running_servers(database_url: str, folder: Path) -> Iterator[Callable[..., Server]]:
    """Yield a function that starts servers; they must not log a traceback or a locked database."""
    servers: list[Server] = []

    def serve(*wrapper: str, config: Path = CONFIG, **environment: Any) -> Server:
        port = free_port()
        log = folder / f"gunicorn-{port}.log"
        settings = SETTINGS | {"POSTING_DATABASE_URL": database_url, "PORT": str(port), **HEAPS}
        with log.open("wb") as stderr:
            process = subprocess.Popen(
                [*wrapper, *gunicorn(config), "wsgi:app"],
                cwd=ROOT,
                env=os.environ | settings | environment,
                stderr=stderr,
            )
        server = Server(f"http://127.0.0.1:{port}", process, log)
        servers.append(server)
        for _ in range(1000):
            assert process.poll() is None, log.read_text()
            try:
                requests.get(f"{server.url}/readyz", timeout=5).raise_for_status()
            except requests.RequestException:
                time.sleep(0.05)
            else:
                return server
        raise AssertionError(log.read_text())

    yield serve
    close_clients()
    for server in servers:
        server.process.terminate()
        server.process.wait(60)
        log = server.log.read_text()
        assert "Traceback" not in log, log
        if server.database_answers:
            assert "The database failed" not in log, log


@pytest.fixture
def serve(fresh_url: str, tmp_path: Path) -> Iterator[Callable[..., Server]]:
    """Start servers on a new database."""
    with running_servers(fresh_url, tmp_path) as serve:
        yield serve


@pytest.fixture(scope="session")
def shared_server(shared_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with two workers for the tests that do not need one of their own.

    It has few threads, since each keeps a connection to Postgres, which has 100 for all tests.
    """
    with running_servers(shared_url, tmp_path_factory.mktemp("server")) as serve:
        yield serve(WEB_CONCURRENCY="2", GUNICORN_CMD_ARGS="--threads 4")


@contextmanager
def running_sites(database_url: str, folder: Path) -> Iterator[Callable[..., Site]]:
    """Yield a function that starts sites: nginx in front of one gunicorn, or of several `hosts`."""
    require_programs("nginx", "openssl")
    sites: list[Site] = []

    def start(hosts: int = 1, **environment: str) -> Site:
        ports = free_port(), free_port()
        settings = SETTINGS | {
            "POSTING_DATABASE_URL": database_url,
            "POSTING_PUBLIC_URL": f"https://localhost:{ports[1]}",
            "POSTING_PROXY_HOPS": "1",
        }
        if hosts == 1:
            listeners, upstreams = [open_listener(path := folder / "sock")], [f"unix:{path}"]
        else:
            listeners = [open_listener(("127.0.0.1", free_port())) for _ in range(hosts)]
            upstreams = [f"127.0.0.1:{listener.getsockname()[1]}" for listener in listeners]
        site = Site(
            Nginx(folder, ports, *upstreams),
            [Gunicorn(folder, listener, **settings | environment) for listener in listeners],
        )
        sites.append(site)
        site.wait()
        return site

    yield start
    for site in sites:
        site.stop()


@pytest.fixture
def start_site(fresh_url: str, tmp_path: Path) -> Iterator[Callable[..., Site]]:
    """Start sites on a new database."""
    with running_sites(fresh_url, tmp_path) as start:
        yield start


@pytest.fixture
def url(serve: Callable[..., Server]) -> str:
    """URL of a server with four workers of four threads."""
    return serve(WEB_CONCURRENCY="4", GUNICORN_CMD_ARGS="--threads 4").url


@pytest.fixture
def mailbox() -> Mailbox:
    """What the mail server of a test has got, and what it answers."""
    return Mailbox()


@pytest.fixture
def start_mail_server(mailbox: Mailbox) -> Iterator[Callable[..., int]]:
    """Return a function that starts a mail server, and returns its port."""
    controllers = []

    def start(**options: Any) -> int:
        port = free_port()
        controller = Controller(mailbox, hostname="", port=port, **options)
        controllers.append(controller)
        controller.start()
        return port

    yield start
    for controller in controllers:
        controller.stop()


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    """A pool of threads, one for each client."""
    with ThreadPoolExecutor(16) as pool:
        yield pool


@pytest.fixture
def database(fresh_url: str) -> Iterator[sa.Connection]:
    """A connection to the server's database, in autocommit mode so that each read is current."""
    engine = (
        sa.create_engine(fresh_url.replace("postgresql:", "postgresql+psycopg:"))
        if POSTGRES
        else sa.create_engine(fresh_url, module=sqlite)
    )
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        yield connection
    engine.dispose()


@pytest.fixture
def check_load(database: sa.Connection, figure: Callable[[str], None]) -> Callable[..., None]:
    """Return a function that asserts that each acknowledged write of a load is stored once."""

    def check(load: Load, scenario: str) -> None:
        lost, duplicated = load.lost_and_duplicated(database)
        outcomes = ", ".join(f"{n:,} times {name}" for name, n in sorted(load.outcomes.items()))
        figure(
            f"{scenario}: {len(load.acknowledged):,} writes acknowledged, {len(lost)} lost, "
            f"{len(duplicated)} duplicated; {outcomes}; slowest {load.longest:.1f} s"
        )
        assert len(load.acknowledged) > 10
        assert (lost, duplicated) == (set(), set())

    return check


@pytest.fixture
def stays_consistent(database: sa.Connection) -> Iterator[None]:
    """Assert after the test that the server's database is consistent."""
    yield
    assert_consistent(database)
    if not POSTGRES:
        assert database.exec_driver_sql("PRAGMA integrity_check").scalars().all() == ["ok"]


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """The Chromium of the system; its package without windows needs a third of the CPU time."""
    path = shutil.which("chromium-headless-shell") or shutil.which("chromium")
    if not path:
        require_programs("chromium-headless-shell")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield chromium
        close(chromium)


@pytest.fixture
def people(chromium: Browser) -> Iterator[People]:
    """People with a browser; nothing unexpected may be in their consoles."""
    people = People(chromium)
    yield people
    people.close()
