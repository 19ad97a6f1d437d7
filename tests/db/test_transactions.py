"""Transactions: the first write begins one, and hashing a password or reading a body does not."""

from datetime import timedelta
from unittest.mock import Mock

import pytest
import sqlalchemy as sa

from posting.accounts import passwords
from posting.accounts.models import Session, User
from posting.db.access import database_access, only_reads
from posting.db.base import db
from posting.db.transactions import (
    after_commit,
    begin,
    commit,
    execute,
    fetch_all,
    is_in_transaction,
    rollback,
    transaction,
)
from posting.db.types import now
from posting.web import request_body
from tests.conftest import PASSWORD, POSTGRES

on_sqlite = pytest.mark.skipif(bool(POSTGRES), reason="is for SQLite")


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_reading_begins_nothing(in_request, statements, method):
    def read():
        statements.clear()  # those of the start
        fetch_all(sa.select(User.id))
        assert not is_in_transaction()
        return list(statements)

    [statement] = in_request(method, read)
    assert statement.startswith("SELECT")


def test_the_first_write_begins(in_request, statements):
    def write():
        statements.clear()
        execute(sa.select(User.id).with_for_update())
        return is_in_transaction(), statements[0].startswith("BEGIN")

    assert in_request("POST", write) == (True, True)


def test_code_that_only_reads_cannot_write(in_request):
    def write():
        with pytest.raises(RuntimeError, match="only reads"):
            execute(sa.update(User).values(bio="x"))

    in_request("GET", write)


def test_code_only_reads_until_the_end_of_its_block():
    assert not only_reads()
    with database_access(writes=False):
        assert only_reads()
        with database_access(writes=True):
            assert not only_reads()
        with pytest.raises(KeyError), database_access(writes=False):
            raise KeyError
        assert only_reads()
    assert not only_reads()


@on_sqlite
def test_an_edit_is_one_transaction(alice, post, statements):
    alice.patch(f"/posts/{post['id']}", json={"title": "b"})
    assert [sql for sql in statements if sql.startswith("BEGIN")] == ["BEGIN IMMEDIATE"]


class TestAfterCommit:
    @pytest.fixture
    def call(self, app):
        """A function that is to be called when a transaction in an app context is committed."""
        with app.app_context():
            begin()
            call = Mock()
            after_commit(call)
            yield call

    def test_a_function_is_called_once_when_the_transaction_has_been_committed(self, call):
        call.side_effect = lambda: call.found(is_in_transaction())
        call.assert_not_called()
        commit()
        commit()
        call.found.assert_called_once_with(False)

    def test_a_function_is_not_called_after_a_rollback(self, call):
        rollback()
        begin()
        commit()
        call.assert_not_called()

    def test_a_function_is_not_called_if_the_commit_fails(self, app, call):
        def fail(_connection):
            raise sa.exc.OperationalError("COMMIT", {}, Exception("no"))

        sa.event.listen(db.engine, "commit", fail)
        with pytest.raises(sa.exc.OperationalError):
            commit()
        sa.event.remove(db.engine, "commit", fail)
        begin()
        commit()
        call.assert_not_called()

    def test_there_must_be_a_transaction(self, app):
        with app.app_context(), pytest.raises(RuntimeError, match="No transaction"):
            after_commit(Mock())


@pytest.mark.usefixtures("short_lock_timeout")
def test_a_commit_that_fails_leaves_no_lock(app, alice):
    def fail(_connection):
        raise sa.exc.OperationalError("COMMIT", None, Exception("no"))

    with app.app_context():
        sa.event.listen(db.engine, "commit", fail)
        execute(sa.update(User).values(bio="not stored"))
        with pytest.raises(sa.exc.OperationalError):
            commit()
        sa.event.remove(db.engine, "commit", fail)
    assert alice.patch("/users/me", json={"bio": "stored"}).status_code == 200


class TestNoLockIsHeld:
    @pytest.fixture
    def write_elsewhere(self, app):
        def write():
            with transaction() as connection:
                connection.execute(sa.update(User).values(bio="written meanwhile"))

        return write

    def test_while_a_password_is_hashed(self, app, alice, write_elsewhere, monkeypatch):
        for name in ("generate_password_hash", "check_password_hash"):
            real = getattr(passwords, name)

            def slow(*arguments, real=real):
                write_elsewhere()
                return real(*arguments)

            monkeypatch.setattr(passwords, name, slow)
        credentials = {"username": "alice", "password": PASSWORD}
        assert app.test_client().post("/signin", json=credentials).status_code == 200
        change = {"password": "another walk by the sea", "current_password": PASSWORD}
        assert alice.patch(f"/users/{alice.user['id']}", json=change).status_code == 200
        assert alice.get("/users/me").json["bio"] == "written meanwhile"

    @pytest.fixture
    def meanwhile(self, monkeypatch):
        """Call a function while a body arrives."""

        def meanwhile(function):
            def slow(data):
                function()
                return parse(data)

            parse = request_body.parse_json
            monkeypatch.setattr(request_body, "parse_json", slow)

        return meanwhile

    def test_while_a_body_arrives(self, alice, post, write_elsewhere, meanwhile):
        meanwhile(write_elsewhere)
        assert alice.patch(f"/posts/{post['id']}", json={"title": "b"}).status_code == 200

    @pytest.mark.usefixtures("short_lock_timeout")
    def test_after_last_seen_at_could_not_be_updated(
        self, app, alice, post, write_elsewhere, meanwhile
    ):
        with app.app_context(), transaction() as writer:
            writer.execute(sa.update(Session).values(last_seen_at=now() - timedelta(hours=2)))
        with app.app_context(), transaction() as writer:
            writer.execute(sa.update(Session).values(user_agent="locked"))
            meanwhile(lambda: (writer.close(), write_elsewhere()))
            assert alice.patch(f"/posts/{post['id']}", json={"title": "b"}).status_code == 200
