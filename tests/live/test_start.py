"""Several processes that start at once."""

import os
import stat
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
        ends = at_once(4, tmp_path, POSTING_DATABASE_URL=url, POSTING_SECRET_KEY="x" * 32)
        assert [code for _, code in ends] == [0] * 4, ends
        upgrades = [log for log, _ in ends if "Running upgrade" in log]
        assert len(upgrades) == 1, ends


def test_four_workers_serve(serve):
    server = serve(WEB_CONCURRENCY="4")
    for _ in range(20):
        assert requests.get(f"{server.url}/posts", timeout=5).json() == []


def test_processes_that_race_for_the_secret_key_get_the_same(tmp_path):
    code = (
        "import sys, pathlib; sys.stdin.read(1); from posting import secret_key; "
        f"print(secret_key._made_once(pathlib.Path({str(tmp_path)!r}) / 'secret_key'))"
    )
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", code],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(8)
    ]
    for process in processes:
        process.stdin.write("x")
        process.stdin.flush()
    assert len({process.communicate()[0] for process in processes}) == 1
    [file] = tmp_path.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
