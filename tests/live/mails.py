"""A mail server in the process of a test."""

import asyncio
import re
import time
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from typing import Any


class Mailbox:  # with the names that aiosmtpd calls
    """What a mail server does: it keeps what it gets, and answers as it is told."""

    def __init__(self):
        self.messages = []
        self.envelopes = []
        self.sessions = []
        self.answers = {}  # by the command
        self.refused = 0  # how often it has answered as it was told
        self.drops = False
        self.delay = 0.0  # seconds from the text of a mail to the answer
        self.holds = False  # while it is true, no answer to the text of a mail comes

    async def handle_RCPT(self, server, session, envelope, address, options):  # noqa: N802
        if answer := self.answers.get("RCPT"):
            self.refused += 1
            return answer
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_MAIL(self, server, session, envelope, address, options):  # noqa: N802
        envelope.mail_from = address
        return self.answers.get("MAIL", "250 OK")

    async def handle_DATA(self, server, session, envelope):  # noqa: N802
        if answer := self.answers.get("DATA"):
            self.refused += 1
            return answer
        while self.holds:
            await asyncio.sleep(0.05)
        self.messages.append(envelope.content)
        self.envelopes.append((envelope.mail_from, [*envelope.rcpt_tos]))
        self.sessions.append(session)
        await asyncio.sleep(self.delay)
        if self.drops:
            server.transport.abort()
        return "250 OK"

    def wait_for_one(self, address: str) -> EmailMessage:
        """Return the mail that has arrived for an address, once there is one."""
        for number in range(1, 1000):
            for mail in self.wait_for(number):
                if address in str(mail["To"]):
                    return mail
        raise AssertionError(f"Nothing has arrived for {address}")

    def wait_for(self, number: int) -> list[EmailMessage]:
        """Return the mails that have arrived, once there are at least as many."""
        for _ in range(1200):
            if len(self.messages) >= number:
                break
            time.sleep(0.05)
        assert len(self.messages) >= number, f"{len(self.messages)} mails have arrived"
        return [message_from_bytes(content, policy=default) for content in self.messages]


def text_of(mail: EmailMessage) -> str:
    """Return the plain text of a mail."""
    text: Any = mail.get_body(("plain",)).get_content()
    return text.replace("\r\n", "\n")


def link_in(mail: EmailMessage, path: str) -> str:
    """Return the link to a page in a mail."""
    return re.search(rf"^https?://\S+{path}\S*$", text_of(mail), re.MULTILINE)[0]
