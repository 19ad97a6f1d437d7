"""Requests that commit together: what each answers if the commit fails."""

import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
import sqlalchemy as sa
from pysqlite3 import dbapi2 as sqlite

from posting.accounts.models import Session
from posting.db import group_commit
from posting.db.base import db
from posting.db.transactions import WRITER, begin, is_in_transaction, transaction
from posting.db.types import now
from posting.web.limits import RateWindow
from tests.conftest import PASSWORD, POSTGRES
from tests.helpers.assertions import assert_problem
from tests.live.load import wait_until

on_sqlite = pytest.mark.skipif(bool(POSTGRES), reason="On Postgres, requests commit alone")
ERRORS = {
    "SQLITE_FULL": "database or disk is full",
    "SQLITE_READONLY": "attempt to write a readonly database",
}
FAILURES = [("SQLITE_FULL", [507, 507]), ("SQLITE_READONLY", [503, 503])]
POST = {"title": "On looms", "content": "They weave."}


@pytest.fixture
def first(app):
    """A transaction that has begun: the first member of the group."""
    member = app.extensions[WRITER].begin()
    yield member
    if not member._group.has_ended.is_set():  # the test has failed
        member.rollback()


@pytest.fixture
def pool():
    with ThreadPoolExecutor(4) as pool:
        yield pool


@pytest.fixture
def queue(app, pool, first):
    """Return a function that calls another in a thread, and returns when this waits its turn."""
    writer = app.extensions[WRITER]

    def queue(function, *arguments, **options):
        waiting = len(writer._queue)
        future = pool.submit(function, *arguments, **options)
        wait_until(lambda: len(writer._queue) == waiting + 1)
        return future

    return queue


@pytest.fixture
def commit(app, first):
    """Return a function that commits the group, or fails with an error of SQLite by its name."""
    with app.app_context():
        engine = db.engine
    listeners = []

    def commit(error_name):
        def fail(_connection):
            error = sqlite.OperationalError(ERRORS[error_name])
            error.sqlite_errorname = error_name
            raise sa.exc.OperationalError("COMMIT", None, error)

        if error_name is None:
            first.commit()
            return
        listeners.append(fail)
        sa.event.listen(engine, "commit", fail)
        with pytest.raises(sa.exc.OperationalError):
            first.commit()

    yield commit
    for listener in listeners:
        sa.event.remove(engine, "commit", listener)


def titles(client, path="/posts"):
    return [post["title"] for post in client.get(path).json]


def statuses(futures):
    return [future.result().status_code for future in futures]


@on_sqlite
@pytest.mark.parametrize(("error", "expected"), [(None, [201, 409]), *FAILURES])
def test_a_conflict_with_a_row_of_the_group_waits_for_the_commit(
    app, queue, commit, error, expected
):
    body = {"username": "ada", "password": PASSWORD}
    sent = [queue(app.test_client().post, "/signup", json=body) for _ in range(2)]
    commit(error)
    assert statuses(sent) == expected


@pytest.fixture
def written(alice, post):
    """A member, and the path of their post."""
    return alice, f"/posts/{post['id']}"


@on_sqlite
@pytest.mark.parametrize(("error", "expected"), [(None, [204, 404]), *FAILURES])
def test_a_deletion_by_the_group_waits_for_the_commit(written, queue, commit, error, expected):
    alice, path = written
    sent = [
        queue(alice.delete, path),
        queue(alice.copy().post, f"{path}/comments", json={"content": "a"}),
    ]
    commit(error)
    assert statuses(sent) == expected


@pytest.fixture
def absent(app, alice):
    """A member who was last seen two hours ago, which the next request changes."""
    with app.app_context(), transaction() as connection:
        connection.execute(sa.update(Session).values(last_seen_at=now() - timedelta(hours=2)))
    return alice


@on_sqlite
@pytest.mark.parametrize("error", [None, *ERRORS])
def test_a_read_succeeds_even_if_its_time_cannot_be_stored(absent, queue, commit, error):
    sent = queue(absent.get, "/users/me")
    commit(error)
    assert statuses([sent]) == [200]


@on_sqlite
def test_a_request_that_waits_too_long_for_its_turn_gets_503(alice, queue, first, monkeypatch):
    stored = queue(alice.copy().post, "/posts", json=POST)
    monkeypatch.setattr(group_commit, "WRITE_LOCK_SECONDS", 0.05)
    late = alice.post("/posts", json=POST | {"title": "Too late"})
    first.commit()
    assert assert_problem(late, 503)["code"] == "database_busy"
    assert late.headers["Retry-After"] == "1"
    assert stored.result().status_code == 201
    assert titles(alice) == ["On looms"]


@on_sqlite
def test_a_cached_list_changes_with_the_commit_of_the_group(alice, anonymous, pool, queue, first):
    """A list is cached before the post is written, and another before the post is committed."""
    before = titles(anonymous)
    created = queue(alice.post, "/posts", json=POST)
    joined = queue(alice.application.extensions[WRITER].begin)
    pool.submit(first.commit)
    last = joined.result()  # so the post is written
    meanwhile = titles(anonymous) + titles(anonymous, "/posts?limit=1")
    is_waiting = not created.done()
    last.commit()
    assert is_waiting
    assert before == meanwhile == []
    assert statuses([created]) == [201]
    assert titles(anonymous) == titles(anonymous, "/posts?limit=1") == ["On looms"]


def test_requests_with_two_transactions_count_exactly_in_groups(make_app, alice):
    """A sign-in counts the password in one transaction, and creates the session in another."""
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


def test_a_nested_context_has_a_transaction_of_its_own(app):
    with app.app_context():
        begin()
        with app.app_context():
            assert not is_in_transaction()
        assert is_in_transaction()
