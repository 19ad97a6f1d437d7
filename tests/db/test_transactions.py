"""Transactions: the first write begins one, and hashing a password or reading a body does not."""

from contextlib import contextmanager, suppress
from datetime import timedelta
from unittest.mock import Mock

import pytest
import sqlalchemy as sa

from posting.accounts import passwords
from posting.accounts.models import Session, User
from posting.db.base import db
from posting.db.transactions import after_commit, execute, fetch_all, transaction, unit_of_work
from posting.db.types import now
from posting.web import request_body
from tests.conftest import PASSWORD, POSTGRES
from tests.helpers.transactions import is_in_transaction

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
        was_open = is_in_transaction()
        execute(sa.select(User.id).with_for_update())
        return was_open, is_in_transaction(), statements[0].startswith("BEGIN")

    assert in_request("POST", write) == (False, True, True)


def test_a_view_that_reads_cannot_write(in_request):
    def write():
        with pytest.raises(RuntimeError, match="outside of a unit of work"):
            execute(sa.update(User).values(bio="x"))

    in_request("GET", write)


@on_sqlite
def test_an_edit_is_one_transaction(alice, post, statements):
    alice.patch(f"/posts/{post['id']}", json={"title": "b"})
    assert [sql for sql in statements if sql.startswith("BEGIN")] == ["BEGIN IMMEDIATE"]


class TestUnitOfWork:
    @pytest.fixture(autouse=True)
    def context(self, app, alice):
        with app.app_context():
            yield

    @staticmethod
    def bios():
        return {row.bio for row in fetch_all(sa.select(User.bio))}

    def test_it_commits_at_its_end(self):
        with unit_of_work():
            execute(sa.update(User).values(bio="stored"))
            with transaction_elsewhere() as seen:
                assert seen == {None}
        assert self.bios() == {"stored"}
        assert not is_in_transaction()

    def test_an_error_rolls_it_back(self):
        with suppress(KeyError), unit_of_work():
            execute(sa.update(User).values(bio="not stored"))
            raise KeyError
        assert self.bios() == {None}
        assert not is_in_transaction()

    def test_nothing_is_written_outside_of_one(self):
        with pytest.raises(RuntimeError, match="outside of a unit of work"):
            execute(sa.update(User).values(bio="not stored"))
        assert self.bios() == {None}

    def test_one_within_another_is_an_error(self):
        with unit_of_work(), pytest.raises(RuntimeError, match="begun already"), unit_of_work():
            pass

    @pytest.mark.usefixtures("short_lock_timeout")
    def test_a_commit_that_fails_leaves_no_lock(self, alice):
        with failing_commits(), pytest.raises(sa.exc.OperationalError), unit_of_work():
            execute(sa.update(User).values(bio="not stored"))
        assert alice.patch("/users/me", json={"bio": "stored"}).status_code == 200


class TestAfterCommit:
    @pytest.fixture(autouse=True)
    def context(self, app, alice):
        with app.app_context():
            yield

    def test_a_function_is_called_when_the_unit_has_ended(self):
        call = Mock(side_effect=lambda: call.found(is_in_transaction()))
        with unit_of_work():
            execute(sa.update(User).values(bio="x"))
            after_commit(call)
            call.assert_not_called()
        call.found.assert_called_once_with(False)

    def test_a_function_can_begin_a_unit_of_its_own(self):
        def write():
            with unit_of_work():
                execute(sa.update(User).values(bio="later"))

        with unit_of_work():
            after_commit(write)
        assert TestUnitOfWork.bios() == {"later"}

    def test_a_function_is_not_called_after_an_error(self):
        call = Mock()
        with suppress(KeyError), unit_of_work():
            after_commit(call)
            raise KeyError
        call.assert_not_called()

    def test_a_function_is_not_called_if_the_commit_fails(self):
        call = Mock()
        with failing_commits(), suppress(sa.exc.OperationalError), unit_of_work():
            execute(sa.update(User).values(bio="x"))
            after_commit(call)
        call.assert_not_called()

    def test_a_function_is_called_at_once_outside_of_a_unit(self):
        call = Mock()
        after_commit(call)
        call.assert_called_once_with()


@contextmanager
def transaction_elsewhere():
    """Yield the bios that another connection sees."""
    with db.engine.connect() as connection:
        yield set(connection.scalars(sa.select(User.bio)))


@contextmanager
def failing_commits():
    def fail(_connection):
        raise sa.exc.OperationalError("COMMIT", None, Exception("no"))

    sa.event.listen(db.engine, "commit", fail)
    yield
    sa.event.remove(db.engine, "commit", fail)


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
