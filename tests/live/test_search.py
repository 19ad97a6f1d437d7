"""The search index of a running service."""

import os
import subprocess
import sys

import pytest

from posting import create_app
from posting.db.base import db
from posting.posts import search
from tests.helpers import ROOT
from tests.live.clients import scaled, sign_in
from tests.live.load import Load


@pytest.fixture
def flask(fresh_url):
    """Return a function that runs a `flask` command on the database of the service."""
    environment = os.environ | {"POSTING_DATABASE_URL": fresh_url}

    def flask(*arguments):
        command = [sys.executable, "-m", "flask", "--app", "posting", *arguments]
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return flask


def test_readers_and_writers_continue_during_a_rebuild(serve, flask, fresh_url, figure):
    """With rate limits, whose rows requests lock before those of posts."""
    limits = {"POSTING_RATE_LIMITS": "on", "POSTING_LIMIT_POSTS": "1000000/hour"}
    url = serve(WEB_CONCURRENCY="2", **limits).url
    flask("demo", "--posts", "2000", "--users", "5", "--comments", "0", "--images", "0")
    ada = sign_in(url, "ada")
    rebuilds = scaled(3, 20)
    with Load(url, ada, writers=4, readers=2) as load:
        load.wait_for_writes(10)
        for _ in range(rebuilds):
            assert "Indexed" in flask("search", "rebuild")
    figure(f"{len(load.acknowledged):,} posts during {rebuilds} rebuilds of the search index")
    assert load.failures == {}
    app = create_app({"DATABASE_URL": fresh_url})
    with app.app_context(), db.engine.connect() as connection:
        assert search.count_stale_entries(connection) == 0
    with app.app_context():
        db.engine.dispose()
    for title in load.acknowledged[:: len(load.acknowledged) // 5]:
        [found] = ada.get(f"{url}/posts?q={title}", timeout=20).json()
        assert found["title"] == title
