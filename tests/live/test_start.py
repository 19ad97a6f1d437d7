"""Several processes that start at once."""

import os
import subprocess
import sys

import pytest
import requests

from tests.conftest import POSTGRES
from tests.live.conftest import ROOT

START = "import sys; sys.stdin.read(1); import posting; posting.create_app()"
ROUNDS = 8


def at_once(count, folder, **environment):
    """Start `count` processes, let them go at the same moment, and return how each ended."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", START],
            cwd=ROOT,
            env=os.environ | environment,
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(count)
    ]
    for process in processes:
        process.stdin.write("x")
        process.stdin.flush()
    return [(process.communicate()[1], process.returncode) for process in processes]


@pytest.mark.skipif(bool(POSTGRES), reason="Postgres is upgraded by hand")
def test_four_processes_migrate_one_new_sqlite_database(tmp_path):
    for number in range(ROUNDS):
        url = f"sqlite:///{tmp_path / f'{number}.db'}"
        ends = at_once(4, tmp_path, POSTING_DATABASE_URL=url)
        assert [code for _, code in ends] == [0] * 4, ends
        upgrades = [log for log, _ in ends if "Running upgrade" in log]
        assert len(upgrades) == 1, ends


def test_four_workers_serve(serve):
    server = serve(WEB_CONCURRENCY="4")
    for _ in range(20):
        assert requests.get(f"{server.url}/posts", timeout=5).json() == []
