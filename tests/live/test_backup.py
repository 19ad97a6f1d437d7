"""Backup and restore while four clients write: nothing that was acknowledged is lost."""

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
from tests.helpers.assertions import sound
from tests.live.clients import copy_of, sign_in, sized
from tests.live.conftest import ROOT

pytestmark = pytest.mark.skipif(bool(POSTGRES), reason="Postgres has pg_dump and pg_restore")


def flask(*arguments, database):
    """Run a command; return how many seconds it took."""
    begun = time.monotonic()
    subprocess.run(
        [sys.executable, "-m", "flask", *map(str, arguments)],
        cwd=ROOT,
        env=os.environ | {"POSTING_DATABASE_URL": f"sqlite:///{database}"},
        check=True,
        capture_output=True,
    )
    return time.monotonic() - begun


def post_ids(file):
    with closing(sqlite.connect(file)) as connection:
        return {row[0] for row in connection.execute("SELECT id FROM posts")}


def is_whole(file):
    """Assert that no page is damaged, no row an orphan and no count wrong."""
    engine = sa.create_engine(f"sqlite:///{file}", module=sqlite)
    with engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA integrity_check").all() == [("ok",)]
        sound(connection)
    engine.dispose()


class Writers:
    """What four clients have been told is stored, and the longest that one of them waited."""

    def __init__(self):
        self.acknowledged = []
        self.longest = 0.0

    def write_until(self, finished, client, url):
        while not finished.is_set():
            begun = time.monotonic()
            answer = client.post(f"{url}/posts", json={"title": "x", "content": "x"}, timeout=20)
            self.longest = max(self.longest, time.monotonic() - begun)
            assert answer.status_code == 201, answer.text
            self.acknowledged.append(answer.json()["id"])

    def wait_for_more(self):
        goal = len(self.acknowledged) + 20
        while len(self.acknowledged) < goal:
            time.sleep(0.01)


@pytest.fixture
def database(fresh_url):
    """The file of the server's database, with rows in it."""
    file = Path(fresh_url.removeprefix("sqlite:///"))
    flask("demo", "--posts", sized(200, 150_000), "--images", sized(20, 3000), database=file)
    return file


@pytest.fixture
def url(database, serve):
    return serve(WEB_CONCURRENCY="2").url


@pytest.fixture
def writing(pool, url):
    """Let four clients write in the meantime."""
    ada = sign_in(url, "ada")

    @contextmanager
    def writing():
        writers, finished = Writers(), Event()
        running = [pool.submit(writers.write_until, finished, copy_of(ada), url) for _ in range(4)]
        try:
            writers.wait_for_more()
            yield writers
        finally:
            finished.set()
        for each in running:
            each.result()

    return writing


@pytest.fixture
def tell(figure):
    def tell(what, file, seconds, writers):
        size = file.stat().st_size / 2**20
        figure(
            f"{what} of {size:,.0f} MiB: {seconds:.1f} s; {len(writers.acknowledged):,} writes "
            f"meanwhile, the longest took {writers.longest * 1000:,.0f} ms"
        )

    return tell


def test_a_backup_has_what_was_acknowledged_before(writing, database, tell):
    copy, elsewhere = database.with_name("copy.db"), database.with_name("elsewhere.db")
    before = post_ids(database)
    with writing() as writers:
        before.update(writers.acknowledged)
        seconds = flask("backup", copy, database=database)
    tell("backup", copy, seconds, writers)
    flask("restore", copy, database=elsewhere)
    assert before <= post_ids(elsewhere) <= post_ids(database)
    is_whole(elsewhere)


def test_a_restore_under_a_running_server_loses_nothing(writing, url, database, tell):
    copy = database.with_name("copy.db")
    flask("backup", copy, database=database)
    with writing() as writers:
        seconds = flask("restore", "--force", copy, database=database)
        writers.wait_for_more()
    tell("restore", copy, seconds, writers)
    [kept] = database.parent.glob(f"{database.name}.before-restore-*")
    then, now = post_ids(kept), post_ids(database)
    assert set(writers.acknowledged) <= (then | now) - post_ids(copy)
    assert then & now == post_ids(copy)
    newest = writers.acknowledged[-1]
    assert newest in now
    assert requests.get(f"{url}/posts/{newest}", timeout=20).status_code == 200
    for file in (kept, database):
        is_whole(file)
