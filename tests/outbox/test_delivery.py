"""The delivery of what is in the outbox: order, failures, leases and the thread."""

import logging
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from threading import Event, Thread

import pytest
import sqlalchemy as sa

from posting.db.base import db
from posting.db.engine import close_connections
from posting.db.transactions import unit_of_work
from posting.db.types import new_id, now
from posting.outbox import delivery, store
from posting.outbox.delivery import Deliverer, PauseError, PermanentError, TemporaryError
from posting.outbox.models import Outgoing
from tests.helpers.clock import shifted_clock


class TestOrder:
    def test_what_was_added_is_sent_once_in_order(self, deliverer, notes, add, rows):
        for second, kind in enumerate(("one", "two", "three")):
            with shifted_clock(seconds=second - 3):
                add(kind)
        deliverer.deliver_all()
        deliverer.deliver_all()
        assert notes.sent == ["one", "two", "three"]
        assert rows() == []

    def test_what_is_urgent_comes_first(self, deliverer, notes, add):
        add("old")
        with shifted_clock(seconds=-1):
            add("older")
        add("urgent", is_urgent=True)
        deliverer.deliver_all()
        assert notes.sent == ["urgent", "older", "old"]

    def test_a_transaction_that_rolls_back_sends_nothing(self, deliverer, notes):
        with suppress(ZeroDivisionError), unit_of_work():
            store.enqueue("notes", "x")
            raise ZeroDivisionError
        deliverer.deliver_all()
        assert notes.sent == []

    def test_what_is_moot_is_dropped(self, deliverer, notes, add, rows):
        notes.is_moot = True
        add()
        deliverer.deliver_all()
        assert (notes.prepared, notes.sent, rows()) == (["x"], [], [])

    def test_other_channels_are_left_alone(self, deliverer, notes, add, rows):
        add(channel="pigeon")
        deliverer.deliver_all()
        assert notes.prepared == []
        assert [row.attempts for row in rows()] == [0]

    def test_nothing_due_is_one_query_and_no_write(self, deliverer, statements):
        statements.clear()
        deliverer.deliver_all()
        assert [sql.split()[0] for sql in statements] == ["SELECT"]


class TestFailures:
    def test_one_that_may_pass_is_tried_again_later(self, deliverer, notes, add, rows, caplog):
        notes.problems = [TemporaryError("451 Try later"), TemporaryError("Timed out")]
        add()
        deliverer.deliver_all()
        [row] = rows()
        assert (row.attempts, row.error, row.failed_at) == (1, "451 Try later", None)
        assert timedelta(seconds=50) < row.due_at - now() <= timedelta(minutes=1)
        deliverer.deliver_all()
        assert len(notes.prepared) == 1
        with shifted_clock(minutes=2):
            deliverer.deliver_all()
        assert rows()[0].error == "Timed out"
        with shifted_clock(minutes=4):
            deliverer.deliver_all()
        assert notes.sent == []  # the second pause is longer
        with shifted_clock(minutes=8):
            deliverer.deliver_all()
        assert (notes.sent, rows(), caplog.records) == (["x"], [], [])

    def test_it_is_given_up_after_two_days(self, deliverer, notes, add, rows, caplog):
        notes.problems = [TemporaryError("Try later")] * 100
        add()
        for hours in range(72):
            with shifted_clock(hours=hours):
                deliverer.deliver_all()
        [row] = rows()
        assert timedelta(hours=41) < row.failed_at - row.queued_at < timedelta(hours=55)
        assert 10 <= row.attempts <= 16
        assert caplog.messages == [f"notes {row.id} is given up after two days: Try later"]

    def test_one_that_does_not_pass_is_given_up_at_once(self, deliverer, notes, add, rows, caplog):
        notes.problems = [PermanentError("550 No such mailbox")]
        add()
        add("other")
        deliverer.deliver_all()
        assert len(notes.sent) == 1
        [row] = rows()
        assert (row.error, row.attempts) == ("550 No such mailbox", 1)
        assert row.failed_at
        assert caplog.messages == [f"notes {row.id} is given up: 550 No such mailbox"]

    def test_a_mistake_of_ours_holds_up_nothing_else(self, deliverer, notes, add, rows, caplog):
        notes.problems = [ZeroDivisionError("secret")]
        add()
        add()
        deliverer.deliver_all()
        assert len(notes.sent) == 1
        assert [(row.error, row.failed_at) for row in rows()] == [("ZeroDivisionError", None)]
        assert [record.levelno for record in caplog.records] == [logging.ERROR]

    @pytest.mark.parametrize("error", [PermanentError, TemporaryError])
    def test_an_answer_of_any_form_is_noted(self, deliverer, notes, add, rows, error):
        notes.problems = [error("550 a\0b\ud800\r\nc\x1b[31m\u202e" + "x" * 1000)]
        add()
        deliverer.deliver_all()
        [row] = rows()
        assert row.error == ("550 a b c [31m " + "x" * 1000)[:300]

    def test_a_database_error_is_noted_without_its_statement(self, deliverer, notes, add, rows):
        notes.problems = [sa.exc.OperationalError("SELECT secret", {}, Exception("is locked"))]
        add()
        deliverer.deliver_all()
        assert [row.error for row in rows()] == ["is locked"]

    def test_what_was_given_up_is_deleted_after_a_month(self, deliverer, notes, add, rows):
        with shifted_clock(days=-1):
            notes.problems = [PermanentError("No")]
            add("old")
            deliverer.deliver_all()
        db.session.execute(sa.update(Outgoing).values(failed_at=now() - timedelta(days=31)))
        db.session.commit()
        add("new")
        deliverer.deliver_all()
        assert rows() == []

    def test_a_limit_lets_the_channel_rest(self, deliverer, notes, add, rows):
        notes.problems = [PauseError(3600)]
        for number in range(3):
            add(str(number))
        deliverer.deliver_all()
        deliverer.deliver_all()
        assert len(notes.prepared) == 1
        assert {(row.attempts, row.error) for row in rows()} == {(0, None)}
        assert all(row.due_at <= now() for row in rows())  # another process may send them

    def test_a_server_that_takes_nothing_is_left_alone(self, deliverer, notes, add, rows, caplog):
        notes.problems = [PauseError(60, "535 Wrong password"), PauseError(60, "It is gone")]
        add()
        deliverer.deliver_all()
        deliverer.deliver_all()
        assert len(notes.prepared) == 1
        assert caplog.messages == ["notes waits for 60 seconds: 535 Wrong password"]
        deliverer._resumes = 0.0
        with shifted_clock(days=3):
            deliverer.deliver_all()
        assert [(row.error, row.failed_at is None) for row in rows()] == [
            ("It has waited for too long", False)
        ]


class TestLeases:
    def test_a_row_that_is_taken_is_nobody_elses(self, context, add):
        add()
        with unit_of_work():
            first = store.take("notes", timedelta(minutes=10))
        with unit_of_work():
            second = store.take("notes", timedelta(minutes=10))
        assert (first.attempts, second) == (1, None)

    def test_after_the_lease_it_is_sent_again(self, deliverer, notes, add, rows):
        add()
        with unit_of_work():
            store.take("notes", timedelta(minutes=10))  # by a process that is killed
        deliverer.deliver_all()
        assert notes.sent == []
        with shifted_clock(minutes=11):
            deliverer.deliver_all()
        assert (notes.sent, rows()) == (["x"], [])

    def test_what_is_being_sent_is_not_retried(self, context, add, rows):
        add()
        with unit_of_work():
            store.take("notes", timedelta(minutes=10))
        with unit_of_work():
            assert store.retry(()) == 0
        with shifted_clock(minutes=11), unit_of_work():
            assert store.retry(()) == 1

    @pytest.mark.parametrize(
        "change",
        [
            store.finish,
            store.put_back,
            lambda row: store.give_up(row, "No"),
            lambda row: store.postpone(row, "No"),
        ],
    )
    def test_who_was_too_slow_changes_nothing(self, context, add, rows, change):
        add()
        with unit_of_work():
            slow = store.take("notes", timedelta(minutes=-1))
        with unit_of_work():
            store.retry(())  # which begins to count the attempts again
        with unit_of_work():
            store.take("notes", timedelta(minutes=10))
        [before] = rows()
        with unit_of_work():
            change(slow)
        assert rows() == [before]

    def test_many_deliverers_send_each_row_once(self, app, context, add):
        """Sixteen threads, each with a connection of its own on Postgres."""
        sent = []

        class Shared:
            name = "notes"

            def prepare(self, row):
                return lambda: sent.append(row.id)

            def plan(self):
                pass

            def close(self):
                pass

        for _ in range(100):
            add()

        def deliver(_number):
            with app.app_context():
                Deliverer(app, Shared()).deliver_all()

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(deliver, range(8)))
        assert len(sent) == len(set(sent)) == 100

    def test_nothing_is_locked_while_something_is_sent(self, app, context, add):
        """A member writes while the network hangs."""
        is_sending, may_end = Event(), Event()

        class Slow:
            name = "notes"

            def prepare(self, row):
                def send():
                    is_sending.set()
                    assert may_end.wait(30)

                return send

            def plan(self):
                pass

            def close(self):
                pass

        add()

        def deliver():
            with app.app_context():
                Deliverer(app, Slow()).deliver_all()

        thread = Thread(target=deliver)
        thread.start()
        assert is_sending.wait(30)
        add("meanwhile", channel="pigeon")
        with unit_of_work():
            assert store.retry([new_id()]) == 0
        may_end.set()
        thread.join(30)
        assert [row.kind for row in store.list_outbox(10)] == ["meanwhile"]

    def test_a_database_that_is_busy_for_a_moment_does_not_send_it_twice(
        self, deliverer, notes, add, rows, monkeypatch
    ):
        finish, problems = store.finish, [sa.exc.OperationalError("x", {}, Exception("busy"))] * 2

        def busy(row):
            if problems:
                raise problems.pop()
            finish(row)

        monkeypatch.setattr(store, "finish", busy)
        monkeypatch.setattr(delivery, "NOTE_PAUSES", (0, 0, 0))
        add()
        deliverer.deliver_all()
        assert (notes.sent, rows()) == (["x"], [])


def end(deliverer):
    deliverer.stop()
    deliverer.join(30)


class TestThread:
    @pytest.fixture
    def start(self, context, notes, monkeypatch):
        """Start a thread that delivers. It looks by itself after an hour only."""
        started = []

        def start():
            deliverer = Deliverer(context, notes)
            deliverer.start()
            monkeypatch.setitem(context.extensions, store.WAKE, [deliverer.wake])
            started.append(deliverer)

        yield start
        for deliverer in started:
            end(deliverer)

    @pytest.fixture(autouse=True)
    def never_poll(self, monkeypatch):
        monkeypatch.setattr(delivery, "POLL_SECONDS", 3600)

    def wait_until(self, condition):
        for _ in range(3000):
            if condition():
                return
            Event().wait(0.01)
        raise AssertionError("It has not happened.")

    def test_a_commit_wakes_it(self, start, notes, add, rows):
        start()
        for number in range(3):
            add(str(number))
            self.wait_until(lambda sent=number: len(notes.sent) > sent)
        self.wait_until(lambda: rows() == [])

    def test_it_looks_from_time_to_time(self, context, notes, add, monkeypatch):
        monkeypatch.setattr(delivery, "POLL_SECONDS", 0.01)
        deliverer = Deliverer(context, notes)
        deliverer.start()
        add()
        self.wait_until(lambda: notes.sent)
        end(deliverer)

    def test_it_survives_a_database_that_fails(self, start, notes, add, monkeypatch, caplog):
        has_due, problems = store.has_due, [sa.exc.OperationalError("x", {}, Exception("gone"))]

        def fail(channel):
            if problems:
                raise problems.pop()
            return has_due(channel)

        monkeypatch.setattr(store, "has_due", fail)
        start()
        self.wait_until(lambda: caplog.messages)
        assert caplog.messages == ["The outbox waits for the database (gone)."]
        add()
        self.wait_until(lambda: notes.sent)

    def test_a_slow_channel_holds_up_no_other(self, make_app, notes, monkeypatch):
        is_sending, may_end = Event(), Event()

        class Slow(type(notes)):
            name = "slow"

            def _send(self, row):
                is_sending.set()
                assert may_end.wait(30)

        monkeypatch.setattr("posting.app.make_channels", lambda _app: [Slow(), notes])
        app = make_app()
        delivery.start(app)
        with app.app_context():
            with unit_of_work():
                store.enqueue("slow", "x")
            assert is_sending.wait(30)
            with unit_of_work():
                store.enqueue("notes", "y")
            self.wait_until(lambda: notes.sent == ["y"])
            may_end.set()
            close_connections()

    def test_it_ends_with_the_connections(self, make_app, notes, monkeypatch):
        monkeypatch.setattr("posting.app.make_channels", lambda _app: [notes])
        app = make_app()
        delivery.start(app)
        [deliverer] = app.extensions[delivery.DELIVERERS]
        thread = deliverer._thread
        assert thread.is_alive()
        with app.app_context():
            close_connections()
        assert not thread.is_alive()
