"""The channel of the outbox that sends mails."""

from collections.abc import Callable
from email.headerregistry import Address
from email.message import EmailMessage
from functools import partial
from urllib.parse import urlsplit

from flask import Flask, current_app

from posting.db.transactions import Row, unit_of_work
from posting.languages import current_language, direction_of, in_language
from posting.mail import contents, planning, store
from posting.mail.contents import Content
from posting.mail.messages import make_message
from posting.mail.models import MAIL
from posting.mail.server import AddressError, Connection
from posting.outbox.delivery import PauseError, PermanentError, note
from posting.outbox.models import URGENT
from posting.outbox.store import enqueue_all, finish
from posting.web.limits import Hits, Limit, LimitReached

MAIL_LIMIT = Limit("mails", "MAIL_RATE")


class MailChannel:
    """The channel that sends mails. Each mail is made when it is sent."""

    name = MAIL

    def __init__(self, app: Flask) -> None:
        host = urlsplit(app.config["PUBLIC_URL"]).hostname or "localhost"
        self._connection = Connection(app.config["SMTP_URL"], host)

    def plan(self) -> None:
        """Add the daily and weekly mails that are due."""
        if not planning.has_due_mails():
            return
        for plan in (planning.plan_digests, planning.plan_letters):
            has_more = True
            while has_more:
                with unit_of_work():
                    has_more = plan()

    def prepare(self, row: Row) -> Callable[[], None] | None:
        """Return a function that sends a mail, or None if there is nothing to say any more.

        A row without a user is a notification for all who want a mail for each. It is replaced by
        one row for each of these members.
        """
        if row.kind not in contents.KINDS:
            raise PermanentError("This version does not know this kind of mail")
        if row.user_id is None:
            if finish(row):  # in the same transaction, so that no member gets two mails
                wanted = store.list_wanting_each(row.about, row.about_at)
                recipients = [(user_id, row.about_at) for user_id in wanted]
                enqueue_all(MAIL, row.kind, recipients, about=row.about)
            return None
        with in_language(store.find_language(row.user_id)):
            content = contents.make_content(row)
            if content is None:
                return None
            return partial(self._send, row, content.address, to_message(row, content))

    def close(self) -> None:
        """Close the connection, since nothing is due."""
        self._connection.close()

    def _send(self, row: Row, address: str, message: EmailMessage) -> None:
        self._connection.open()  # a server that is down uses up no part of the rate
        if row.rank != URGENT:
            self._count()
        try:
            self._connection.send(message)
        except AddressError:
            note(row, partial(store.note_failure, row.user_id, address))
            raise
        note(row, partial(store.note_success, row.user_id, address))

    def _count(self) -> None:
        """Count a mail. Raise PauseError if as many were sent as the operator allows.

        Urgent mails are not counted. There are few of them, since links have limits of their own.
        """
        try:
            with unit_of_work():
                Hits().count((MAIL_LIMIT, ""))
        except LimitReached as error:
            seconds = float(error.retry_after)  # type: ignore[arg-type]
            raise PauseError(seconds, ordinary=True) from None


def to_message(row: Row, content: Content) -> EmailMessage:
    """Return the message of a content. Its ID is the same when it is sent again."""
    config = current_app.config
    base = config["PUBLIC_URL"]
    end_url = f"{base}/unsubscribe/{content.ends}/{content.key}" if content.ends else ""
    language = current_language()
    values = {
        "content": content,
        "end_url": end_url,
        "settings_url": f"{base}/settings#mails",
        "language": language,
        "direction": direction_of(language),
    }
    text, html = (
        current_app.jinja_env.get_template(f"mail/mail.{kind}").render(values)
        for kind in ("txt", "html")
    )
    user, _, domain = content.address.rpartition("@")
    return make_message(
        id=row.id,
        sender=config["MAIL_FROM"],
        to=Address(content.name, user, domain),
        subject=content.subject,
        text=text,
        html=html,
        time=row.queued_at,
        end_url=end_url,
        thread=content.thread,
    )
