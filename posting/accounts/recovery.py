"""Ways to a new password without the old one: links and recovery codes.

An operator, a moderator or an owner makes a link, or the service mails one. Links and codes work
once. The database has only hashes. A recovery code has 80 random bits, so a fast hash is enough.
The code of a link is the id of the account and a secret. Links to sign up have such codes, too,
with the id of the invitation.
"""

import hmac
import re
import secrets
from datetime import datetime, timedelta

import sqlalchemy as sa

from posting.accounts.models import RecoveryCode, ResetLink, User
from posting.accounts.sessions import hash_token
from posting.db.purge import purge_expired
from posting.db.transactions import execute, fetch_all, fetch_value
from posting.db.types import ID_LENGTH, Rfc3339Text, now
from posting.mail.models import PASSWORD, Mailbox, MailLink
from posting.web.errors import Message
from posting.web.schemas import Item, to_item

INVALID_LINK = Message("invalid_code", "This link has expired or has been used. Ask for another.")
LINK_LIFETIME = timedelta(days=1)
CODES_PER_USER = 10
ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"  # Crockford's, without letters that look like digits
ALIKE = str.maketrans("ILO", "110")
GROUPS, GROUP_LENGTH = 4, 4

_TIME = sa.bindparam("time", type_=ResetLink.expires_at.type)
_LINKS = sa.select(ResetLink.secret_hash).where(
    ResetLink.user_id == sa.bindparam("id"), ResetLink.expires_at > _TIME
)
_MAILED_LINKS = (
    sa.select(MailLink.secret_hash)
    .join(Mailbox, Mailbox.user_id == MailLink.user_id)
    .where(
        MailLink.user_id == sa.bindparam("id"),
        MailLink.purpose == PASSWORD,
        MailLink.expires_at > _TIME,
        MailLink.address == Mailbox.address,  # which may have been replaced just before
    )
)
_LINKS_OF_BOTH_KINDS = sa.union_all(_LINKS, _MAILED_LINKS)
_ID_BY_NAME = sa.select(User.id).where(sa.func.lower(User.username) == sa.bindparam("username"))
# One row in any case, because to read ten rows takes longer than none.
_CODES = sa.select(sa.func.aggregate_strings(RecoveryCode.code_hash, " ")).where(
    RecoveryCode.user_id == sa.bindparam("id")
)
_NO_CODES = " ".join(["x" * 64] * CODES_PER_USER)
_CREATED_AT = sa.type_coerce(sa.func.max(RecoveryCode.created_at), Rfc3339Text())
_LEFT = sa.select(sa.func.count().label("left"), _CREATED_AT.label("created_at")).where(
    RecoveryCode.user_id == sa.bindparam("id")
)


def new_code(id: str) -> tuple[str, str]:
    """Return a new code with an id, and the hash of its secret."""
    secret = secrets.token_urlsafe(32)
    return id + secret, hash_token(secret)


def split_code(code: str) -> tuple[str, str]:
    """Return the id and the secret of a code that was sent."""
    return code[:ID_LENGTH], code[ID_LENGTH:]


def is_secret(secret: str, secret_hash: str) -> bool:
    """Return whether a hash is that of a secret. The time does not depend on where they differ."""
    return hmac.compare_digest(hash_token(secret), secret_hash)


def create_link(user_id: str, lifetime: timedelta) -> tuple[str, datetime]:
    """Replace the link of a locked account. Return the code of the new one and when it expires."""
    code, secret_hash = new_code(user_id)
    expires_at = now() + lifetime
    delete_link(user_id)
    execute(sa.insert(ResetLink), user_id=user_id, secret_hash=secret_hash, expires_at=expires_at)
    purge_expired(ResetLink)
    return code, expires_at


def is_link(code: str) -> bool:
    """Return whether there is a link with this code."""
    id, secret = split_code(code)
    links = fetch_all(_LINKS_OF_BOTH_KINDS, id=id, time=now())
    return any(is_secret(secret, link.secret_hash) for link in links)


def find_account_id(username: str) -> str | None:
    """Return the id of the account with a name. To read a whole row takes longer than none."""
    id: str | None = fetch_value(_ID_BY_NAME, username=username.lower())
    return id


def is_recovery_code(id: str | None, code: str) -> bool:
    """Return whether this is a recovery code of the account with this id.

    This takes the same time whether there is such an account or not.
    """
    known = fetch_value(_CODES, id=id or "") or _NO_CODES
    code_hash = _hash_code(code)
    matches = [hmac.compare_digest(code_hash, each) for each in known.split()]
    return id is not None and any(matches)


def use_link(user_id: str, code: str) -> bool:
    """Delete the verified link of a locked account, and return whether it was still there."""
    secret_hash = hash_token(split_code(code)[1])
    return any(
        execute(
            sa.delete(table).where(table.user_id == user_id, table.secret_hash == secret_hash)
        ).rowcount
        for table in (ResetLink, MailLink)
    )


def use_recovery_code(user_id: str, code: str) -> bool:
    """Delete a verified code of a locked account, and return whether it was still there."""
    own = sa.delete(RecoveryCode).where(RecoveryCode.user_id == user_id)
    return bool(execute(own.where(RecoveryCode.code_hash == _hash_code(code))).rowcount)


def replace_recovery_codes(user_id: str) -> list[str]:
    """Replace the recovery codes of a locked account, and return the new ones."""
    codes, time = [_new_recovery_code() for _ in range(CODES_PER_USER)], now()
    delete_recovery_codes(user_id)
    execute(
        sa.insert(RecoveryCode),
        [{"user_id": user_id, "code_hash": _hash_code(code), "created_at": time} for code in codes],
    )
    return codes


def count_recovery_codes(user_id: str) -> Item:
    """Return how many recovery codes an account has left, and since when, as it is sent."""
    [row] = fetch_all(_LEFT, id=user_id)
    return to_item(row)


def delete_link(user_id: str) -> None:
    """Delete the link of an account, if there is one."""
    execute(sa.delete(ResetLink).where(ResetLink.user_id == user_id))


def end_mailed_links(user_id: str) -> None:
    """End the links that were mailed, and the confirmation of an address that is pending."""
    execute(sa.delete(MailLink).where(MailLink.user_id == user_id))
    own = sa.update(Mailbox).where(Mailbox.user_id == user_id)
    execute(own, pending_address=None, pending_until=None)


def delete_recovery_codes(user_id: str) -> None:
    """Delete the recovery codes of an account."""
    execute(sa.delete(RecoveryCode).where(RecoveryCode.user_id == user_id))


def _new_recovery_code() -> str:
    groups = ("".join(secrets.choice(ALPHABET) for _ in range(GROUP_LENGTH)) for _ in range(GROUPS))
    return "-".join(groups)


def _hash_code(code: str) -> str:
    """Return the hash of a recovery code, in whatever way somebody has typed it."""
    return hash_token(re.sub(r"[\s-]", "", code).upper().translate(ALIKE))
