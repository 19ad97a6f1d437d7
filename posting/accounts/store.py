"""Changes of accounts together with their entries in the index of names."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from posting.accounts import schemas, tokens
from posting.accounts.models import MODERATOR, User
from posting.accounts.names import INDEX
from posting.changes import store as changes
from posting.db.editing import edit
from posting.db.transactions import Row, execute
from posting.db.types import now
from posting.notifications.telling import forget_application, forget_what_moderators_read
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
        forget_application(id)
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


def edit_user(user: Row, values: Mapping[str, Any]) -> None:
    """Edit a locked account, and index it again if it has another name."""
    if edit(User, user, values):
        if not values.keys().isdisjoint({"username", "display_name"}):
            INDEX.replace([{**user._mapping, **values}])
        changes.record("user", user.id, None, "edited")


def set_role(user: Row, role: str) -> bool:
    """Set the role of a locked account, and return whether this changes anything."""
    if not edit(User, user, {"role": role}):
        return False
    changes.record("user", user.id, None, "edited")
    if role != MODERATOR:
        forget_what_moderators_read(user.id)
    return True
