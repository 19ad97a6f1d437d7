"""An app whose outbox has a channel that notes what it sends."""

import pytest

from posting.db.transactions import unit_of_work
from posting.outbox import store
from posting.outbox.delivery import Deliverer


class Notes:
    """A channel that notes what it sends. It raises the errors of `problems` first, in turn."""

    name = "notes"

    def __init__(self):
        self.sent = []
        self.problems = []
        self.prepared = []
        self.is_moot = False

    def prepare(self, row):
        self.prepared.append(row.kind)
        return None if self.is_moot else lambda: self._send(row)

    def _send(self, row):
        if self.problems:
            raise self.problems.pop(0)
        self.sent.append(row.kind)

    def plan(self):
        pass

    def close(self):
        pass


@pytest.fixture
def notes():
    return Notes()


@pytest.fixture
def context(app):
    with app.app_context():
        yield app


@pytest.fixture
def deliverer(context, notes):
    return Deliverer(context, notes)


@pytest.fixture
def add(context):
    """Return a function that adds something to the outbox, in a transaction of its own."""

    def add(kind="x", channel="notes", **values):
        with unit_of_work():
            store.enqueue(channel, kind, **values)

    return add


@pytest.fixture
def rows(context):
    """Return a function that returns what is in the outbox."""
    return lambda: store.list_outbox(100)
