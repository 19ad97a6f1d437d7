"""The SQL of mail addresses, of the links in mails, and of what members choose to be sent."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, TypeGuard

import sqlalchemy as sa
from flask import current_app
from werkzeug.exceptions import Conflict

from posting.accounts.current_user import current_user_id
from posting.accounts.models import ACTIVE, PENDING, User
from posting.accounts.recovery import new_code, split_code
from posting.accounts.sessions import hash_token
from posting.accounts.store import lock_account
from posting.config import sends_mails
from posting.db.base import db, upsert
from posting.db.purge import purge_expired
from posting.db.transactions import Row, execute, fetch_all, fetch_one, fetch_value
from posting.db.types import Rfc3339Text, UtcDateTime, new_id, now
from posting.mail import schemas
from posting.mail.models import (
    ADDRESS_CHANGED,
    BEGINNING,
    CONFIRM_ADDRESS,
    CONFIRMATION,
    CONFIRMATION_LIFETIME,
    DAILY,
    DIGEST,
    EACH,
    LETTER,
    MAIL,
    MAX_FAILURES,
    NONE,
    NOTIFICATIONS,
    PASSWORD,
    PASSWORD_LIFETIME,
    PASSWORD_LINK,
    PASSWORD_LINKS,
    UTC,
    WEEKLY,
    FormerAddress,
    Mailbox,
    MailLink,
)
from posting.mail.mornings import next_morning
from posting.notifications.models import Notification
from posting.outbox.store import add_rows, enqueue
from posting.web.errors import Coded
from posting.web.limits import Hits, Limit
from posting.web.schemas import Item, select, to_item


class NoMail(Coded, Conflict):
    error_code = "no_mail"
    description = "This service sends no mails."


# Of mails with links. Those for a password are counted apart: otherwise, a confirmation that is
# refused would show to whom links for a password were sent.
CONFIRMATION_LIMIT = Limit("confirmations", "LIMIT_LINKS", current_user_id)
CONFIRMATION_ADDRESS_LIMIT = Limit("confirmations-address", "LIMIT_LINKS")
CONFIRMATION_SENDER_LIMIT = Limit("confirmations-sender", "LIMIT_LINKS")
PASSWORD_LIMIT = Limit("password-links", "LIMIT_LINKS")
PASSWORD_ADDRESS_LIMIT = Limit("password-links-address", "LIMIT_LINKS")
PASSWORD_SENDER_LIMIT = Limit("password-links-sender", "LIMIT_LINKS")
ACCOUNTS_PER_ADDRESS = 5  # for which one mail has links

_OWNER: sa.BindParameter[Any] = sa.bindparam("owner")
_IS_OWN = Mailbox.user_id == _OWNER
_TIME = sa.bindparam("time", type_=UtcDateTime())
_EMAIL = sa.select(
    Mailbox.address.label("email"),
    sa.case((Mailbox.pending_until > _TIME, Mailbox.pending_address)).label("pending"),
    sa.type_coerce(Mailbox.failing_since, Rfc3339Text()).label("failing_since"),
).where(_IS_OWN)
_SETTINGS = select(schemas.Settings, Mailbox).where(_IS_OWN)
_LANGUAGE = sa.select(Mailbox.language).where(_IS_OWN)
_MAILBOX = sa.select(*sa.inspect(Mailbox).columns).where(_IS_OWN)
_LOCKED_MAILBOX = _MAILBOX.with_for_update()
_RECIPIENTS = (
    sa.select(
        User.id,
        User.username,
        User.display_name,
        User.is_moderator.label("is_moderator"),
        *(column for column in sa.inspect(Mailbox).columns if column.key != "user_id"),
    )
    .join(Mailbox, Mailbox.user_id == User.id)
    .where(User.state == ACTIVE)
)
_UNSUSPENDED = sa.select(User.id, User.username)
_UNSUSPENDED = _UNSUSPENDED.where(User.id == _OWNER, User.state.in_((ACTIVE, PENDING)))
_RECIPIENT = _RECIPIENTS.where(User.id == _OWNER)
_SHARERS = _RECIPIENTS.where(Mailbox.address == sa.bindparam("address"))
_SHARERS = _SHARERS.order_by(User.id).limit(ACCOUNTS_PER_ADDRESS)
# Whose password a link sets, and where it is sent.
_BY_NAME = (
    sa.select(User.id, Mailbox.address)
    .outerjoin(Mailbox, Mailbox.user_id == User.id)
    .where(sa.func.lower(User.username) == sa.bindparam("lower"))
)
_BY_ADDRESS = sa.select(Mailbox.user_id.label("id"), Mailbox.address)
_BY_ADDRESS = _BY_ADDRESS.where(Mailbox.address == sa.bindparam("lower"))
_BY_ADDRESS = _BY_ADDRESS.order_by(Mailbox.user_id).limit(1)

GETS_MAILS = sa.and_(Mailbox.address.is_not(None), Mailbox.failing_since.is_(None))
# Whom a notification is mailed at once.
_TO_EACH = (
    sa.select(Mailbox.user_id)
    .join(
        Notification,
        sa.and_(
            Notification.user_id == Mailbox.user_id,
            Notification.created_at == _TIME,
            Notification.id == sa.bindparam("notification"),
        ),
    )
    .where(Mailbox.mail == EACH, GETS_MAILS, Notification.read_at.is_(None))
)


def require_mail() -> None:
    """Raise NoMail if the service has no mail server."""
    if not sends_mails(current_app.config):
        raise NoMail


def queue_mail(kind: str, user_id: str, *, is_urgent: bool = False) -> None:
    """Add a mail to a member to the outbox, if the service has a mail server.

    It is dropped later if the member has no address.
    """
    if sends_mails(current_app.config):
        enqueue(MAIL, kind, user_id=user_id, is_urgent=is_urgent)


def find_language(user_id: str) -> str | None:
    """Return the language that a member has chosen for mails, or None for that of the site."""
    language: str | None = fetch_value(_LANGUAGE, owner=user_id)
    return language


def get_email(user_id: str) -> Item:
    """Return the address of a member, as its owner sees it."""
    row = fetch_one(_EMAIL, owner=user_id, time=now())
    return to_item(row) if row else {"email": None, "pending": None, "failing_since": None}


def get_settings(user_id: str) -> Item:
    """Return what a member has chosen to be sent."""
    row = fetch_one(_SETTINGS, owner=user_id)
    if row:
        return to_item(row)
    return {
        "mail": DAILY,
        "text": BEGINNING,
        "letter": False,
        "push": True,
        "time_zone": UTC,
        "language": None,
    }


def ask_to_confirm(user_id: str, address: str) -> None:
    """Send a link to an address, by which the owner of a locked account confirms it.

    An earlier link of the account confirms nothing any more. Raise NoMail, and LimitReached after
    too many links to the address.
    """
    require_mail()
    Hits().count((CONFIRMATION_ADDRESS_LIMIT, address))
    _lock_mailbox(user_id)
    until = now() + CONFIRMATION_LIFETIME
    _change(user_id, pending_address=address, pending_until=until)
    _delete_links(user_id, CONFIRMATION)
    enqueue(MAIL, CONFIRM_ADDRESS, user_id=user_id, about_at=until, is_urgent=True)


def confirm_address(code: str) -> str | None:
    """Make the address of a link that of its account. Return it, or None if the link is invalid."""
    user_id, secret = split_code(code)
    link = sa.and_(
        MailLink.user_id == user_id,
        MailLink.purpose == CONFIRMATION,
        MailLink.secret_hash == hash_token(secret),
        MailLink.expires_at > now(),
    )
    if fetch_one(sa.select(MailLink.user_id).where(link)) is None:  # a guess locks nothing
        return None
    lock_account(user_id)
    address: str | None = execute(
        sa.delete(MailLink).where(link).returning(MailLink.address)
    ).scalar()
    mailbox = _lock_mailbox(user_id) if address else None
    # Meanwhile, another request may have used the link, or the address may have been replaced.
    if mailbox is None or mailbox.pending_address != address or mailbox.pending_until <= now():
        return None
    _replace_address(mailbox, address)
    return address


def forget_address(user_id: str) -> None:
    """Forget the address of a locked account, and one that is not confirmed."""
    mailbox = execute(_LOCKED_MAILBOX, owner=user_id).one_or_none()
    if mailbox:
        _replace_address(mailbox, None)


def _replace_address(mailbox: Row, address: str | None) -> None:
    """Set the confirmed address of a locked mailbox, end all links, and tell a former address."""
    user_id, former = mailbox.user_id, mailbox.address
    if former and former != address and sends_mails(current_app.config):
        id = new_id()
        add_rows(MAIL, [{"id": id, "kind": ADDRESS_CHANGED, "user_id": user_id}])
        execute(sa.insert(FormerAddress), id=id, user_id=user_id, address=former)
    _delete_links(user_id, CONFIRMATION, PASSWORD)
    _change(
        user_id,
        **{"address": address, "failures": 0, "failing_since": None},
        **{"pending_address": None, "pending_until": None},
        **_times(mailbox, {**mailbox._mapping, "address": address}),
    )


def change_settings(user_id: str, values: Mapping[str, Any]) -> None:
    """Change what the owner of a locked account is sent."""
    mailbox = _lock_mailbox(user_id)
    _change(user_id, **values, **_times(mailbox, {**mailbox._mapping, **values}))
    if values.get("mail") == EACH and mailbox.digested_until and sends_mails(current_app.config):
        # What the next digest would have had.
        enqueue(MAIL, DIGEST, user_id=user_id, about_at=mailbox.digested_until)


def end_mails(kind: str, key: str) -> None:
    """End the NOTIFICATIONS or the LETTER of a mailbox by its key, if there is one."""
    if fetch_one(sa.select(Mailbox.user_id).where(Mailbox.key == key)) is None:
        return
    ends: dict[str, dict[str, Any]] = {
        NOTIFICATIONS: {"mail": NONE, "digest_at": None, "digested_until": None},
        LETTER: {"letter": False, "letter_at": None},
    }
    execute(sa.update(Mailbox).where(Mailbox.key == key).values(ends[kind]))


def _times(old: Row, new: Mapping[str, Any]) -> dict[str, datetime | None]:
    """Return when a mailbox, as it will be, gets its next digest and its next letter."""
    time, zone, has_address = now(), new["time_zone"], new["address"] is not None
    digest_at = digested_until = letter_at = None
    if has_address and new["mail"] in {DAILY, WEEKLY}:
        digest_at = next_morning(zone, time, on_monday=new["mail"] == WEEKLY)
        digested_until = old.digested_until or time
    if has_address and new["letter"]:
        letter_at = next_morning(zone, time, on_monday=True)
    return {"digest_at": digest_at, "digested_until": digested_until, "letter_at": letter_at}


def _lock_mailbox(user_id: str) -> Row:
    """Return the locked mailbox of a locked account, which is added if there is none."""
    new = upsert(Mailbox, db.engine.dialect.name).on_conflict_do_nothing()
    execute(new, user_id=user_id)
    return execute(_LOCKED_MAILBOX, owner=user_id).one()


def _change(user_id: str, **values: Any) -> None:
    execute(sa.update(Mailbox).where(Mailbox.user_id == user_id).values(values))


def _delete_links(user_id: str, *purposes: str) -> None:
    own = sa.and_(MailLink.user_id == user_id, MailLink.purpose.in_(purposes))
    execute(sa.delete(MailLink).where(own))


def create_mail_link(user_id: str, purpose: str, address: str) -> str:
    """Return the code of a new link to an address. This is called when its mail is made."""
    code, secret_hash = new_code(user_id)
    lifetime = CONFIRMATION_LIFETIME if purpose == CONFIRMATION else PASSWORD_LIFETIME
    values = {"secret_hash": secret_hash, "user_id": user_id, "purpose": purpose}
    values |= {"address": address}
    execute(sa.insert(MailLink), **values, expires_at=now() + lifetime)
    purge_expired(MailLink)
    return code


def queue_password_link(name: str) -> None:
    """Send a link to set the password of the account with a username or an address.

    This does the same whether there is such an account or not, and whether a limit is reached: a
    mail to an account that does not exist is dropped when it is to be sent. Raise NoMail.
    """
    require_mail()
    by_address = "@" in name
    found = fetch_one(_BY_ADDRESS if by_address else _BY_NAME, lower=name.lower())
    address = (found and found.address) or name
    user_id = found.id if found and found.address else new_id()
    has_space = Hits().have_space(
        (PASSWORD_LIMIT, found.id if found else name.lower()),
        (PASSWORD_ADDRESS_LIMIT, address.lower()),
    )
    if not has_space:
        user_id = new_id()
    queue_mail(PASSWORD_LINKS if by_address else PASSWORD_LINK, user_id, is_urgent=True)


def find_mailbox(user_id: str) -> Row | None:
    """Return the mailbox of an account, in whatever state the account is."""
    return fetch_one(_MAILBOX, owner=user_id)


def find_unsuspended(user_id: str) -> Row | None:
    """Return an account that is active or waits for approval."""
    return fetch_one(_UNSUSPENDED, owner=user_id)


def gets_mails(member: Row | None) -> TypeGuard[Row]:
    """Return whether there is a member who has an address that works."""
    return member is not None and member.address is not None and member.failing_since is None


def find_recipient(user_id: str) -> Row | None:
    """Return a member with an address and its settings, if the account is active."""
    return fetch_one(_RECIPIENT, owner=user_id)


def list_sharers(address: str) -> Sequence[Row]:
    """Return the active members who share an address."""
    return fetch_all(_SHARERS, address=address)


def find_former_address(id: str) -> str | None:
    """Return the address to which a row of the outbox sends the notice that it was replaced."""
    row = fetch_one(sa.select(FormerAddress.address).where(FormerAddress.id == id))
    return row.address if row else None


def note_failure(user_id: str, address: str) -> None:
    """Note that an address was refused. After three times in a row, it is failing."""
    failures = Mailbox.failures + 1
    is_failing = sa.case((failures >= MAX_FAILURES, sa.func.coalesce(Mailbox.failing_since, now())))
    own = sa.and_(Mailbox.user_id == user_id, Mailbox.address == address)
    execute(sa.update(Mailbox).where(own).values(failures=failures, failing_since=is_failing))


def note_success(user_id: str, address: str) -> None:
    """Note that a mail to an address was accepted."""
    own = sa.and_(Mailbox.user_id == user_id, Mailbox.address == address, Mailbox.failures > 0)
    execute(sa.update(Mailbox).where(own).values(failures=0, failing_since=None))


def list_wanting_each(notification_id: str, time: datetime) -> Sequence[str]:
    """Return the members to whom a notification is mailed at once."""
    rows = fetch_all(_TO_EACH, notification=notification_id, time=time)
    return [row.user_id for row in rows]
