"""The threads of a process write to SQLite in turns, and commit together."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing
from datetime import timedelta
from threading import Event

import pytest
import sqlalchemy as sa
from pysqlite3 import dbapi2 as sqlite
from werkzeug.exceptions import Conflict

from posting.comments.models import Comment
from posting.db import group_commit
from posting.db.base import Base, db
from posting.db.engine import close_connections, sqlite_file
from posting.db.errors import error_code
from posting.db.group_commit import MAX_MEMBERS
from posting.db.transactions import WRITER, fetch_all
from posting.db.types import now
from posting.posts.models import Post
from posting.web.idempotency import Once
from posting.web.limits import RateWindow
from tests.conftest import POSTGRES
from tests.live.load import wait_until

pytestmark = pytest.mark.skipif(bool(POSTGRES), reason="SQLite only")


@pytest.fixture
def writer(app):
    return app.extensions[WRITER]


@pytest.fixture
def pool():
    with ThreadPoolExecutor(40) as pool:
        yield pool


@pytest.fixture
def commits(app):
    """A list with an item for each COMMIT."""
    seen = []

    def append(connection):
        seen.append(connection)

    with app.app_context():
        engine = db.engine
    sa.event.listen(engine, "commit", append)
    yield seen
    sa.event.remove(engine, "commit", append)


@pytest.fixture
def stored(app):
    """Return a function that returns the keys of the rows that another connection sees."""

    def stored():
        with app.app_context(), closing(sqlite.connect(sqlite_file())) as connection:
            rows = connection.execute("SELECT key FROM rate_windows").fetchall()
        return {key for (key,) in rows}

    return stored


def insert(member, key):
    values = {"key": key, "hits": 1, "ends_at": now() + timedelta(hours=1)}
    member.connection.execute(sa.insert(RateWindow), values)


@pytest.fixture
def write(writer):
    """Return a function that writes a row in a transaction of its own."""

    def write(key, *, before=lambda _: None, **options):
        member = writer.begin(**options)
        try:
            insert(member, key)
            before(member)
        except BaseException:
            member.rollback()
            raise
        member.commit()
        return key

    return write


@pytest.fixture
def first(writer):
    """A transaction that has begun, and has written the row `first`."""
    member = writer.begin()
    insert(member, "first")
    return member


@pytest.fixture
def queue(writer, pool):
    """Return a function that calls another in a thread, and returns when this waits its turn."""

    def queue(function, *arguments, **options):
        waiting = len(writer._queue)
        future = pool.submit(function, *arguments, **options)
        wait_until(lambda: len(writer._queue) == waiting + 1)
        return future

    return queue


def test_one_commit_is_for_all_that_wait(first, queue, write, commits, stored):
    others = [queue(write, key) for key in "abc"]
    first.commit()
    assert [other.result() for other in others] == [*"abc"]
    assert stored() == {"first", *"abc"}
    assert len(commits) == 1


def test_without_others_each_commits_at_once(write, commits, stored):
    for key in "ab":
        write(key)
        assert key in stored()
    assert len(commits) == 2


def test_no_thread_returns_before_the_commit(first, queue, pool, write, stored):
    is_begun, may_end = Event(), Event()
    second = queue(write, "second", before=lambda _: (is_begun.set(), may_end.wait(60)))
    committed = pool.submit(first.commit)
    assert is_begun.wait(60)
    assert wait([committed], timeout=0.1).done == set()
    assert stored() == set()
    may_end.set()
    assert second.result() == "second"
    committed.result()
    assert stored() == {"first", "second"}


def test_the_writes_of_a_member_that_fails_are_undone(first, queue, write, stored):
    def fail(_member):
        raise KeyError("a view has failed")

    before, failed, after = queue(write, "a"), queue(write, "b", before=fail), queue(write, "c")
    first.commit()
    with pytest.raises(KeyError):
        failed.result()
    assert (before.result(), after.result()) == ("a", "c")
    assert stored() == {"first", "a", "c"}


def test_the_last_member_that_fails_commits_for_the_others(first, queue, write, stored):
    failed = queue(write, "a", before=lambda member: insert(member, "first"))  # is there already
    first.commit()
    with pytest.raises(sa.exc.IntegrityError):
        failed.result()
    assert stored() == {"first"}


def test_a_member_that_fails_finds_what_made_it_fail(first, queue, write, stored):
    """Such as the stored response of the request that used its key before."""

    def fail_and_look():
        with pytest.raises(sa.exc.IntegrityError):
            write("first")
        return stored()

    failed, last = queue(fail_and_look), queue(write, "last")
    first.commit()
    assert failed.result() == {"first", last.result()}


def test_a_member_that_fails_alone_leaves_nothing(first, write, stored):
    first.rollback()
    assert stored() == set()
    write("a")
    assert stored() == {"a"}


def test_an_error_of_the_commit_is_one_for_each_member(app, first, queue, write, stored):
    def fail(_connection):
        raise sa.exc.OperationalError("COMMIT", None, sqlite.OperationalError("disk is full"))

    others = [queue(write, key) for key in "ab"]
    with app.app_context():
        engine = db.engine
    sa.event.listen(engine, "commit", fail)
    with pytest.raises(sa.exc.OperationalError, match="disk is full"):
        first.commit()
    for other in others:
        with pytest.raises(sa.exc.OperationalError, match="disk is full"):
            other.result()
    sa.event.remove(engine, "commit", fail)
    assert stored() == set()
    write("c")
    assert stored() == {"c"}


@pytest.mark.parametrize("fails", [False, True])
def test_a_transaction_that_sqlite_has_rolled_back_fails_for_all(
    first, queue, write, stored, fails
):
    """SQLite does so after some errors, such as a full disk."""

    def end_it(member):
        member.connection.connection.driver_connection.execute("ROLLBACK")
        if fails:
            raise KeyError

    second, third = queue(write, "second", before=end_it), queue(write, "third")
    with pytest.raises(sa.exc.OperationalError, match="rolled back") as error:
        first.commit()
    assert error_code(error.value) == "SQLITE_FULL"  # 507, as for a member alone
    with pytest.raises(sa.exc.OperationalError, match="rolled back"):
        second.result()
    assert third.result() == "third"  # in a group of its own
    assert stored() == {"third"}


@pytest.fixture(params=["RELEASE", "ROLL_BACK"])
def broken(request, monkeypatch):
    """The name of a statement that fails."""
    monkeypatch.setattr(group_commit, request.param, "ROLLBACK TO elsewhere")
    return request.param


def test_a_member_that_cannot_leave_fails_for_all(first, queue, write, stored, broken):
    """None of its rows may be stored, and the turn must not be lost."""

    def fail(_member):
        if broken == "ROLL_BACK":
            raise KeyError

    second, third = queue(write, "second", before=fail), queue(write, "third")
    with pytest.raises(sa.exc.OperationalError, match="rolled back"):
        first.commit()
    with pytest.raises(sa.exc.OperationalError, match="no such savepoint"):
        second.result()
    assert third.result() == "third"
    assert stored() == {"third"}


def test_a_connection_that_is_closed_fails_for_all(app, first, queue, write, stored):
    def close(_member):
        with app.app_context():
            close_connections()

    second = queue(write, "second", before=close)
    for committed in (first.commit, second.result):
        with pytest.raises(sa.exc.OperationalError, match="rolled back"):
            committed()
    write("third")
    assert stored() == {"third"}


def test_a_connection_that_was_replaced_fails_for_all(first, queue, write, stored):
    second = queue(write, "second", before=lambda member: member.connection.invalidate())
    with pytest.raises(sa.exc.OperationalError, match="rolled back"):
        first.commit()
    with pytest.raises(sa.exc.OperationalError, match="rolled back"):
        second.result()
    write("third")
    assert stored() == {"third"}


def test_a_group_has_at_most_sixteen_members(first, queue, write, commits, stored):
    others = [queue(write, str(number)) for number in range(MAX_MEMBERS + 3)]
    first.commit()
    assert len([other.result() for other in others]) == MAX_MEMBERS + 3
    assert len(stored()) == MAX_MEMBERS + 4
    assert len(commits) == 2


def test_a_long_transaction_is_in_no_group(first, queue, write, commits, stored):
    others = [queue(write, "a"), queue(write, "long", alone=True), queue(write, "b")]
    first.commit()
    assert [other.result() for other in others] == ["a", "long", "b"]
    assert len(commits) == 3


def test_threads_wait_without_polling(first, queue, write, monkeypatch):
    pauses = []
    monkeypatch.setattr("posting.db.sqlite.sleep", pauses.append)
    others = [queue(write, key) for key in "abc"]
    first.commit()
    wait(others)
    assert not pauses


def test_a_thread_that_waits_too_long_fails(first, write, stored, monkeypatch):
    monkeypatch.setattr(group_commit, "WRITE_LOCK_SECONDS", 0.05)
    with pytest.raises(sa.exc.OperationalError, match="database is locked"):
        write("a")
    first.commit()
    write("b")
    assert stored() == {"first", "b"}


def test_a_thread_that_stops_waiting_is_not_chosen(pool, write, stored, monkeypatch):
    """Or the turn would be lost, and the others would wait forever."""
    monkeypatch.setattr(group_commit, "WRITE_LOCK_SECONDS", 0.001)

    def attempt(key):
        try:
            return write(key)
        except sa.exc.OperationalError as error:
            assert "database is locked" in str(error)  # noqa: PT017 - else it has written
            return None

    results = list(pool.map(attempt, map(str, range(1000))))
    written = {key for key in results if key}
    assert stored() == written
    assert len(written) < 1000  # some have stopped
    write("last")


def test_a_turn_ends_if_another_process_has_the_lock(app, write, stored, monkeypatch):
    monkeypatch.setattr("posting.db.sqlite.WRITE_LOCK_SECONDS", 0.05)
    with app.app_context():
        file = sqlite_file()
    with closing(sqlite.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(sa.exc.OperationalError, match="database is locked"):
            write("a")
    write("b")
    assert stored() == {"b"}


@pytest.mark.usefixtures("stays_consistent")
def test_requests_in_groups_keep_what_they_acknowledge(app, sign_in, pool, monkeypatch):
    """Every fifth request fails after its INSERT."""
    clients = [sign_in(f"user-{number}") for number in range(8)]
    post = clients[0].create_post("On engines")
    commit = Once.commit

    def commit_or_fail(once, body, headers):
        if int(body["content"]) % 5 == 4:
            raise Conflict
        return commit(once, body, headers)

    monkeypatch.setattr(Once, "commit", commit_or_fail)

    def write(number):
        client, content = clients[number % 8].copy(), {"content": str(number)}
        if number % 2:
            return client.post("/posts", json={"title": "a", **content}).status_code
        return client.post(f"/posts/{post['id']}/comments", json=content).status_code

    statuses = [*pool.map(write, range(400))]
    assert Counter(statuses) == {201: 320, 409: 80}
    with app.app_context():
        texts = fetch_all(sa.union_all(sa.select(Post.content), sa.select(Comment.content)))
    stored = {text for (text,) in texts} - {post["content"]}
    assert stored == {str(number) for number, status in enumerate(statuses) if status == 201}


def test_no_constraint_is_deferred():
    """One that is checked by COMMIT would fail for the whole group."""
    for table in Base.metadata.tables.values():
        for constraint in table.constraints:
            assert not constraint.deferrable, constraint
