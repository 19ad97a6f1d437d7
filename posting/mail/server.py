"""The connection to the mail server of `POSTING_SMTP_URL` (RFC 5321).

The password is sent only over an encrypted connection whose certificate was checked, or to this
machine.
"""

import smtplib
import ssl
from contextlib import suppress
from email.message import EmailMessage

from posting.outbox.delivery import PermanentError, TemporaryError
from posting.smtp import MailServer

TIMEOUT = 30.0  # seconds for each answer of the server


class Connection:
    """A connection to a mail server. It is opened with the first mail, and kept for the next."""

    def __init__(self, server: MailServer, own_host: str) -> None:
        self._server = server
        self._own_host = own_host
        self._smtp: smtplib.SMTP | None = None

    def send(self, message: EmailMessage) -> None:
        """Hand over a mail with one recipient.

        Raise PermanentError if the server refuses the recipient or the mail for good, and
        TemporaryError for all else, such as a wrong password, which concerns every mail.
        """
        try:
            smtp = self._open()
            smtp.send_message(message)
        except smtplib.SMTPRecipientsRefused as error:
            self.close()
            [(code, answer)] = error.recipients.values()
            raise _error(code, answer) from None
        except smtplib.SMTPDataError as error:
            self.close()
            raise _error(error.smtp_code, error.smtp_error) from None
        except smtplib.SMTPNotSupportedError as error:
            self.close()
            raise PermanentError(str(error)) from None
        except smtplib.SMTPResponseException as error:
            self.close()
            raise TemporaryError(_words(error.smtp_code, error.smtp_error)) from None
        except (OSError, smtplib.SMTPException) as error:
            self.close()
            raise TemporaryError(f"{self._server.name}: {_reason(error)}") from None

    def check(self) -> None:
        """Connect, sign in, and hand over nothing. Raise TemporaryError."""
        try:
            self._open().noop()
        except smtplib.SMTPResponseException as error:
            raise TemporaryError(_words(error.smtp_code, error.smtp_error)) from None
        except (OSError, smtplib.SMTPException) as error:
            raise TemporaryError(_reason(error)) from None
        finally:
            self.close()

    def close(self) -> None:
        """Close the connection if it is open."""
        if smtp := self._smtp:
            self._smtp = None
            with suppress(OSError, smtplib.SMTPException):
                smtp.quit()
            smtp.close()

    def _open(self) -> smtplib.SMTP:
        if self._smtp is None:
            server = self._server
            context = ssl.create_default_context()
            if server.is_local:  # nobody is in between, and its certificate names another host
                context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            smtp: smtplib.SMTP
            if server.begins_encrypted:
                smtp = smtplib.SMTP_SSL(
                    *(server.host, server.port, self._own_host), context=context, timeout=TIMEOUT
                )
            else:
                smtp = smtplib.SMTP(server.host, server.port, self._own_host, TIMEOUT)
            self._smtp = smtp
            smtp.ehlo_or_helo_if_needed()
            self._encrypt(smtp, context)
            if server.user is not None and server.password is not None:
                smtp.login(server.user, server.password)
        return self._smtp

    def _encrypt(self, smtp: smtplib.SMTP, context: ssl.SSLContext) -> None:
        server = self._server
        if server.begins_encrypted:
            return
        if smtp.has_extn("starttls"):
            smtp.starttls(context=context)
            smtp.ehlo_or_helo_if_needed()
        elif server.must_encrypt or (server.password is not None and not server.is_local):
            raise smtplib.SMTPException("It offers no encryption (STARTTLS). Try smtps://.")


def _error(code: int, answer: bytes | str) -> PermanentError | TemporaryError:
    """Return the error of an answer to a recipient or a mail: 5yz is for good."""
    return (PermanentError if code >= 500 else TemporaryError)(_words(code, answer))


def _words(code: int, answer: bytes | str) -> str:
    text = answer.decode("utf-8", "replace") if isinstance(answer, bytes) else answer
    return f"{code} {' '.join(text.split())}"


def _reason(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "No answer in time"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"Its certificate cannot be checked ({error.verify_message})"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__
