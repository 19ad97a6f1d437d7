"""The outbox with real workers: each item once, while they share the work, stop and are killed."""

import random
import signal
from collections import Counter
from os import kill

import pytest

from posting import create_app
from posting.db.engine import close_connections
from posting.db.transactions import unit_of_work
from posting.outbox import store
from tests.live.clients import scaled
from tests.live.load import wait_until
from tests.live.sites import Gunicorn, open_listener

# An app with a channel that appends the ids of what it sends to a file, which takes 20 ms each.
APP = """
import os, time
from datetime import timedelta

import posting.app
from posting.outbox import delivery

delivery.LEASE = timedelta(seconds=10)
delivery.POLL_SECONDS = 0.3


class File:
    name = "file"

    def prepare(self, row):
        def send():
            time.sleep(0.02)
            sent = os.open({path!r}, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            os.write(sent, f"{{row.id}} {{os.getpid()}}\\n".encode())
            os.close(sent)

        return send

    def plan(self):
        pass

    def close(self):
        pass


posting.app.make_channels = lambda app: [File()]
from wsgi import app
"""


@pytest.fixture
def service(fresh_url):
    """An app on the same database as the workers, in this process."""
    app = create_app({"DATABASE_URL": fresh_url})
    with app.app_context():
        yield app
        close_connections()


@pytest.fixture
def start(fresh_url, tmp_path):
    """Start machines, each with two workers, that share a database."""
    machines = []
    (tmp_path / "outbox_app.py").write_text(APP.format(path=str(tmp_path / "sent")))
    environment = {"POSTING_DATABASE_URL": fresh_url, "PYTHONPATH": str(tmp_path)}

    def start(number):
        folder = tmp_path / f"machine-{number}"
        folder.mkdir()
        listener = open_listener(folder / "sock")
        machine = Gunicorn(
            folder, listener, app="outbox_app:app", WEB_CONCURRENCY="2", **environment
        )
        machines.append((machine, listener))
        wait_until(machine.workers)
        return machine

    yield start
    for machine, listener in machines:
        machine.stop()
        listener.close()


@pytest.fixture
def sent(tmp_path):
    """Return a function that counts what was sent, by id, and one that counts it by process."""

    def lines():
        file = tmp_path / "sent"
        return [line.split() for line in file.read_text().splitlines()] if file.exists() else []

    return lines


def add(number):
    for _ in range(number):
        with unit_of_work():
            store.enqueue("file", "x")


def test_four_workers_of_two_machines_send_each_item_once(service, start, sent):
    for number in range(2):
        start(number)
    add(200)
    wait_until(lambda: store.count_waiting() == 0)
    assert set(Counter(id for id, _ in sent()).values()) == {1}
    assert len(sent()) == 200
    assert len({process for _, process in sent()}) == 4


def test_what_was_added_before_is_sent_after_a_start(service, start, sent):
    add(5)
    start(0)
    wait_until(lambda: store.count_waiting() == 0)
    assert len(sent()) == 5


def test_kills_lose_nothing_and_repeat_at_most_one_each(service, start, sent, figure):
    machine, kills = start(0), scaled(20, 100)
    number = 0
    for _ in range(kills):
        add(20)
        number += 20
        already = len(sent())
        wait_until(lambda before=already: len(sent()) > before)
        kill(random.choice(machine.workers()), signal.SIGKILL)
        wait_until(lambda: len(machine.workers()) == 2)
    wait_until(lambda: store.count_waiting() == 0)
    times = Counter(id for id, _ in sent())
    again = sum(times.values()) - len(times)
    figure(f"{kills} workers killed: {len(times)} of {number} items sent, {again} of them again")
    assert len(times) == number
    assert again <= kills


def test_a_stop_finishes_what_is_being_sent(service, start, sent):
    machine = start(0)
    add(50)
    wait_until(lambda: len(sent()) > 3)
    machine.stop()
    waiting = store.count_waiting()
    assert waiting > 0
    assert waiting + len({id for id, _ in sent()}) == 50
    assert len(sent()) == 50 - waiting  # none of them twice
    assert not any(row.is_taken for row in store.list_outbox(50))
