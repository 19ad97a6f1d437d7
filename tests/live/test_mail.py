"""Mails with a real mail server that accepts, delays, refuses, hangs and breaks off."""

import socket
import ssl
import subprocess
import tempfile
import time
from contextlib import contextmanager, suppress
from email import message_from_string
from email.headerregistry import Address
from email.policy import default
from pathlib import Path
from threading import Thread

import pytest
from aiosmtpd.smtp import AuthResult

from posting.db.types import now
from posting.mail import server as mail_server
from posting.mail.messages import make_message
from posting.mail.server import AddressError, Connection
from posting.outbox.delivery import PauseError, PermanentError, TemporaryError
from posting.smtp import Sender, parse_smtp_url
from tests.helpers.doctor import GOOD, examine
from tests.live.conftest import free_port
from tests.live.load import wait_until
from tests.live.sites import require_programs

ADA = Address("Ada", "ada", "example.net")
PASSWORD = "p@ss:w/rd"
ENCODED = "p%40ss%3Aw%2Frd"


@pytest.fixture
def certificate(https_certificate):
    """A certificate that nobody has signed, for localhost and 127.0.0.2."""
    key, file = https_certificate
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file, key)
    return context


@pytest.fixture
def trusted(https_certificate, monkeypatch):
    """Let the machine trust the certificate."""
    monkeypatch.setenv("SSL_CERT_FILE", str(https_certificate[1]))


@pytest.fixture
def connect():
    """Return a function that returns a connection, which is closed at the end."""
    opened = []

    def connect(url):
        opened.append(Connection(parse_smtp_url(url), "community.example"))
        return opened[-1]

    yield connect
    for connection in opened:
        connection.close()


@pytest.fixture
def connection(start_mail_server, connect):
    return connect(f"smtp://localhost:{start_mail_server()}")


def mail(text="Hello", to=ADA):
    return make_message(
        id="m" * 21,
        sender=Sender("Elm Street", "posting", "example.org"),
        to=to,
        subject="Hi",
        text=text,
        time=now(),
    )


def authenticator(_server, _session, _envelope, _mechanism, data):
    is_right = (data.login, data.password) == (b"posting", PASSWORD.encode())
    return AuthResult(success=is_right, handled=is_right)


def test_mails_arrive_over_one_connection(start_mail_server, connect, mailbox):
    connection = connect(f"smtp://localhost:{start_mail_server()}")
    for number in range(3):
        connection.send(mail(f"Number {number}\n.\nEnd"))
    assert [b"Number 2\r\n.\r\nEnd" in message for message in mailbox.messages] == [
        False,
        False,
        True,
    ]
    assert mailbox.envelopes == [("posting@example.org", ["ada@example.net"])] * 3
    assert len({session.peer for session in mailbox.sessions}) == 1
    assert mailbox.sessions[0].host_name == "community.example"


def test_a_connection_that_was_closed_meanwhile_is_opened_again(
    start_mail_server, connect, mailbox
):
    connection = connect(f"smtp://localhost:{start_mail_server()}")
    connection.send(mail())
    connection._smtp.sock.shutdown(socket.SHUT_RDWR)
    with pytest.raises(TemporaryError):
        connection.send(mail())
    connection.send(mail())
    assert len(mailbox.messages) == 2


@pytest.mark.parametrize(
    ("command", "answer", "error"),
    [
        ("RCPT", "550 No such mailbox", PermanentError),
        ("RCPT", "451 Greylisted, try later", TemporaryError),
        ("RCPT", "554 5.7.1 Relay access denied", TemporaryError),
        ("RCPT", "530 Sign in first", TemporaryError),
        ("MAIL", "552 5.3.4 Too large", PermanentError),
        ("DATA", "554 This is spam", PermanentError),
        ("DATA", "452 No room now", TemporaryError),
        ("MAIL", "553 This sender may not send", PauseError),  # which concerns all mails
        ("MAIL", "421 Busy", TemporaryError),
    ],
)
def test_a_refusal_is_for_good_only_if_it_concerns_this_mail(
    connection, mailbox, command, answer, error
):
    mailbox.answers[command] = answer
    with pytest.raises(error, match=f"{answer}$"):
        connection.send(mail())
    mailbox.answers.clear()
    connection.send(mail())
    assert len(mailbox.messages) == 1


def test_a_connection_that_breaks_off_after_the_mail_is_tried_again(
    start_mail_server, connect, mailbox
):
    connection = connect(f"smtp://localhost:{start_mail_server()}")
    message = mail()
    mailbox.drops = True
    with pytest.raises(TemporaryError):
        connection.send(message)
    mailbox.drops = False
    connection.send(message)
    first, second = mailbox.messages
    assert first.count(b"Message-ID: <mmmmmmmmmmmmmmmmmmmmm@example.org>") == 1
    assert second == first  # a mail program shows it once


@pytest.mark.parametrize(
    "answer",
    [
        *("550 5.7.1 Relay not permitted", "550 #5.7.1 No", "550 5.1.8 Bad sender"),
        *("553 5.1.7 Bad sender", "451 4.7.1 Later"),
    ],
)
def test_what_is_about_this_service_may_pass(connection, mailbox, answer):
    mailbox.answers["RCPT"] = answer
    with pytest.raises(TemporaryError):
        connection.send(mail())


def test_an_address_is_at_fault_only_if_others_are_accepted(connection, mailbox):
    """Without an enhanced code, the server may mean the machine from which the mails come."""
    mailbox.answers["RCPT"] = "550 Administrative prohibition"
    with pytest.raises(PermanentError) as error:
        connection.send(mail())
    assert not isinstance(error.value, AddressError)
    mailbox.answers.clear()
    connection.send(mail())
    mailbox.answers["RCPT"] = "550 No such mailbox"
    with pytest.raises(AddressError):
        connection.send(mail())


def test_an_answer_is_noted_without_the_address(connection, mailbox):
    mailbox.answers["RCPT"] = "550 5.1.1 <ada@example.net>: Recipient unknown"
    with pytest.raises(PermanentError, match=r"^550 5\.1\.1 …: Recipient unknown$"):
        connection.send(mail())


def test_the_pause_after_a_failure_to_connect_grows(connect):
    connection, pauses = connect("smtp://127.0.0.1:9"), []
    for _ in range(6):
        with pytest.raises(PauseError) as error:
            connection.send(mail())
        pauses.append(error.value.seconds)
    assert pauses == [30, 60, 120, 240, 300, 300]


def test_a_server_that_hangs_is_left_alone_in_time(connect, monkeypatch):
    monkeypatch.setattr(mail_server, "TIMEOUT", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        connection = connect(f"smtp://127.0.0.1:{listener.getsockname()[1]}")
        with pytest.raises(PauseError, match="timed out"):
            connection.send(mail())


@contextmanager
def answering(answer):
    """Yield the port of a server that sends what an iterator yields to each client."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve():
            with suppress(OSError):
                while True:
                    client, _ = listener.accept()
                    with client, suppress(OSError):
                        for part in answer():
                            client.sendall(part)

        Thread(target=serve, daemon=True).start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)


def test_an_answer_that_comes_byte_by_byte_is_broken_off(connect, monkeypatch):
    monkeypatch.setattr(mail_server, "REPLY_SECONDS", 0.5)

    def trickle():
        while True:
            time.sleep(0.05)
            yield b"2"

    with answering(trickle) as port, pytest.raises(PauseError):
        connect(f"smtp://127.0.0.1:{port}").send(mail())


def test_an_answer_without_end_is_broken_off(connect):
    def flood():
        while True:
            yield b"220-Hello\r\n" * 1000

    with answering(flood) as port, pytest.raises(PauseError, match="Its answer is too long"):
        connect(f"smtp://127.0.0.1:{port}").send(mail())


def test_a_server_that_is_not_there_is_a_failure_that_may_pass(connect):
    with pytest.raises(PauseError, match="port 9: Connection refused"):
        connect("smtp://127.0.0.1:9").send(mail())
    with pytest.raises(PauseError, match=r"nowhere\.invalid, port 25: "):
        connect("smtp://nowhere.invalid").send(mail())


def test_what_is_no_mail_server_is_a_failure_that_may_pass(connect):
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer():
            client, _ = listener.accept()
            with client:
                client.sendall(b"HTTP/1.1 400 Bad Request\r\n" * 10)

        thread = Thread(target=answer)
        thread.start()
        with pytest.raises(PauseError):
            connect(f"smtp://127.0.0.1:{listener.getsockname()[1]}").send(mail())
        thread.join()


class TestEncryption:
    def test_tls_from_the_beginning(self, start_mail_server, connect, mailbox, certificate):
        port = start_mail_server(ssl_context=certificate)
        connect(f"smtps://localhost:{port}").send(mail())
        assert len(mailbox.messages) == 1
        with pytest.raises(PauseError, match="It does not begin with TLS"):
            connect(f"smtps://localhost:{start_mail_server()}").send(mail())
        assert len(mailbox.messages) == 1

    def test_starttls_where_it_is_offered(self, start_mail_server, connect, mailbox, certificate):
        port = start_mail_server(tls_context=certificate)
        connect(f"smtp://localhost:{port}").send(mail())
        assert mailbox.sessions[0].ssl

    @pytest.mark.parametrize("url", ["smtp://127.0.0.2:{}", "smtp://127.0.0.2:{}?tls=required"])
    def test_the_certificate_of_another_machine_is_checked(
        self, start_mail_server, connect, mailbox, certificate, url
    ):
        """127.0.0.2 stands for another machine."""
        port = start_mail_server(tls_context=certificate)
        with pytest.raises(PauseError, match="certificate cannot be checked"):
            connect(url.format(port)).send(mail())
        assert mailbox.messages == []

    @pytest.mark.usefixtures("trusted")
    def test_a_certificate_that_the_machine_trusts_passes(
        self, start_mail_server, connect, mailbox, certificate
    ):
        port = start_mail_server(tls_context=certificate)
        encrypted = start_mail_server(ssl_context=certificate)
        connect(f"smtp://127.0.0.2:{port}?tls=required").send(mail())
        connect(f"smtps://127.0.0.2:{encrypted}").send(mail())
        for url in (f"smtp://127.0.0.3:{port}?tls=required", f"smtps://127.0.0.3:{encrypted}"):
            with pytest.raises(PauseError, match="certificate cannot be checked"):
                connect(url).send(mail())
        assert len(mailbox.messages) == 2

    def test_without_encryption_nothing_is_sent_if_it_is_required(
        self, start_mail_server, connect, mailbox
    ):
        with pytest.raises(PauseError, match="It offers no encryption"):
            connect(f"smtp://localhost:{start_mail_server()}?tls=required").send(mail())
        assert mailbox.messages == []

    def test_a_password_opens_the_server(self, start_mail_server, connect, mailbox, certificate):
        port = start_mail_server(
            tls_context=certificate,
            authenticator=authenticator,
            auth_required=True,
            require_starttls=True,
        )
        connect(f"smtp://posting:{ENCODED}@localhost:{port}").send(mail())
        assert mailbox.sessions[0].authenticated
        with pytest.raises(PauseError, match="535 ") as error:
            connect(f"smtp://posting:wrong@localhost:{port}").send(mail())
        assert "wrong" not in str(error.value)

    @pytest.mark.parametrize("url", ["smtp://a:b@localhost:{}", "smtp://a:p%C3%A4@localhost:{}"])
    def test_without_signing_in_nothing_is_sent(self, start_mail_server, connect, mailbox, url):
        """The server offers no sign-in, or does not take the password."""
        authentication = {"authenticator": authenticator, "auth_require_tls": False}
        port = start_mail_server(**(authentication if "%" in url else {}))
        connection = connect(url.format(port))
        for _ in range(2):
            with pytest.raises(PauseError):
                connection.send(mail())
        assert mailbox.messages == []

    def test_a_password_is_not_sent_to_another_machine_without_encryption(
        self, monkeypatch, start_mail_server, connect, mailbox
    ):
        monkeypatch.setattr("posting.smtp.LOOPBACK", set())
        port = start_mail_server(authenticator=authenticator, auth_require_tls=False)
        with pytest.raises(PauseError, match="It offers no encryption"):
            connect(f"smtp://posting:{ENCODED}@127.0.0.1:{port}").send(mail())
        assert mailbox.sessions == []


class TestDoctor:
    def test_it_asks_the_server_and_sends_nothing(self, make_app, start_mail_server, mailbox):
        url = f"smtp://localhost:{start_mail_server()}"
        app = make_app(**GOOD, SMTP_URL=url, MAIL_FROM="posting@example.org")
        [finding] = [each for each in examine(app) if "mail server" in each.message]
        assert finding.level == "ok"
        assert mailbox.messages == []

    def test_a_server_that_does_not_answer_is_a_failure(self, make_app):
        url = f"smtp://posting:{ENCODED}@127.0.0.1:9"
        app = make_app(**GOOD, SMTP_URL=url, MAIL_FROM="posting@example.org")
        [finding] = [each for each in examine(app) if "mail server" in each.message]
        assert (finding.level, finding.message) == (
            "failure",
            "The mail server cannot be used (127.0.0.1, port 9: Connection refused)",
        )

    def test_a_test_mail_arrives(self, make_app, flask, start_mail_server, mailbox):
        url = f"smtp://localhost:{start_mail_server()}"
        app = make_app(
            **GOOD, SMTP_URL=url, MAIL_FROM="Elm Street <posting@example.org>", NAME="Elm"
        )
        code, output = flask("doctor", "--to", "ada@example.net", on=app)
        assert code == 0
        assert "took a mail to ada@example.net" in output
        [message] = mailbox.messages
        assert b"From: Elm Street <posting@example.org>\r\n" in message
        assert b"Subject: A test mail from Elm\r\n" in message
        assert b"https://example.org" in message

    def test_a_test_mail_that_is_refused_says_why(
        self, make_app, flask, start_mail_server, mailbox
    ):
        mailbox.answers["RCPT"] = "550 No such mailbox"
        url = f"smtp://localhost:{start_mail_server()}"
        app = make_app(**GOOD, SMTP_URL=url, MAIL_FROM="posting@example.org")
        code, output = flask("doctor", "--to", "ada@example.net", on=app)
        assert code == 1
        assert (
            "Error: The mail was not sent (550 No such mailbox). Check POSTING_SMTP_URL" in output
        )

    def test_without_a_server_no_mail_is_sent(self, flask):
        code, output = flask("doctor", "--to", "ada@example.net")
        assert code == 1
        assert "set POSTING_SMTP_URL and POSTING_MAIL_FROM" in output
        assert flask("doctor", "--to", "ada")[0] == 2


def test_an_ip_address_has_brackets_in_the_greeting(start_mail_server, mailbox):
    for host, name in (("127.0.0.1", "[127.0.0.1]"), ("::1", "[IPv6:::1]")):
        connection = Connection(parse_smtp_url(f"smtp://localhost:{start_mail_server()}"), host)
        connection.send(mail())
        connection.close()
        assert mailbox.sessions[-1].host_name == name


def listens(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_opensmtpd_takes_the_mails(connect):
    """A mail server as operators have it, with its own queue."""
    require_programs("smtpd")
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        file, config = Path(folder, "mails"), Path(folder, "smtpd.conf")
        Path(folder).chmod(0o755)
        file.touch()
        file.chmod(0o666)  # another user writes it
        config.write_text(
            f"""listen on 127.0.0.1 port {port}
table everybody {{ "@" = "nobody" }}
action "keep" mda "/bin/sh -c 'cat >> {file}'" virtual <everybody>
match from any for domain "example.net" action "keep"
"""
        )
        process = subprocess.Popen(["smtpd", "-d", "-f", config], stderr=subprocess.DEVNULL)
        try:
            wait_until(lambda: listens(port))
            connection = connect(f"smtp://127.0.0.1:{port}")
            connection.send(mail("Hello\n.\nEnd"))
            with pytest.raises(AddressError, match="550"):
                connection.send(mail(to=Address("Ada", "ada", "elsewhere.example")))
            wait_until(lambda: "\n.\nEnd" in file.read_text())
        finally:
            process.terminate()
            process.wait(20)
        parsed = message_from_string(file.read_text(), policy=default)
    assert not parsed.defects
    assert parsed["To"] == "Ada <ada@example.net>"
