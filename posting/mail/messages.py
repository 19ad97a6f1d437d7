"""The form of a mail (RFC 5322): headers, a plain text, and perhaps the same as HTML."""

from datetime import datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime

from posting.smtp import Sender

SPECIALS = dict.fromkeys(map(ord, '()<>[]:;@\\,."'), " ")  # RFC 5322, section 3.2.3
MAX_NAME = 64  # characters


def make_message(
    *,
    id: str,
    sender: Sender,
    to: Address,
    subject: str,
    text: str,
    html: str | None = None,
    time: datetime,
) -> EmailMessage:
    """Return a mail of the service to one person.

    `id` is the same when the mail is sent again, so that a mail program shows it once. No line is
    too long, and no name or subject can add a header.
    """
    message = EmailMessage(policy=SMTP)
    message["From"] = Address(_name(sender.name), sender.user, sender.domain)
    message["To"] = Address(_name(to.display_name), to.username, to.domain)
    message["Subject"] = _one_line(subject)
    message["Date"] = format_datetime(time)
    message["Message-ID"] = f"<{id}@{sender.domain}>"
    message["Auto-Submitted"] = "auto-generated"  # so that no automatic reply answers it (RFC 3834)
    message.set_content(text, cte="quoted-printable")
    if html is not None:
        message.add_alternative(html, subtype="html", cte="quoted-printable")
    return message


def _name(text: str) -> str:
    """Return a name in one line, without the characters for which it would need quotes.

    Python loses the quotes of a name that is longer than a line, so it could name other addresses.
    """
    return _one_line(text.translate(SPECIALS))[:MAX_NAME].rstrip()


def _one_line(text: str) -> str:
    """Return a text in one line, without characters that a header may not have.

    `=?` would begin an encoded word (RFC 2047), which mail programs show as another text.
    """
    printable = "".join(each if each.isprintable() else " " for each in text)
    return " ".join(printable.replace("=?", "= ?").split())
