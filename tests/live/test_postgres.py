"""Restarts of Postgres under load."""

import os
import shutil
import subprocess
import tempfile
import time
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
    waits = []
    with Load(site.url, ada) as load:
        for number in range(rounds):
            time.sleep(0.5)
            postgres.ctl("restart", "--mode=immediate" if number % 2 else "--mode=fast")
            done = len(load.acknowledged)
            waits.append(wait_until(lambda: len(load.acknowledged) > done + 8))  # noqa: B023
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
    assert max(waits) < scaled(10, 2)
