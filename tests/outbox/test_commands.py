"""`flask outbox`, the metrics, and the deletion of an account."""

from datetime import timedelta

import pytest
import sqlalchemy as sa

from posting.db.base import db
from posting.db.transactions import unit_of_work
from posting.db.types import new_id
from posting.outbox import store
from posting.outbox.delivery import PermanentError, TemporaryError
from posting.outbox.models import Outgoing
from tests.helpers.clock import shifted_clock


@pytest.fixture
def failed(deliverer, notes, add, rows):
    """One row that was given up, and one that is tried again."""
    notes.problems = [PermanentError("550 No such mailbox"), TemporaryError("451 Later")]
    add("first", user_id="u" * 21)
    with shifted_clock(seconds=1):
        add("second")
        deliverer.deliver_all()
    return rows()


def test_the_list_says_what_failed_and_what_waits(flask, failed):
    first, second = flask("outbox", "list")[1].splitlines()
    assert first.startswith(f"{failed[0].id} ")
    assert "notes first uuuuuuuuuuuuuuuuuuuuu given up " in first
    assert first.endswith(": 550 No such mailbox")
    assert "notes second - attempt 2 at " in second
    assert second.endswith(": 451 Later")
    assert flask("outbox", "list", "--limit", "1")[1].splitlines() == [first]


def test_the_list_says_what_is_being_sent(flask, add):
    add()
    assert flask("outbox", "list")[1].endswith(" waits\n")
    with unit_of_work():
        store.take("notes", timedelta(minutes=10))
    assert flask("outbox", "list")[1].endswith(" being sent\n")


def test_all_or_some_are_tried_again(flask, failed, deliverer, notes):
    assert flask("outbox", "retry", failed[0].id) == (0, "1 item to be sent now.\n")
    deliverer.deliver_all()
    assert notes.sent == ["first"]
    assert flask("outbox", "retry") == (0, "1 item to be sent now.\n")
    deliverer.deliver_all()
    assert notes.sent == ["first", "second"]


def test_what_was_given_up_is_dropped(flask, failed, rows):
    assert flask("outbox", "drop") == (0, "Deleted 1 item.\n")
    assert [row.kind for row in rows()] == ["second"]
    assert flask("outbox", "drop", failed[1].id) == (0, "Deleted 1 item.\n")
    assert rows() == []


@pytest.mark.parametrize("command", ["retry", "drop"])
def test_an_unknown_id_changes_nothing(flask, failed, rows, command):
    code, output = flask("outbox", command, failed[0].id, new_id())
    assert code == 1
    assert "Not all of these IDs are in the outbox, or one is being sent." in output
    assert rows() == failed


def test_metrics_count_what_waits_and_what_failed(make_app, failed):
    text = make_app(METRICS="on").test_client().get("/metrics").text
    assert "posting_outbox_waiting 1.0" in text
    assert "posting_outbox_failed 1.0" in text


def test_what_is_to_be_sent_goes_with_the_account(app, alice, bob):
    with app.app_context():
        for client in (alice, bob):
            with unit_of_work():
                store.enqueue("notes", "x", user_id=client.user["id"])
        assert alice.delete("/users/me").status_code == 204
        assert [*db.session.scalars(sa.select(Outgoing.user_id))] == [bob.user["id"]]
