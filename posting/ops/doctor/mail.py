"""The check of the mail server, and a mail that shows whether mails arrive."""

from email.headerregistry import Address
from urllib.parse import urlsplit

from click import ClickException
from flask import current_app

from posting.db.types import new_id, now
from posting.mail.messages import make_message
from posting.mail.server import Connection
from posting.ops.doctor.findings import Findings, failure, ok
from posting.outbox.delivery import PauseError, PermanentError, TemporaryError

FIX = "Check POSTING_SMTP_URL, and that the mail server accepts mails from this machine."


def check_mail() -> Findings:
    """Check that the mail server answers and accepts the password. No mail is sent."""
    server = current_app.config["SMTP_URL"]
    if server is None:
        yield ok("No mail server is set, so no mails are sent")
        return
    try:
        _connection().check()
    except PauseError as error:
        yield failure(f"The mail server cannot be used ({error})", FIX)
    else:
        yield ok(f"The mail server {server.name} can be used")


def send_test_mail(address: Address) -> None:
    """Send a mail to an address. Raise ClickException if the mail server does not take it."""
    config = current_app.config
    if config["SMTP_URL"] is None:
        raise ClickException("No mail can be sent: set POSTING_SMTP_URL and POSTING_MAIL_FROM.")
    community, url = config["NAME"], config["PUBLIC_URL"]
    message = make_message(
        id=new_id(),
        sender=config["MAIL_FROM"],
        to=address,
        subject=f"A test mail from {community}",
        text=f"Mails from {community} arrive. An operator of {url} has sent this one by hand.\n",
        time=now(),
    )
    connection = _connection()
    try:
        connection.send(message)
    except (PauseError, PermanentError, TemporaryError) as error:
        raise ClickException(f"The mail was not sent ({error}). {FIX}") from None
    finally:
        connection.close()


def _connection() -> Connection:
    host = urlsplit(current_app.config["PUBLIC_URL"]).hostname
    return Connection(current_app.config["SMTP_URL"], host or "localhost")
