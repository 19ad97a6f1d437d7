"""Several processes that start or stop at the same time."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import requests

from tests.conftest import POSTGRES
from tests.live.clients import close_clients, scaled, sign_in
from tests.live.conftest import ROOT

# The imports take longest, and at a different speed in each process, so they come first.
START = (
    "import sys, flask_migrate, posting;"
    "print('ready', flush=True); sys.stdin.read(1); posting.create_app()"
)
ROUNDS = scaled(3, 8)


def start_together(count, folder, **environment):
    """Start `count` processes together; return the stderr and exit code of each."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", START],
            cwd=ROOT,
            env=os.environ | environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(count)
    ]
    for process in processes:
        assert process.stdout.readline() == "ready\n", process.communicate()
    for process in processes:
        process.stdin.write("x")
        process.stdin.flush()
    return [(process.communicate()[1], process.returncode) for process in processes]


@pytest.mark.skipif(bool(POSTGRES), reason="a Postgres database is not migrated at start-up")
def test_four_processes_migrate_a_new_sqlite_database_once(tmp_path):
    for number in range(ROUNDS):
        url = f"sqlite:///{tmp_path / f'{number}.db'}"
        results = start_together(4, tmp_path, POSTING_DATABASE_URL=url)
        assert results == [("", 0)] * 4  # a second migration would fail


def test_four_workers_start(serve):
    server = serve(WEB_CONCURRENCY="4")
    for _ in range(20):
        assert requests.get(f"{server.url}/posts", timeout=20).json() == []


@pytest.mark.skipif(bool(POSTGRES), reason="Postgres has no such file")
def test_workers_that_stop_leave_one_file(serve, fresh_url):
    """SQLite moves its log of writes into the database when the last connection is closed."""
    server = serve(WEB_CONCURRENCY="2")
    ada = sign_in(server.url, "ada")
    for number in range(20):
        post = {"title": str(number), "content": "x"}
        assert ada.post(f"{server.url}/posts", json=post, timeout=20).status_code == 201
    close_clients()
    server.process.terminate()
    server.process.wait(20)
    file = Path(fresh_url.removeprefix("sqlite:///"))
    assert list(file.parent.glob("*.db*")) == [file]
