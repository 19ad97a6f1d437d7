"""Backup and restore while four clients write: no acknowledged write is lost."""

import os
import subprocess
import sys
import time
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Event

import pytest
import requests
import sqlalchemy as sa
from pysqlite3 import dbapi2 as sqlite

from tests.conftest import POSTGRES
from tests.helpers.assertions import assert_consistent
from tests.live.clients import clone, scaled, sign_in
from tests.live.conftest import ROOT
from tests.live.load import wait_until

pytestmark = pytest.mark.skipif(bool(POSTGRES), reason="Postgres has pg_dump and pg_restore")


def flask(*arguments, database):
    """Run a `flask` command; return its duration in seconds."""
    started = time.monotonic()
    subprocess.run(
        [sys.executable, "-m", "flask", *map(str, arguments)],
        cwd=ROOT,
        env=os.environ | {"POSTING_DATABASE_URL": f"sqlite:///{database}"},
        check=True,
        capture_output=True,
    )
    return time.monotonic() - started


def post_ids(file):
    with closing(sqlite.connect(file)) as connection:
        return {row[0] for row in connection.execute("SELECT id FROM posts")}


def assert_intact(file):
    """Assert that no page is damaged, no foreign key broken and no count wrong."""
    engine = sa.create_engine(f"sqlite:///{file}", module=sqlite)
    with engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA integrity_check").all() == [("ok",)]
        assert_consistent(connection)
    engine.dispose()


class Writers:
    """The acknowledged writes of four clients, and the longest response time in seconds.

    `refused` counts the writes that waited for more than five seconds.
    """

    def __init__(self):
        self.acknowledged = []
        self.refused = 0
        self.longest = 0.0

    def write_until(self, finished, client, url):
        while not finished.is_set():
            started = time.monotonic()
            response = client.post(f"{url}/posts", json={"title": "x", "content": "x"}, timeout=20)
            self.longest = max(self.longest, time.monotonic() - started)
            if response.status_code == 503:
                assert response.json()["code"] == "database_busy"
                self.refused += 1
                continue
            assert response.status_code == 201, response.text
            self.acknowledged.append(response.json()["id"])

    def wait_for_more(self):
        goal = len(self.acknowledged) + 20
        wait_until(lambda: len(self.acknowledged) >= goal)


@pytest.fixture
def database(fresh_url):
    """The database file of the server, with rows in it."""
    file = Path(fresh_url.removeprefix("sqlite:///"))
    flask("demo", "--posts", scaled(200, 150_000), "--images", scaled(20, 3000), database=file)
    return file


@pytest.fixture
def server(database, serve):
    return serve(WEB_CONCURRENCY="2")


@pytest.fixture
def url(server):
    return server.url


@pytest.fixture
def writing(pool, url):
    """Run four clients that write."""
    ada = sign_in(url, "ada")

    @contextmanager
    def writing():
        writers, finished = Writers(), Event()
        running = [pool.submit(writers.write_until, finished, clone(ada), url) for _ in range(4)]
        try:
            writers.wait_for_more()
            yield writers
        finally:
            finished.set()
        for each in running:
            each.result()

    return writing


@pytest.fixture
def report(figure):
    def report(action, file, seconds, writers):
        size = file.stat().st_size / 2**20
        written, longest = len(writers.acknowledged), writers.longest * 1000
        figure(
            f"{action} of {size:,.0f} MiB: {seconds:.1f} s; {written:,} writes meanwhile, "
            f"{writers.refused} refused, the slowest took {longest:,.0f} ms"
        )

    return report


def test_a_backup_has_all_writes_acknowledged_before_it(writing, database, report):
    copy, elsewhere = database.with_name("copy.db"), database.with_name("elsewhere.db")
    before = post_ids(database)
    with writing() as writers:
        before.update(writers.acknowledged)
        seconds = flask("backup", copy, database=database)
    report("backup", copy, seconds, writers)
    assert writers.refused == 0
    flask("restore", copy, database=elsewhere)
    assert before <= post_ids(elsewhere) <= post_ids(database)
    assert_intact(elsewhere)


def test_a_restore_while_the_server_runs_loses_no_write(writing, server, database, report):
    """Writes are refused while the restore holds the write lock for more than five seconds."""
    server.database_answers = False
    copy = database.with_name("copy.db")
    flask("backup", copy, database=database)
    with writing() as writers:
        seconds = flask("restore", "--force", copy, database=database)
        writers.wait_for_more()
    report("restore", copy, seconds, writers)
    [kept] = database.parent.glob(f"{database.name}.before-restore-*")
    before, after = post_ids(kept), post_ids(database)
    assert set(writers.acknowledged) <= (before | after) - post_ids(copy)
    assert before & after == post_ids(copy)
    newest = writers.acknowledged[-1]
    assert newest in after
    assert requests.get(f"{server.url}/posts/{newest}", timeout=20).status_code == 200
    for file in (kept, database):
        assert_intact(file)
