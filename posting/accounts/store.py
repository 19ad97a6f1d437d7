"""Changes of accounts together with their entries in the index of names."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from posting.accounts import schemas, tokens
from posting.accounts.events import AccountEdited, ApplicationDecided, ModeratorDemoted
from posting.accounts.models import MODERATOR, User
from posting.accounts.names import INDEX
from posting.db.editing import edit
from posting.db.events import announce
from posting.db.transactions import Row, execute
from posting.db.types import now
from posting.web.rows import Item, insert, to_item

_INSERT = insert(schemas.User, User)
_APPROVE = (
    sa.update(User)
    .where(User.id == sa.bindparam("user"), User.is_applying)
    .values(pending_since=None)
)


def insert_user(**values: Any) -> Item:
    """Insert an account, and return it as others see it."""
    user = to_item(execute(_INSERT, **values).one())
    INDEX.add([user])
    return user


def insert_users(rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert new accounts by their columns."""
    execute(sa.insert(User), rows)
    INDEX.add(rows)


def approve_account(id: str) -> bool:
    """Approve an account, and return whether it was waiting for that."""
    is_approved = bool(execute(_APPROVE, user=id).rowcount)
    if is_approved:
        announce(ApplicationDecided(id))
    return is_approved


def suspend(user_id: str, *, reason: str | None, until: datetime | None) -> datetime:
    """Suspend a locked account until a time, or until it is restored, and sign it out everywhere.

    Return the time from which it is suspended.
    """
    time = now()
    values = {"suspended_at": time, "suspended_until": until, "suspension_reason": reason}
    execute(sa.update(User).where(User.id == user_id).values(values))
    tokens.revoke_access(user_id)
    return time


def restore(user_id: str) -> None:
    """End the suspension of a locked account."""
    values = dict.fromkeys(("suspended_at", "suspended_until", "suspension_reason"))
    execute(sa.update(User).where(User.id == user_id).values(values))


def edit_user(user: Row, changes: Mapping[str, Any]) -> None:
    """Edit a locked account, and index it again if it has another name."""
    if edit(User, user, changes):
        if not changes.keys().isdisjoint({"username", "display_name"}):
            INDEX.replace([{**user._mapping, **changes}])
        announce(AccountEdited(user.id))


def set_role(user: Row, role: str) -> bool:
    """Set the role of a locked account, and return whether this changes anything."""
    if not edit(User, user, {"role": role}):
        return False
    announce(AccountEdited(user.id))
    if role != MODERATOR:
        announce(ModeratorDemoted(user.id))
    return True
