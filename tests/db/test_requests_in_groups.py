"""Requests that commit together: what each answers if the commit fails."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
import sqlalchemy as sa
from pysqlite3 import dbapi2 as sqlite

from posting.accounts.models import Session
from posting.db.base import db
from posting.db.transactions import WRITER, begin, is_in_transaction, transaction
from posting.db.types import now
from posting.web.limits import RateWindow
from tests.conftest import PASSWORD, POSTGRES
from tests.live.load import wait_until

on_sqlite = pytest.mark.skipif(bool(POSTGRES), reason="On Postgres, requests commit alone")


@pytest.fixture
def send(app):
    """Return a function that sends a request in a thread, and returns when this waits its turn."""
    writer = app.extensions[WRITER]

    def send(client, method, path, **options):
        waiting = len(writer._queue)
        future = pool.submit(client.open, path, method=method, **options)
        wait_until(lambda: len(writer._queue) == waiting + 1)
        return future

    with ThreadPoolExecutor(4) as pool:
        yield send


@pytest.fixture
def commit(app):
    """Return a function that commits the group of the requests that wait, or fails to.

    The first member of the group began before them.
    """
    with app.app_context():
        engine = db.engine
    first = app.extensions[WRITER].begin()

    def fail(_connection):
        error = sqlite.OperationalError("database or disk is full")
        error.sqlite_errorname = "SQLITE_FULL"
        raise sa.exc.OperationalError("COMMIT", None, error)

    def commit(*, fails):
        if not fails:
            first.commit()
            return
        sa.event.listen(engine, "commit", fail)
        with pytest.raises(sa.exc.OperationalError):
            first.commit()

    yield commit
    if sa.event.contains(engine, "commit", fail):
        sa.event.remove(engine, "commit", fail)


def statuses(futures):
    return [future.result().status_code for future in futures]


@on_sqlite
@pytest.mark.parametrize(("fails", "expected"), [(False, [201, 409]), (True, [507, 507])])
def test_a_conflict_with_a_row_of_the_group_waits_for_the_commit(
    app, send, commit, fails, expected
):
    body = {"username": "ada", "password": PASSWORD}
    sent = [send(app.test_client(), "POST", "/signup", json=body) for _ in range(2)]
    commit(fails=fails)
    assert statuses(sent) == expected


@pytest.fixture
def written(alice, post):
    """A member, and the path of their post."""
    return alice, f"/posts/{post['id']}"


@on_sqlite
@pytest.mark.parametrize(("fails", "expected"), [(False, [204, 404]), (True, [507, 507])])
def test_a_deletion_by_the_group_waits_for_the_commit(written, send, commit, fails, expected):
    alice, path = written
    sent = [
        send(alice, "DELETE", path),
        send(alice.copy(), "POST", f"{path}/comments", json={"content": "a"}),
    ]
    commit(fails=fails)
    assert statuses(sent) == expected


@pytest.fixture
def absent(app, alice):
    """A member who was last seen two hours ago, which the next request changes."""
    with app.app_context(), transaction() as connection:
        connection.execute(sa.update(Session).values(last_seen_at=now() - timedelta(hours=2)))
    return alice


@on_sqlite
@pytest.mark.parametrize("fails", [False, True])
def test_a_read_succeeds_even_if_its_time_cannot_be_stored(absent, send, commit, fails):
    sent = send(absent, "GET", "/users/me")
    commit(fails=fails)
    assert statuses([sent]) == [200]


def test_requests_with_two_transactions_count_exactly_in_groups(make_app, alice):
    """A sign-in counts the password in one transaction, and creates the session in another."""
    app = make_app(RATE_LIMITS="on", LIMIT_SIGNIN="1000/hour")

    def sign_in(password):
        body = {"username": "alice", "password": password}
        return app.test_client().post("/signin", json=body).status_code

    with ThreadPoolExecutor(8) as pool:
        found = [*pool.map(sign_in, [PASSWORD, "not the password"] * 20)]
    assert found == [200, 401] * 20
    with app.app_context(), db.engine.connect() as connection:
        hits = connection.scalars(sa.select(RateWindow.hits)).all()
        assert hits == [20, 20]  # of the account at the address, and of the address
        sessions = sa.select(sa.func.count()).where(Session.user_id == alice.user["id"])
        assert connection.scalar(sessions) == 1 + 20


def test_a_nested_context_has_a_transaction_of_its_own(app):
    with app.app_context():
        begin()
        with app.app_context():
            assert not is_in_transaction()
        assert is_in_transaction()
