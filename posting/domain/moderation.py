"""The log of what moderators and operators do to other users."""

from posting.auth.login import current_user
from posting.db.engine import db
from posting.db.models import ModerationAction, User
from posting.http import audit

OPERATOR = "operator"


def record_deletion(kind: str, id: str, author_id: str | None) -> None:
    """Record that the current user deletes a row, unless it is their own."""
    if author_id != current_user.id:
        target = f"{kind} {id}" + (f" of {author_id}" if author_id else "")
        moderator = {"moderator": current_user.username, "moderator_id": current_user.id}
        _record("deleted", target, **moderator)


def record_by_operator(act: str, user: User) -> None:
    """Record an action on a user by somebody with a shell on the machine."""
    _record(act, f"user {user.id}", moderator=OPERATOR)


def _record(act: str, target: str, **by: str) -> None:
    db.session.add(ModerationAction(act=act, target=target, **by))
    audit.log("moderation", act=act, target=target)
