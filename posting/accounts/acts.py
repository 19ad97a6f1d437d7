"""The moderation log: the acts of moderators and operators on what belongs to other users."""

from posting.accounts.current_user import current_user
from posting.accounts.models import Act, User
from posting.db.base import db
from posting.web import audit

OPERATOR = "operator"


def record_deletion(kind: str, id: str, author_id: str | None) -> None:
    """Record that the current user deletes a row, unless it is their own."""
    if author_id != current_user.id:
        _record(
            Act(
                moderator=current_user.username,
                moderator_id=current_user.id,
                action="deleted",
                target_kind=kind,
                target_id=id,
                user_id=author_id,
            )
        )


def record_by_operator(action: str, user: User) -> None:
    """Record an action on an account by somebody with a shell on the machine."""
    _record(
        Act(
            moderator=OPERATOR,
            action=action,
            target_kind="user",
            target_id=user.id,
            user_id=user.id,
        )
    )


def _record(act: Act) -> None:
    db.session.add(act)
    audit.log("moderation", act=act.action, target=act.describe_target(act.user_id))
