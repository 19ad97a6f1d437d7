"""The connection to the mail server of `POSTING_SMTP_URL` (RFC 5321).

The password is sent only over an encrypted connection whose certificate was checked, or to this
machine.
"""

import re
import smtplib
import ssl
from contextlib import ExitStack, suppress
from email.message import EmailMessage

from posting.outbox.delivery import PauseError, PermanentError, TemporaryError
from posting.smtp import MailServer

TIMEOUT = 30.0  # seconds for each answer of the server
MIN_PAUSE, MAX_PAUSE = 30, 300  # seconds after a failure to connect


class Connection:
    """A connection to a mail server. It is opened with the first mail, and kept for the next."""

    def __init__(self, server: MailServer, own_host: str) -> None:
        self._server = server
        self._own_host = own_host
        self._smtp: smtplib.SMTP | None = None
        self._failures = 0  # to connect, since it last worked

    def send(self, message: EmailMessage) -> None:
        """Hand over a mail with one recipient.

        Raise PauseError if the server cannot be used at all. Raise PermanentError if it refuses
        the recipient or the mail for good. Raise TemporaryError for every other failure.
        """
        smtp = self._open()
        try:
            smtp.send_message(message)
        except smtplib.SMTPRecipientsRefused as error:
            [(code, answer)] = error.recipients.values()
            raise self._refusal(code, answer) from None
        except smtplib.SMTPDataError as error:
            raise self._refusal(error.smtp_code, error.smtp_error) from None
        except smtplib.SMTPSenderRefused as error:
            if error.smtp_code == 552:  # this mail is too large
                raise self._refusal(error.smtp_code, error.smtp_error) from None
            self.close()  # all other refusals concern all mails
            raise PauseError(MAX_PAUSE, f"{self._server.name}: {_reason(error)}") from None
        except (ValueError, smtplib.SMTPNotSupportedError) as error:  # an address beyond ASCII
            self.close()
            raise PermanentError(_reason(error)) from None
        except (OSError, smtplib.SMTPException) as error:
            self.close()
            raise TemporaryError(f"{self._server.name}: {_reason(error)}") from None

    def _refusal(self, code: int, answer: bytes | str) -> PermanentError | TemporaryError:
        """Return the error for an answer that refuses a recipient or a mail."""
        self.close()
        words = _words(code, answer)
        # A policy (5.7) or a missing sign-in concerns more than this mail.
        is_for_good = code in {550, 551, 552, 553, 554} and not re.match(r"\d+ 5\.7\.", words)
        return (PermanentError if is_for_good else TemporaryError)(words)

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
            smtp = smtplib.SMTP_SSL(
                *(server.host, server.port, self._own_host), context=context, timeout=TIMEOUT
            )
        else:
            smtp = smtplib.SMTP(server.host, server.port, self._own_host, TIMEOUT)
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
        return error.strerror
    return str(error) or type(error).__name__
