"""Fixtures with a real gunicorn, as shipped, on a new database."""

import os
import random
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests
import sqlalchemy as sa
from pysqlite3 import dbapi2 as sqlite

from tests.conftest import POSTGRES, upgrade
from tests.helpers.assertions import assert_consistent
from tests.live.load import Load
from tests.live.sites import GUNICORN, ROOT, Gunicorn, Nginx, Site, open_listener, require_programs

SETTINGS = {"POSTING_PASSWORD_HASH": "scrypt:128:8:1", "POSTING_RATE_LIMITS": "off"}


@dataclass
class Server:
    """A running server; `database_answers` is false if the test stops the database."""

    url: str
    process: subprocess.Popen[bytes]
    log: Path
    database_answers: bool = True


def free_port() -> int:
    """Return a free port below the ephemeral range, in which a client could connect to itself."""
    while True:
        port = random.randint(20_000, 32_000)
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)):
                return port


@pytest.fixture
def fresh_url(empty_url: str) -> str:
    """URL of a database without rows. An SQLite database has no tables before the server starts."""
    if POSTGRES:
        upgrade(empty_url)
    return empty_url


@pytest.fixture
def serve(fresh_url: str, tmp_path: Path) -> Iterator[Callable[..., Server]]:
    """Start servers on the new database; they must not log a traceback or a locked database."""
    servers: list[Server] = []

    def serve(*wrapper: str, **environment: Any) -> Server:
        port = free_port()
        log = tmp_path / f"gunicorn-{port}.log"
        settings = SETTINGS | {"POSTING_DATABASE_URL": fresh_url, "PORT": str(port)}
        with log.open("wb") as stderr:
            process = subprocess.Popen(
                [*wrapper, *GUNICORN, "wsgi:app"],
                cwd=ROOT,
                env=os.environ | settings | environment,
                stderr=stderr,
            )
        server = Server(f"http://127.0.0.1:{port}", process, log)
        servers.append(server)
        for _ in range(200):
            assert process.poll() is None, log.read_text()
            try:
                requests.get(f"{server.url}/readyz", timeout=5).raise_for_status()
            except requests.RequestException:
                time.sleep(0.05)
            else:
                return server
        raise AssertionError(log.read_text())

    yield serve
    for server in servers:
        server.process.terminate()
        server.process.wait(10)
        log = server.log.read_text()
        assert "Traceback" not in log, log
        if server.database_answers:
            assert "did not answer" not in log, log


@pytest.fixture
def start_site(fresh_url: str, tmp_path: Path) -> Iterator[Callable[..., Site]]:
    """Start sites on the new database: nginx in front of one gunicorn, or of several `hosts`."""
    require_programs("nginx", "openssl")
    sites: list[Site] = []

    def start(hosts: int = 1, **environment: str) -> Site:
        ports = free_port(), free_port()
        settings = SETTINGS | {
            "POSTING_DATABASE_URL": fresh_url,
            "POSTING_PUBLIC_URL": f"https://localhost:{ports[1]}",
            "POSTING_PROXY_HOPS": "1",
        }
        if hosts == 1:
            listeners, upstreams = [open_listener(path := tmp_path / "sock")], [f"unix:{path}"]
        else:
            listeners = [open_listener(("127.0.0.1", free_port())) for _ in range(hosts)]
            upstreams = [f"127.0.0.1:{listener.getsockname()[1]}" for listener in listeners]
        site = Site(
            Nginx(tmp_path, ports, *upstreams),
            [Gunicorn(tmp_path, listener, **settings | environment) for listener in listeners],
        )
        sites.append(site)
        site.wait()
        return site

    yield start
    for site in sites:
        site.stop()


@pytest.fixture
def url(serve: Callable[..., Server]) -> str:
    """URL of a server with four workers of four threads."""
    return serve(WEB_CONCURRENCY="4", GUNICORN_CMD_ARGS="--threads 4").url


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
