"""The form of mails, as a parser reads them."""

from contextlib import suppress
from datetime import UTC, datetime
from email import message_from_bytes
from email.headerregistry import Address
from email.policy import SMTP, default

import pytest

from posting.mail.messages import make_message
from posting.smtp import Sender

SENDER = Sender("Elm Street", "posting", "example.org")
ADA = Address("Ada", "ada", "example.net")
TIME = datetime(2026, 11, 28, 8, 30, tzinfo=UTC)
NAMES = ['Ådä "Q" <x>', "Ada, Countess; of: (L) @ x", "a" * 300, "\N{SNOWMAN}" * 100, ""]
ATTACKS = [
    "Hi\r\nBcc: eve@example.com",
    "Hi\nBcc: eve@example.com",
    "Hi\rBcc: eve@example.com",
    "Hi\x00\x0b\x0c\x1c\x85\u2028\u2029Bcc: eve@example.com",
    "Hi\r\n\r\n<script>",
]


def make(**values):
    ordinary = {"id": "x" * 21, "sender": SENDER, "to": ADA, "subject": "Hi", "text": "Hello\n"}
    message = make_message(**ordinary | {"time": TIME} | values)
    data = message.as_bytes(policy=SMTP)
    assert max(map(len, data.split(b"\r\n"))) <= 998
    assert data.isascii()
    assert b"\n" not in data.replace(b"\r\n", b"")
    parsed = message_from_bytes(data, policy=default)
    assert not parsed.defects
    for header in parsed.values():
        assert not header.defects, header
    return parsed


def content(part):
    return part.get_content().replace("\r\n", "\n")


def test_a_mail_has_the_headers_of_a_service():
    message = make()
    assert message["From"] == "Elm Street <posting@example.org>"
    assert message["To"] == "Ada <ada@example.net>"
    assert message["Date"] == "Sat, 28 Nov 2026 08:30:00 +0000"
    assert message["Message-ID"] == f"<{'x' * 21}@example.org>"
    assert message["Auto-Submitted"] == "auto-generated"
    assert content(message) == "Hello\n"


@pytest.mark.parametrize("name", NAMES)
def test_a_name_arrives_as_it_is(name):
    message = make(to=Address(name, "ada", "example.net"), sender=SENDER._replace(name=name))
    for header, expected in (("To", "ada@example.net"), ("From", "posting@example.org")):
        [address] = message[header].addresses
        # Python's parser keeps the blanks between two encoded words, against RFC 2047.
        expected_name = "".join(each for each in name if each not in '()<>[]:;@\\,." ')[:64]
        assert address.display_name.replace(" ", "")[:50] == expected_name[:50]
        assert address.addr_spec == expected


@pytest.mark.parametrize(
    "subject", [name for name in NAMES if name] + ["ä" * 500, "x " * 400 + "y"]
)
def test_a_subject_arrives_as_it_is(subject):
    assert make(subject=subject)["Subject"] == subject


LONG = ["eve@evil.example, " + '"' * 50, "x" * 75 + "=?utf-8?q?y" + "z" * 70, "a,<b@c>" * 50]


@pytest.mark.parametrize("name", LONG)
def test_a_long_name_is_no_other_address(name):
    message = make(to=Address(name, "ada", "example.net"), sender=SENDER._replace(name=name))
    assert [each.addr_spec for each in message["To"].addresses] == ["ada@example.net"]
    assert [each.addr_spec for each in message["From"].addresses] == ["posting@example.org"]
    assert message.keys() == make().keys()


@pytest.mark.parametrize("text", ATTACKS)
def test_nobody_can_add_a_header(text):
    plain = make()
    for values in ({"subject": text}, {"sender": SENDER._replace(name=text)}):
        message = make(**values)
        assert message.keys() == plain.keys()
        assert content(message) == "Hello\n"
    with suppress(ValueError):  # which has a line break
        message = make(to=Address(text, "ada", "example.net"))
        assert message.keys() == plain.keys()


@pytest.mark.parametrize(
    "text", ["x" * 100_000, "ä" * 5000, "a\n.\nb\n", "\u2028\x0b" * 10, "From x\n", "= =3D\n"]
)
def test_a_text_of_any_form_arrives(text):
    assert content(make(text=text)).rstrip("\n") == text.rstrip("\n")


def test_html_is_an_alternative():
    message = make(html="<p>Hellö</p>\n")
    assert message.get_content_type() == "multipart/alternative"
    plain, html = message.iter_parts()
    assert (content(plain), content(html)) == ("Hello\n", "<p>Hellö</p>\n")
    assert html.get_content_type() == "text/html"
