"""The connection to the mail server of `POSTING_SMTP_URL` (RFC 5321).

The password is sent only over an encrypted connection whose certificate was checked, or to this
machine.
"""

import errno
import re
import smtplib
import socket
import ssl
from contextlib import ExitStack, suppress
from email.message import EmailMessage
from io import BufferedIOBase
from ipaddress import ip_address
from threading import Timer
from typing import Any

from posting.outbox.delivery import PauseError, PermanentError, TemporaryError
from posting.smtp import MailServer

TIMEOUT = 30.0  # seconds for each part of an answer of the server
REPLY_SECONDS = 60.0  # for a whole answer, such as one that comes byte by byte
MAX_LINES = 200  # of an answer
NO_TLS = "It does not begin with TLS at this port. Try smtp:// or another port."
MIN_PAUSE, MAX_PAUSE = 30, 300  # seconds after a failure to connect


class AddressError(PermanentError):
    """The mail server refuses an address permanently."""


class _Lines:
    """The lines that a server sends, of which an answer may have some."""

    def __init__(self, file: BufferedIOBase) -> None:
        self._file = file
        self._left = MAX_LINES

    def readline(self, size: int) -> bytes:
        self._left -= 1
        if self._left < 0:
            raise OSError(errno.EMSGSIZE, "Its answer is too long")
        return self._file.readline(size)

    def close(self) -> None:
        self._file.close()


class _Bounded(smtplib.SMTP):
    """SMTP whose answers have a limit of length, and one of time for all of their lines."""

    file: Any

    def getreply(self) -> tuple[int, bytes]:
        connection = self.sock
        if connection is None:
            raise smtplib.SMTPServerDisconnected("The connection is closed")
        file = self.file or connection.makefile("rb")
        self.file = _Lines(file)
        timer = Timer(REPLY_SECONDS, _break_off, [connection])
        timer.daemon = True
        timer.start()
        try:
            return super().getreply()
        finally:
            timer.cancel()
            if self.file is not None:  # otherwise it is closed
                self.file = file


class _BoundedSSL(_Bounded, smtplib.SMTP_SSL):
    pass


def _break_off(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


class Connection:
    """A connection to a mail server. It is opened with the first mail, and kept for the next."""

    def __init__(self, server: MailServer, own_host: str) -> None:
        self._server = server
        self._own_host = _ehlo_name(own_host)
        self._smtp: smtplib.SMTP | None = None
        self._failures = 0  # to connect, since it last worked
        self._has_accepted = False  # a mail, since it last refused one

    def send(self, message: EmailMessage) -> None:
        """Hand over a mail with one recipient.

        Raise PauseError if the server cannot be used at all. Raise AddressError if it refuses the
        recipient permanently, and PermanentError if it refuses the mail permanently. Raise
        TemporaryError for every other failure.
        """
        smtp = self._open()
        try:
            smtp.send_message(message)
            self._has_accepted = True
        except smtplib.SMTPRecipientsRefused as error:
            [(code, answer)] = error.recipients.values()
            raise self._refusal(code, answer, AddressError) from None
        except smtplib.SMTPDataError as error:
            raise self._refusal(error.smtp_code, error.smtp_error) from None
        except smtplib.SMTPSenderRefused as error:
            if error.smtp_code == 552:  # this mail is too large
                raise self._refusal(error.smtp_code, error.smtp_error) from None
            if error.smtp_code == 421:  # it takes no more mails by this connection
                raise self._refusal(error.smtp_code, error.smtp_error) from None
            self.close()  # all other refusals concern all mails
            raise PauseError(MAX_PAUSE, f"{self._server.name}: {_reason(error)}") from None
        except (ValueError, smtplib.SMTPNotSupportedError) as error:  # an address beyond ASCII
            self.close()
            raise PermanentError(_reason(error)) from None
        except (OSError, smtplib.SMTPException) as error:
            self.close()
            raise TemporaryError(f"{self._server.name}: {_reason(error)}") from None

    def _refusal(
        self, code: int, answer: bytes | str, permanent: type[PermanentError] = PermanentError
    ) -> PermanentError | TemporaryError:
        """Return the error for an answer that refuses a recipient or a mail."""
        self.close()
        words = _words(code, answer)
        # A policy (5.7), the sender (5.1.7 and 5.1.8) or a missing sign-in concern more than this
        # mail.
        if code not in {550, 551, 552, 553, 554} or re.match(r"\d+ #?5\.(7\.|1\.[78]\b)", words):
            return TemporaryError(words)
        # Without a code for it, the address is at fault only if others were accepted before.
        is_about_address = re.match(r"\d+ #?5\.[12]\.", words) or (
            self._has_accepted and not re.match(r"\d+ #?5\.", words)
        )
        self._has_accepted = False
        return (permanent if is_about_address else PermanentError)(words)

    def open(self) -> None:
        """Connect, unless the connection is open. Raise PauseError."""
        self._open()

    def check(self) -> None:
        """Connect, sign in, and hand over nothing. Raise PauseError."""
        self._open()
        self.close()

    def close(self) -> None:
        """Close the connection if it is open."""
        if smtp := self._smtp:
            self._smtp = None
            with suppress(OSError, smtplib.SMTPException):
                smtp.quit()
            smtp.close()

    def _open(self) -> smtplib.SMTP:
        """Return the connection, which is opened if there is none. Raise PauseError."""
        if self._smtp:
            return self._smtp
        with ExitStack() as opened:
            try:
                self._smtp = self._connect(opened)
            except (OSError, ValueError, smtplib.SMTPException) as error:
                seconds = min(MAX_PAUSE, MIN_PAUSE * 2**self._failures)
                self._failures += 1
                raise PauseError(seconds, f"{self._server.name}: {_reason(error)}") from None
            opened.pop_all()  # it stays open
        self._failures = 0
        return self._smtp

    def _connect(self, opened: ExitStack) -> smtplib.SMTP:
        server = self._server
        context = ssl.create_default_context()
        if server.is_local:  # its certificate names another host, and no network is in between
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        smtp: smtplib.SMTP
        if server.begins_encrypted:
            smtp = _BoundedSSL(
                *(server.host, server.port, self._own_host), context=context, timeout=TIMEOUT
            )
        else:
            smtp = _Bounded(server.host, server.port, self._own_host, TIMEOUT)
        opened.callback(smtp.close)
        smtp.ehlo_or_helo_if_needed()
        if not server.begins_encrypted:
            self._encrypt(smtp, context)
        if server.user is not None and server.password is not None:
            smtp.login(server.user, server.password)
        return smtp

    def _encrypt(self, smtp: smtplib.SMTP, context: ssl.SSLContext) -> None:
        server = self._server
        if smtp.has_extn("starttls"):
            smtp.starttls(context=context)
            smtp.ehlo_or_helo_if_needed()
        elif server.must_encrypt or (server.password is not None and not server.is_local):
            raise smtplib.SMTPException("It offers no encryption (STARTTLS). Try smtps://.")


def _ehlo_name(host: str) -> str:
    """Return a host as EHLO names it (RFC 5321, section 4.1.3)."""
    try:
        address = ip_address(host)
    except ValueError:
        return host
    return f"[IPv6:{address}]" if address.version == 6 else f"[{address}]"


def _words(code: int, answer: bytes | str) -> str:
    """Return an answer in one line, without the address that it may repeat."""
    text = answer.decode("utf-8", "replace") if isinstance(answer, bytes) else answer
    text = "".join(each if each.isprintable() else " " for each in text[:1000])
    text = re.sub(r"<?[^\s<>]+@[^\s<>:,;]+>?", "…", text)
    return f"{code} {' '.join(text.split())}"


def _reason(error: Exception) -> str:
    if isinstance(error, smtplib.SMTPAuthenticationError):  # the answer may repeat the password
        return f"{error.smtp_code} The user or the password is not accepted"
    if isinstance(error, smtplib.SMTPResponseException):
        return _words(error.smtp_code, error.smtp_error)
    if isinstance(error, UnicodeError):  # whose text has a part of the password
        return "It does not take characters beyond ASCII"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"Its certificate cannot be checked ({error.verify_message})"
    if isinstance(error, OSError) and error.strerror:
        return NO_TLS if "WRONG_VERSION_NUMBER" in error.strerror else error.strerror
    return str(error) or type(error).__name__
