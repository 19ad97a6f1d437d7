"""What moderators and operators do to others, written down beside what they do."""

from posting.auth.sessions import current_user
from posting.db.engine import db
from posting.db.models import ModerationAct, User
from posting.http import audit

OPERATOR = "operator"


def record_deletion(kind: str, id: str, author_id: str | None) -> None:
    """Record that the user who asks deletes something, unless it is their own."""
    moderator = current_user()
    if author_id != moderator.id:
        target = f"{kind} {id}" + (f" of {author_id}" if author_id else "")
        _record("deleted", target, moderator=moderator.username, moderator_id=moderator.id)


def record_by_operator(act: str, user: User) -> None:
    """Record what somebody with a shell on the machine did to a user."""
    _record(act, f"user {user.id}", moderator=OPERATOR)


def _record(act: str, target: str, **by: str) -> None:
    db.session.add(ModerationAct(act=act, target=target, **by))
    audit.log("moderation", act=act, target=target)
