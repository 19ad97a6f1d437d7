"""The search indexes of a running service."""

import os
import random
import subprocess
import sys
from collections import Counter
from threading import Event

import pytest

from posting import create_app
from posting.db.base import db
from posting.db.engine import close_connections
from tests.helpers import ROOT
from tests.helpers.assertions import assert_indexed
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


@pytest.fixture
def assert_all_indexed(fresh_url):
    """Return a function that asserts that the indexes of the service are right."""

    def assert_all_indexed():
        app = create_app({"DATABASE_URL": fresh_url})
        with app.app_context(), db.engine.connect() as connection:
            assert_indexed(connection)
        with app.app_context():
            close_connections()

    return assert_all_indexed


def test_readers_and_writers_continue_during_a_rebuild(serve, flask, assert_all_indexed, figure):
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
    assert_all_indexed()
    for title in load.acknowledged[:: len(load.acknowledged) // 5]:
        [found] = ada.get(f"{url}/posts?q={title}", timeout=20).json()
        assert found["title"] == title


@pytest.mark.usefixtures("stays_consistent")
def test_comments_and_names_change_during_a_rebuild(serve, flask, assert_all_indexed, pool, figure):
    """Each member also deletes their account with all comments at last."""
    url = serve(WEB_CONCURRENCY="2").url
    flask("demo", "--posts", "50", "--users", "5", "--comments", "3000", "--images", "0")
    members = [sign_in(url, f"member-{number}") for number in range(4)]
    posts = [post["id"] for post in members[0].get(f"{url}/posts?limit=5").json()]
    is_over = Event()

    def write(member):
        statuses = Counter()

        def send(method, path, **body):
            response = member.request(method, url + path, json=body or None, timeout=30)
            statuses[response.status_code] += 1
            return response

        parent = None
        while not is_over.is_set():
            on = random.choice(posts) if parent is None else parent["post_id"]
            body = {"content": "Text", "parent_id": parent and parent["id"]}
            comment = send("POST", f"/posts/{on}/comments", **body).json()
            path = f"/comments/{comment['id']}"
            send("PATCH", path, content="Edited")
            send("PATCH", "/users/me", display_name=f"Name {random.random()}")
            parent = None if random.random() < 0.4 else comment
            if random.random() < 0.4:
                send("DELETE", path)
                parent = None
        send("DELETE", "/users/me?content=delete")
        return statuses

    running = [pool.submit(write, member) for member in members]
    for _ in range(scaled(2, 10)):
        assert "Indexed" in flask("search", "rebuild")
    is_over.set()
    assert "Indexed" in flask("search", "rebuild")
    statuses = sum((task.result() for task in running), Counter())
    figure(f"{statuses.total():,} writes during rebuilds of the indexes")
    assert statuses.keys() == {200, 201, 204}
    assert_all_indexed()
