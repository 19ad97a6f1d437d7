"""The moderation log: the acts of moderators and operators on what belongs to other users."""

from typing import Any

import sqlalchemy as sa

from posting.accounts.current_user import current_user
from posting.accounts.models import Act
from posting.db.transactions import execute
from posting.moderation.store import notify_of_removal
from posting.web import audit

OPERATOR = "operator"

_INSERT = sa.insert(Act)


def record(action: str, kind: str, id: str, user_id: str | None, reason: str | None = None) -> None:
    """Record what the current user does as a moderator to a row of a user."""
    _record(
        moderator=current_user.username,
        moderator_id=current_user.id,
        action=action,
        target_kind=kind,
        target_id=id,
        user_id=user_id,
        reason=reason,
    )


def record_removal(
    kind: str,
    id: str,
    author_id: str | None,
    *,
    excerpt: str | None,
    reason: str | None,
    post_id: str | None = None,
) -> None:
    """Record that the current user deletes a text or an image, and tell its author.

    This does nothing if it is their own. `excerpt` is the beginning of the text, as plain text. For
    an image, `post_id` is the post that it is on.
    """
    if author_id != current_user.id:
        record("deleted", kind, id, author_id, reason)
        notify_of_removal(author_id, reason, excerpt=excerpt, post_id=post_id)


def record_by_operator(
    action: str, kind: str, id: str, user_id: str, reason: str | None = None
) -> None:
    """Record what somebody with a shell on the machine does to a row of a user."""
    target = {"target_kind": kind, "target_id": id, "user_id": user_id}
    _record(moderator=OPERATOR, action=action, reason=reason, **target)


def _record(**values: Any) -> None:
    execute(_INSERT, **values)
    target = describe_target(values["target_kind"], values["target_id"], values["user_id"])
    audit.log("moderation", act=values["action"], target=target)


def describe_target(kind: str, id: str, user: str | None) -> str:
    """Return the target of an act in words. `user` is the name or the id of its user."""
    if kind == "user":
        return f"user {user}"
    return f"{kind} {id}" + (f" of {user}" if user else "")
