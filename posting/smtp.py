"""The settings of mails: the mail server, and the sender."""

import re
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

# An address as mail servers take it everywhere: atoms and dots in ASCII (RFC 5322, section 3.4.1).
ATOM = r"[A-Za-z0-9!#$%&'*+/^_`{|}~-]+"  # without `=` and `?`, which could begin an encoded word
LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
ADDRESS = re.compile(rf"(?=[^@]{{1,64}}@)(?=.{{1,254}}\Z){ATOM}(?:\.{ATOM})*@{LABEL}(?:\.{LABEL})*")
LOOPBACK = {"localhost", "127.0.0.1", "::1"}
EXAMPLE = "smtps://user:password@mail.example.org"


@dataclass(frozen=True)
class MailServer:
    """Where and how mails are handed over."""

    host: str
    port: int
    begins_encrypted: bool  # with TLS, otherwise with STARTTLS where it is offered
    must_encrypt: bool
    user: str | None = None
    password: str | None = field(default=None, repr=False)

    @property
    def is_local(self) -> bool:
        return self.host in LOOPBACK

    @property
    def name(self) -> str:
        """The server in messages, without a password."""
        return f"{self.host}, port {self.port}"


def parse_smtp_url(value: str) -> MailServer:
    """Return the server of a URL. Raise ValueError with the rule that is broken."""
    match = re.fullmatch(r"(smtps?)://([^\s/?#]+)/?(?:\?tls=(required))?", value)
    if match is None:
        raise ValueError(
            f"must look like {EXAMPLE} or smtp://localhost:25; in the user and the password, "
            "%40 stands for @, %3A for :, %2F for /, %3F for ? and %23 for #"
        )
    scheme, where, required = match.groups()
    try:
        url = urlsplit(f"//{where}")
        host, port = url.hostname, url.port
    except ValueError:
        raise ValueError("has a port that is not a number from 1 to 65535") from None
    if not host or port == 0 or where.count("@") > 1:
        raise ValueError(f"must name a host, such as {EXAMPLE}")
    if bool(url.username) != bool(url.password) or (url.username == "" or url.password == ""):
        raise ValueError("must have both a user and a password, or none of them")
    begins_encrypted = scheme == "smtps"
    default = 465 if begins_encrypted else 587 if url.username else 25
    return MailServer(
        host=host,
        port=port or default,
        begins_encrypted=begins_encrypted,
        must_encrypt=begins_encrypted or bool(required),
        user=unquote(url.username) if url.username else None,
        password=unquote(url.password) if url.password else None,
    )


class Sender(NamedTuple):
    """The sender of mails; the name may be empty."""

    name: str
    user: str
    domain: str


def parse_mail_from(value: str) -> Sender:
    """Return the sender of `POSTING_MAIL_FROM`. Raise ValueError with the rule that is broken."""
    match = re.fullmatch(r"(?:(.*\S)\s*<([^<>]*)>|(\S*))", value)
    name, bracketed, plain = match.groups() if match else (None, None, None)
    address = bracketed or plain or ""
    if not value.isprintable() or not address.isascii() or not ADDRESS.fullmatch(address):
        raise ValueError("must look like posting@example.org or Posting <posting@example.org>")
    user, _, host = address.rpartition("@")
    return Sender((name or "").strip('"'), user, host)
