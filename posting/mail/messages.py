"""The form of a mail (RFC 5322): headers, a plain text, and perhaps the same as HTML."""

from datetime import datetime
from email.headerregistry import Address, BaseHeader, HeaderRegistry, UnstructuredHeader
from email.message import EmailMessage
from email.policy import SMTP, Policy
from email.utils import format_datetime

from posting.smtp import Sender

SPECIALS = dict.fromkeys(map(ord, '()<>[]:;@\\,."'), " ")  # RFC 5322, section 3.2.3
JOINERS = "\u200c\u200d"  # within words of Persian and of Indian languages, and within emoji
MAX_NAME = 64  # characters


class OneWordHeader(UnstructuredHeader, BaseHeader):
    """A header of one word, such as a URL. Python would encode a word that is longer than a line.

    Programs that read such a header do not decode it.
    """

    def fold(self, *, policy: Policy) -> str:
        return f"{self.name}: {self}{policy.linesep}"


_HEADERS = HeaderRegistry()
for _name_of_header in ("In-Reply-To", "References", "List-Unsubscribe"):
    _HEADERS.map_to_type(_name_of_header.lower(), OneWordHeader)
_POLICY = SMTP.clone(header_factory=_HEADERS)


def make_message(
    *,
    id: str,
    sender: Sender,
    to: Address,
    subject: str,
    text: str,
    html: str | None = None,
    time: datetime,
    end_url: str = "",
    thread: str | None = None,
) -> EmailMessage:
    """Return a mail of the service to one person.

    `id` is the same when the mail is sent again, so that a mail program shows it once. Mails with
    the same `thread` are shown as one conversation. A POST to `end_url` ends all mails of this kind
    (RFC 8058). No line is too long, and no name or subject can add a header.
    """
    message = EmailMessage(policy=_POLICY)
    message["From"] = Address(_name(sender.name), sender.user, sender.domain)
    message["To"] = Address(_name(to.display_name), to.username, to.domain)
    message["Subject"] = _one_line(subject)
    message["Date"] = format_datetime(time)
    message["Message-ID"] = f"<{id}@{sender.domain}>"
    message["Auto-Submitted"] = "auto-generated"  # so that no automatic reply answers it (RFC 3834)
    if thread:  # the post has sent no mail of its own, but its ID joins those about it
        message["In-Reply-To"] = message["References"] = f"<{thread}@{sender.domain}>"
    if end_url:
        message["List-Unsubscribe"] = f"<{end_url}>"
        message["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"
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
    printable = "".join(each if each.isprintable() or each in JOINERS else " " for each in text)
    return " ".join(printable.replace("=?", "= ?").split())
