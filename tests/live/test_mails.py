"""Mails to members from real servers, with a mail server that fails in each way."""

import random
import signal
from collections import Counter
from os import kill

import pytest

from posting import create_app
from posting.db.engine import close_connections
from posting.db.transactions import unit_of_work
from posting.outbox import store
from tests.live.clients import PASSWORD, scaled, sign_in
from tests.live.conftest import SETTINGS, free_port
from tests.live.load import wait_until
from tests.live.mails import link_in, text_of
from tests.live.sites import Gunicorn, open_listener

# An app that tries soon again what a process that was killed has left.
HURRIED_APP = """
from datetime import timedelta

from posting.outbox import delivery

delivery.LEASE = timedelta(seconds=10)
delivery.POLL_SECONDS = 0.3

from wsgi import app
"""

ANSWERS = {  # what a mail server answers first, and whether the mail arrives nevertheless
    "it has no time": ({"RCPT": "451 Try again later"}, True),
    "it is too busy for the text": ({"DATA": "452 No space"}, True),
    "it refuses the address": ({"RCPT": "550 No such mailbox"}, False),
    "it refuses the text": ({"DATA": "554 5.6.0 Spam"}, False),
}


@pytest.fixture
def start(serve, start_mail_server):
    """Return a function that starts a server with mails."""

    def start(**environment):
        return serve(
            POSTING_SMTP_URL=f"smtp://localhost:{start_mail_server()}",
            POSTING_MAIL_FROM="Elm Street <posting@example.org>",
            POSTING_PUBLIC_URL="http://localhost:1",
            POSTING_LIMIT_LINKS="off",
            **environment,
        )

    return start


@pytest.fixture
def join(mailbox):
    """Return a function that signs up a member with a confirmed address."""

    def join(server, name):
        address = f"{name}@example.net"
        client = sign_in(server.url, name)
        body = {"email": address, "current_password": PASSWORD}
        response = client.put(f"{server.url}/users/me/email", json=body, timeout=20)
        assert response.status_code == 202, response.text
        code = link_in(mailbox.wait_for_one(address), "/confirm#").partition("#")[2]
        url = f"{server.url}/email-confirmations"
        assert client.post(url, json={"code": code}, timeout=20).ok
        change = {"mail": "each"}
        url = f"{server.url}/users/me/notifications"
        assert client.patch(url, json=change, timeout=20).ok
        return client

    return join


def comment_on(server, clients):
    """Let a member comment on a post that others follow. Return the member and the post's URL."""
    ada = sign_in(server.url, "writer")
    body = {"title": "On engines", "content": "Some text."}
    id = ada.post(f"{server.url}/posts", json=body, timeout=20).json()["id"]
    post = f"{server.url}/posts/{id}"
    for client in clients:
        assert client.put(f"{post}/subscription", json={"level": "all"}, timeout=20).ok
    assert ada.post(f"{post}/comments", json={"content": "And cloth?"}, timeout=20).ok
    return ada, post


def about_posts(mailbox):
    return [mail for mail in mailbox.wait_for(0) if mail["Subject"] == "Re: On engines"]


def test_four_workers_send_each_member_one_mail(start, join, mailbox):
    server = start(WEB_CONCURRENCY="4")
    names = [f"member-{number}" for number in range(12)]
    comment_on(server, [join(server, name) for name in names])
    wait_until(lambda: len(about_posts(mailbox)) == len(names))
    receivers = Counter(mail["To"].addresses[0].addr_spec for mail in about_posts(mailbox))
    assert receivers == {f"{name}@example.net": 1 for name in names}
    assert "> And cloth?" in text_of(about_posts(mailbox)[0])


@pytest.fixture
def service(fresh_url):
    """An app on the same database as the servers, in this process."""
    app = create_app({"DATABASE_URL": fresh_url})
    with app.app_context():
        yield app
        close_connections()


@pytest.fixture
def start_machine(start_mail_server, fresh_url, tmp_path):
    """Return a function that starts a machine with two workers, which shares the database."""
    (tmp_path / "hurried_app.py").write_text(HURRIED_APP)
    mail_server = f"smtp://localhost:{start_mail_server()}"
    machines = []

    def start_machine():
        listener = open_listener(("127.0.0.1", free_port()))
        environment = SETTINGS | {
            "POSTING_DATABASE_URL": fresh_url,
            "POSTING_SMTP_URL": mail_server,
            "POSTING_MAIL_FROM": "Elm Street <posting@example.org>",
            "POSTING_MAIL_RATE": "10000/minute",
            "POSTING_PUBLIC_URL": "http://localhost:1",
            "PYTHONPATH": str(tmp_path),
            "WEB_CONCURRENCY": "2",
        }
        machine = Gunicorn(tmp_path, listener, app="hurried_app:app", **environment)
        machine.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        machines.append(machine)
        return machine

    yield start_machine
    for machine in machines:
        machine.stop()
        machine.listener.close()


@pytest.mark.usefixtures("service")
def test_kills_lose_no_mail_and_repeat_at_most_one_each(start_machine, join, mailbox, figure):
    """The workers of two machines share the mails, and one of the four is killed each time."""
    machines, kills = [start_machine(), start_machine()], scaled(20, 100)
    members = [join(machines[0], f"member-{number}") for number in range(10)]
    mailbox.delay = 0.02
    writer, post = comment_on(machines[0], members)
    writer.headers["Connection"] = "close"  # a connection would end with its worker
    for number in range(kills):
        already, body = len(mailbox.messages), {"content": f"Number {number}"}
        assert writer.post(f"{post}/comments", json=body, timeout=20).ok
        wait_until(lambda already=already: len(mailbox.messages) > already)
        machine = random.choice(machines)
        kill(random.choice(machine.workers()), signal.SIGKILL)
        wait_until(lambda machine=machine: len(machine.workers()) == 2)
    wait_until(lambda: store.count_waiting() == 0)
    times = Counter(mail["Message-ID"] for mail in about_posts(mailbox))
    again = sum(times.values()) - len(times)
    figure(f"{kills} workers killed: {len(times)} mails arrived, {again} of them again")
    assert len(times) == len(members) * (kills + 1)
    assert again <= kills


@pytest.fixture
def retry(service):
    """Return a function that lets the servers try at once what has failed."""

    def retry():
        with unit_of_work():
            return store.retry([])

    return retry


@pytest.mark.parametrize("case", ANSWERS)
def test_a_mail_server_that_refuses(start, join, mailbox, retry, case):
    """It refuses for now, and then takes the mail; or it refuses for good."""
    answers, arrives = ANSWERS[case]
    server = start(WEB_CONCURRENCY="1")
    member = join(server, "member")
    mailbox.answers = answers
    comment_on(server, [member])
    wait_until(lambda: mailbox.refused)
    mailbox.answers = {}
    if arrives:
        wait_until(lambda: retry() == 0 and about_posts(mailbox))
        assert len(about_posts(mailbox)) == 1
    else:
        wait_until(lambda: store.count_failed() == 1)
        assert about_posts(mailbox) == []


def test_a_connection_that_breaks_after_the_text_repeats_it_once(start, join, mailbox, retry):
    server = start(WEB_CONCURRENCY="1")
    member = join(server, "member")
    mailbox.drops = True
    comment_on(server, [member])
    wait_until(lambda: about_posts(mailbox))
    mailbox.drops = False
    wait_until(lambda: retry() > 0)
    wait_until(lambda: len(about_posts(mailbox)) == 2)
    one, two = about_posts(mailbox)
    assert one["Message-ID"] == two["Message-ID"]
    wait_until(lambda: store.count_waiting() == 0)
    assert len(about_posts(mailbox)) == 2


def test_a_mail_server_that_is_slow_holds_up_no_request(start, join, mailbox, retry):
    server = start(WEB_CONCURRENCY="1")
    member = join(server, "member")
    mailbox.holds = True
    comment_on(server, [member])  # the outbox waits for the answer to the text now
    wait_until(lambda: any(row.is_taken for row in store.list_outbox(10)))
    for _ in range(20):
        body = {"title": "Meanwhile", "content": "x"}
        assert member.post(f"{server.url}/posts", json=body, timeout=5).status_code == 201
    assert about_posts(mailbox) == []
    mailbox.holds = False
    wait_until(lambda: store.count_waiting() == 0)
    assert len(about_posts(mailbox)) == 1
