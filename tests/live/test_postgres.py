"""Restarts of Postgres under load."""

import os
import shutil
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

from tests.conftest import POSTGRES, upgrade
from tests.live.clients import scaled, sign_in
from tests.live.conftest import free_port
from tests.live.load import Load, wait_until

pytestmark = pytest.mark.skipif(not POSTGRES, reason="restarts Postgres")
PROGRAMS = sorted(Path("/usr/lib/postgresql").glob("*/bin"))


class Postgres:
    """A server of the test's own in a temporary folder, run as another user than root."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, free_port()
        self.url = f"postgresql://postgres@127.0.0.1:{self.port}/postgres"
        if os.getuid() == 0:
            shutil.chown(folder, "postgres")
        self._run("initdb", "--auth=trust", "--username=postgres", "--encoding=UTF8")
        options = f"port={self.port}\nlisten_addresses='127.0.0.1'\nunix_socket_directories=''\n"
        with (folder / "postgresql.conf").open("a") as settings:
            settings.write(options)
        self.ctl("start")

    def ctl(self, *words: str) -> None:
        self._run("pg_ctl", "--wait", f"--log={self.folder}/log", *words)

    def _run(self, program: str, *arguments: str) -> None:
        as_user = ["runuser", "-u", "postgres", "--"] if os.getuid() == 0 else []
        command = [*as_user, PROGRAMS[-1] / program, f"--pgdata={self.folder}", *arguments]
        subprocess.run(command, cwd=self.folder, check=True, stdout=subprocess.DEVNULL)


@pytest.fixture
def postgres():
    if not PROGRAMS and "CI" not in os.environ:
        pytest.skip("needs Debian's package postgresql")
    with tempfile.TemporaryDirectory() as folder:
        server = Postgres(Path(folder))
        yield server
        server.ctl("stop", "--mode=immediate")


@pytest.fixture
def fresh_url(postgres):
    upgrade(postgres.url)
    return postgres.url


def test_restarts_cause_only_503s_for_two_seconds(start_site, postgres, check_load, database):
    rounds = scaled(3, 10)
    site = start_site(WEB_CONCURRENCY="2")
    ada = sign_in(site.url, "ada", site.client())
    usual, waits = [], []
    with Load(site.url, ada) as load:
        for number in range(rounds):
            usual.append(load.wait_for_writes(20))
            postgres.ctl("restart", "--mode=immediate" if number % 2 else "--mode=fast")
            waits.append(load.wait_for_writes(9))
    # The restarts closed the connection that the test was given.
    with psycopg.connect(postgres.url) as connection:
        assert connection.execute("SELECT count(*) FROM posts").fetchone() == (
            len(load.acknowledged),
        )
    database.invalidate()
    check_load(
        load, f"{rounds} restarts of Postgres, writing again after {max(waits):.2f} s at most"
    )
    assert set(load.failures) <= {"POST 503"}
    assert max(waits) < max(scaled(10, 2), 5 * max(usual))


def test_a_server_waits_for_postgres_when_it_starts(serve, postgres, tmp_path):
    postgres.ctl("stop")
    with ThreadPoolExecutor(1) as pool:
        server = pool.submit(serve, WEB_CONCURRENCY="1")

        def lines():
            logs = [log.read_text() for log in tmp_path.glob("gunicorn-*.log")]
            return "".join(logs).count(f"Waiting for the database. The database {postgres.url}")

        wait_until(lambda: lines() > 2)
        postgres.ctl("start")
        server.result(30)  # the server that waited is ready
