"""The tables of mail addresses, and of the links that mails contain."""

from datetime import datetime, timedelta

from sqlalchemy import CheckConstraint, ForeignKey, Index, String
from sqlalchemy.orm import Mapped, mapped_column

from posting.db.base import NOT_ARCHIVED, Base, Identifier, partial_index
from posting.db.types import new_id
from posting.languages import MAX_CODE

MAIL = "mail"  # the channel of the outbox
MAX_ADDRESS = 254  # characters (RFC 5321, with the brackets of a path left out)
CONFIRMATION_LIFETIME = timedelta(days=1)
PASSWORD_LIFETIME = timedelta(hours=1)
MAX_FAILURES = 3  # in a row, after which an address is failing
RHYTHMS = ("each", "daily", "weekly", "none")
EACH, DAILY, WEEKLY, NONE = RHYTHMS
TEXTS = ("whole", "beginning", "link")  # how much of a text a mail contains
WHOLE, BEGINNING, LINK = TEXTS
UTC = "UTC"  # the time zone of those who have not named theirs
# What a link is for.
PURPOSES = ("confirmation", "password")
CONFIRMATION, PASSWORD = PURPOSES
# The kinds of mails.
CONFIRM_ADDRESS, ADDRESS_CHANGED = "confirm_address", "address_changed"
PASSWORD_LINK, PASSWORD_LINKS = "password_link", "password_links"  # of one account, of an address
PASSWORD_CHANGED, APPROVED = "password_changed", "approved"
NOTIFICATION, DIGEST, WEEKLY_LETTER = "notification", "digest", "weekly_letter"
# The mails that a link in them ends.
NOTIFICATIONS, LETTER = "notifications", "letter"


class Mailbox(Base):
    """The mail address of a member, and what is sent to it.

    `address` is confirmed. `pending_address` is not, and gets nothing but links that confirm it.
    A member without a row has no address and the default settings.
    """

    __tablename__ = "mailboxes"

    user_id: Mapped[str] = mapped_column(
        Identifier, ForeignKey("users.id", ondelete="CASCADE"), primary_key=True
    )
    address: Mapped[str | None] = mapped_column(String(MAX_ADDRESS))
    pending_address: Mapped[str | None] = mapped_column(String(MAX_ADDRESS))
    pending_until: Mapped[datetime | None] = mapped_column()
    # Part of the links that end mails. It allows nothing else.
    key: Mapped[str] = mapped_column(Identifier, default=new_id, unique=True)
    mail: Mapped[str] = mapped_column(String(8), default=DAILY)
    text: Mapped[str] = mapped_column(String(16), default=BEGINNING)
    letter: Mapped[bool] = mapped_column(default=False)
    push: Mapped[bool] = mapped_column(default=True)
    time_zone: Mapped[str] = mapped_column(String(64), default=UTC)
    language: Mapped[str | None] = mapped_column(String(MAX_CODE))  # null for that of the site
    digest_at: Mapped[datetime | None] = mapped_column()  # the next one; null if there is none
    digested_until: Mapped[datetime | None] = mapped_column()
    letter_at: Mapped[datetime | None] = mapped_column()
    failures: Mapped[int] = mapped_column(default=0)  # since a mail was last accepted
    # No notifications and letters are sent to the address since then.
    failing_since: Mapped[datetime | None] = mapped_column()

    __table_args__ = (
        Index(None, address),
        partial_index(digest_at, where=digest_at.is_not(None)),
        partial_index(letter_at, where=letter_at.is_not(None)),
        partial_index(user_id, where=mail == EACH, name="ix_mailboxes_each"),
        CheckConstraint("length(address) <= 254", name="address_length"),
        CheckConstraint("length(pending_address) <= 254", name="pending_address_length"),
        CheckConstraint("mail IN ('each', 'daily', 'weekly', 'none')", name="mail"),
        CheckConstraint("text IN ('whole', 'beginning', 'link')", name="text"),
        CheckConstraint(f"length(language) BETWEEN 2 AND {MAX_CODE}", name="language_length"),
    )


class FormerAddress(Base):
    """An address that was replaced. The row of the outbox with the same ID sends a notice to it.

    It is forgotten with that row.
    """

    __tablename__ = "former_addresses"

    id: Mapped[str] = mapped_column(
        Identifier, ForeignKey("outbox.id", ondelete="CASCADE"), primary_key=True
    )
    user_id: Mapped[str] = mapped_column(
        Identifier, ForeignKey("users.id", ondelete="CASCADE"), index=True
    )
    address: Mapped[str] = mapped_column(String(MAX_ADDRESS))

    __table_args__ = (
        CheckConstraint("length(address) <= 254", name="address_length"),
        NOT_ARCHIVED,
    )


class MailLink(Base):
    """A link in a mail, which confirms the address or sets a password, once.

    A member can have several of a purpose: a mail that is sent twice has two of them.
    """

    EXPIRES = ("expires_at", timedelta())

    __tablename__ = "mail_links"

    secret_hash: Mapped[str] = mapped_column(String(64), primary_key=True)
    user_id: Mapped[str] = mapped_column(
        Identifier, ForeignKey("users.id", ondelete="CASCADE"), index=True
    )
    purpose: Mapped[str] = mapped_column(String(16))
    address: Mapped[str] = mapped_column(String(MAX_ADDRESS))  # to which it was sent
    expires_at: Mapped[datetime] = mapped_column(index=True)

    __table_args__ = (
        CheckConstraint("purpose IN ('confirmation', 'password')", name="purpose"),
        CheckConstraint("length(address) <= 254", name="address_length"),
        NOT_ARCHIVED,
    )
