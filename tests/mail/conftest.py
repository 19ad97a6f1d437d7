"""Fixtures for mails: an app with a mail server, and what it was handed over."""

from email import message_from_bytes
from email.policy import SMTP, default
from re import search

import pytest
import sqlalchemy as sa

from posting.db import transactions
from posting.db.transactions import execute, unit_of_work
from posting.mail.server import Connection
from posting.outbox.delivery import DELIVERERS, PauseError, deliver_now
from posting.testbed import PASSWORD

SETTINGS = {
    "SMTP_URL": "smtp://localhost:2525",
    "MAIL_FROM": "Elm Street <posting@example.org>",
    "PUBLIC_URL": "https://elm.example",
    "NAME": "Elm Street",
}
ADDRESS = "ada@example.net"


class MailServer:
    """A mail server that keeps the mails it is handed, as a mail program reads them."""

    def __init__(self, app):
        self.app = app
        self.mails = []
        self.problems = []
        self.is_down = False

    def open(self):
        assert transactions._unit.get() is None  # nothing is locked while the network waits
        if self.is_down:
            raise PauseError(30, "Connection refused")

    def accept(self, message):
        if self.problems:
            raise self.problems.pop(0)
        data = message.as_bytes(policy=SMTP)
        assert max(map(len, data.split(b"\r\n"))) <= 998
        parsed = message_from_bytes(data, policy=default)
        assert not parsed.defects
        for part in parsed.walk():
            if part.get_content_maintype() == "text":
                assert PASSWORD not in part.get_content()
                assert not search(
                    r"https://elm\.example/[^\s\"<]*\?(?!comment=)", part.get_content()
                )
        self.mails.append(parsed)

    def deliver(self):
        """Send what is due, and return the new mails."""
        before = len(self.mails)
        with self.app.app_context():
            deliver_now()
        return self.mails[before:]

    def resume(self):
        """End the pauses of the delivery, as time does."""
        for deliverer in self.app.extensions[DELIVERERS]:
            deliverer._resumes = deliverer._ordinary_resumes = 0.0

    def deliver_one(self):
        [mail] = self.deliver()
        return mail


def text_of(mail):
    return mail.get_body(("plain",)).get_content().replace("\r\n", "\n")


def html_of(mail):
    return mail.get_body(("html",)).get_content()


def code_of(mail, page):
    """Return the code of the link in a mail to a page."""
    return search(rf"https://elm\.example/{page}#([\w-]+)\n", text_of(mail))[1]


@pytest.fixture
def settings():
    """The settings of the app with mails."""
    return {}


@pytest.fixture
def elm(make_app, settings):
    """An app with a mail server."""
    return make_app(**SETTINGS, **settings)


@pytest.fixture
def post_office(elm, monkeypatch):
    office = MailServer(elm)
    monkeypatch.setattr(Connection, "open", lambda _connection: office.open())
    monkeypatch.setattr(Connection, "send", lambda _connection, message: office.accept(message))
    return office


@pytest.fixture
def join(elm, sign_in, post_office):
    """Return a function that creates an account with a confirmed address, and a client of it."""

    def join(name, address="", **choices):
        client = copy(sign_in(name), elm)
        if address:
            confirm(client, post_office, address)
        if choices:
            response = client.patch("/users/me/notifications", json=choices)
            assert response.status_code == 200, response.text
        return client

    return join


def copy(client, app):
    """Return a client with the same session, of an app with HTTPS."""
    other = app.test_client()
    other.set_cookie("__Host-session", client.session_token)
    other.user = client.user
    return other


def confirm(client, post_office, address):
    """Confirm an address for an account, by the link in its mail."""
    body = {"email": address, "current_password": PASSWORD}
    response = client.put("/users/me/email", json=body)
    assert response.status_code == 202, response.text
    code = code_of(post_office.deliver()[-1], "confirm")
    response = client.post("/email-confirmations", json={"code": code})
    assert response.json == {"email": address}


@pytest.fixture
def query(elm):
    """Return a function that executes a statement and returns its rows."""

    def query(statement, **values):
        with elm.app_context(), unit_of_work():
            result = execute(sa.text(statement), **values)
            return result.all() if result.returns_rows else []

    return query
