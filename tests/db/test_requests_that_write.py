"""Requests that write: what they answer if they wait too long, or if the commit fails."""

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from threading import Event

import pytest
import sqlalchemy as sa
from pysqlite3 import dbapi2 as sqlite
from werkzeug.exceptions import Conflict

from posting.accounts.models import Session
from posting.comments.models import Comment
from posting.comments.views import INDEX as COMMENT_INDEX
from posting.db import sqlite as sqlite_module
from posting.db.base import db
from posting.db.transactions import fetch_all, transaction
from posting.db.types import now
from posting.posts.models import Post
from posting.web.limits import RateWindow
from tests.conftest import PASSWORD, POSTGRES
from tests.helpers.assertions import assert_problem

on_sqlite = pytest.mark.skipif(bool(POSTGRES), reason="is for SQLite")
ERRORS = {
    "SQLITE_FULL": "database or disk is full",
    "SQLITE_READONLY": "attempt to write a readonly database",
}
POST = {"title": "On looms", "content": "They weave."}


@pytest.fixture
def failing_commits(app):
    """Return a context in which each COMMIT fails with an error of SQLite by its name."""

    @contextmanager
    def failing_commits(error_name):
        def fail(_connection):
            error = sqlite.OperationalError(ERRORS[error_name])
            error.sqlite_errorname = error_name
            raise sa.exc.OperationalError("COMMIT", None, error)

        with app.app_context():
            engine = db.engine
        sa.event.listen(engine, "commit", fail)
        yield
        sa.event.remove(engine, "commit", fail)

    return failing_commits


def titles(client, path="/posts"):
    return [post["title"] for post in client.get(path).json]


@on_sqlite
@pytest.mark.parametrize(("error", "status"), [("SQLITE_FULL", 507), ("SQLITE_READONLY", 503)])
def test_a_commit_that_fails_leaves_nothing(alice, failing_commits, error, status):
    with failing_commits(error):
        assert_problem(alice.post("/posts", json=POST), status)
    assert titles(alice) == []
    assert alice.post("/posts", json=POST).status_code == 201


@on_sqlite
@pytest.mark.parametrize("error", ERRORS)
def test_a_read_succeeds_even_if_its_time_cannot_be_stored(app, alice, failing_commits, error):
    with app.app_context(), transaction() as connection:
        connection.execute(sa.update(Session).values(last_seen_at=now() - timedelta(hours=2)))
    with failing_commits(error):
        assert alice.get("/users/me").status_code == 200


@pytest.fixture
def open_transaction(app):
    """A transaction with a post without an author, which the end of the block commits."""

    @contextmanager
    def open_transaction():
        begun, may_end = Event(), Event()

        def write():
            with app.app_context(), transaction() as connection:
                connection.execute(sa.insert(Post).values(title="First", content="x"))
                begun.set()
                assert may_end.wait(60)

        with ThreadPoolExecutor(1) as pool:
            written = pool.submit(write)
            assert begun.wait(60)
            try:
                yield
            finally:
                may_end.set()
            written.result()

    return open_transaction


@on_sqlite
def test_a_request_that_waits_too_long_gets_503(alice, open_transaction, monkeypatch):
    monkeypatch.setattr("posting.db.sqlite.WRITE_LOCK_SECONDS", 0.05)
    with open_transaction():
        late = alice.post("/posts", json=POST)
        assert assert_problem(late, 503)["code"] == "database_busy"
        assert late.headers["Retry-After"] == "1"
    assert titles(alice) == ["First"]


@on_sqlite
def test_a_request_that_waits_too_long_for_its_turn_gets_503(alice, monkeypatch):
    monkeypatch.setattr(sqlite_module, "WRITE_LOCK_SECONDS", 0.05)
    with alice.application.extensions["posting.writer"].transaction():
        late = alice.post("/posts", json=POST)
    assert assert_problem(late, 503)["code"] == "database_busy"
    assert alice.post("/posts", json=POST).status_code == 201


def test_a_cached_list_changes_with_the_commit(anonymous, open_transaction):
    """A list is cached before the post is written, and another before the post is committed."""
    assert titles(anonymous) == []
    with open_transaction():
        assert titles(anonymous) == titles(anonymous, "/posts?limit=1") == []
    assert titles(anonymous) == titles(anonymous, "/posts?limit=1") == ["First"]


def test_requests_with_several_units_of_work_count_exactly(make_app, alice):
    """A sign-in counts the password in one unit of work, and creates the session in another."""
    app = make_app(RATE_LIMITS="on", LIMIT_SIGNIN="1000/hour")

    def sign_in(password):
        body = {"username": "alice", "password": password}
        while (status := app.test_client().post("/signin", json=body).status_code) == 503:
            time.sleep(0.01)  # at most three passwords of an address are checked at a time
        return status

    with ThreadPoolExecutor(8) as pool:
        found = [*pool.map(sign_in, [PASSWORD, "not the password"] * 20)]
    assert found == [200, 401] * 20
    with app.app_context(), db.engine.connect() as connection:
        hits = connection.scalars(sa.select(RateWindow.hits)).all()
        # Of wrong and of right passwords, for the account and for the address.
        assert hits == [20, 20, 20, 20]
        sessions = sa.select(sa.func.count()).where(Session.user_id == alice.user["id"])
        assert connection.scalar(sessions) == 1 + 20


@pytest.mark.usefixtures("stays_consistent")
def test_concurrent_requests_keep_what_they_acknowledge(sign_in, app, monkeypatch):
    """Every fifth comment fails after its INSERT."""
    clients = [sign_in(f"user-{number}") for number in range(8)]
    post = clients[0].create_post("On engines")
    add = COMMENT_INDEX.add

    def add_or_fail(entries):
        add(entries)
        if any(row["content"].endswith("4") for row, _ in entries):
            raise Conflict

    monkeypatch.setattr(COMMENT_INDEX, "add", add_or_fail)

    def write(number):
        client, content = clients[number % 8].copy(), {"content": str(number)}
        if number % 2:
            return client.post("/posts", json={"title": "a", **content}).status_code
        return client.post(f"/posts/{post['id']}/comments", json=content).status_code

    with ThreadPoolExecutor(8) as pool:  # as many as the pool has connections to Postgres
        statuses = [*pool.map(write, range(400))]
    assert Counter(statuses) == {201: 360, 409: 40}
    with app.app_context():
        texts = fetch_all(sa.union_all(sa.select(Post.content), sa.select(Comment.content)))
    stored = {text for (text,) in texts} - {post["content"]}
    assert stored == {str(number) for number, status in enumerate(statuses) if status == 201}
