"""The moderation log: the acts of moderators and operators on what belongs to other users."""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import aliased

from posting.accounts.current_user import current_user
from posting.accounts.models import MEMBER, OWNER, User
from posting.accounts.schemas import Author
from posting.db.transactions import Row, execute, snapshot
from posting.db.types import Rfc3339Text
from posting.moderation.models import Act
from posting.moderation.store import notify_of_removal
from posting.web.logs import audit
from posting.web.pagination import Page, paginate
from posting.web.schemas import nested_columns

OPERATOR = "operator"

_INSERT = sa.insert(Act)
_moderator, _user = aliased(User), aliased(User)
_ACTS = (
    sa.select(
        Act.id,
        sa.type_coerce(Act.created_at, Rfc3339Text()).label("created_at"),
        Act.action,
        Act.moderator.label("by"),
        *nested_columns("moderator", Author, _moderator),
        Act.target_id.label("target"),
        Act.target_kind.label("target.kind"),
        *nested_columns("user", Author, _user),
        Act.reason,
    )
    .select_from(Act)
    .outerjoin(_moderator, _moderator.id == Act.moderator_id)
    .outerjoin(_user, _user.id == Act.user_id)
)
_ACTS_ON_USER = _ACTS.where(Act.user_id == sa.bindparam("user"))


def record_act(
    action: str, kind: str, id: str, user_id: str | None, reason: str | None = None
) -> None:
    """Record what the current user does as a moderator to a row of a user."""
    _insert_act(
        moderator=current_user.username,
        moderator_id=current_user.id,
        action=action,
        target_kind=kind,
        target_id=id,
        user_id=user_id,
        reason=reason,
    )


def action_of(former: str, role: str) -> str:
    """Return the act by which somebody with a former role gets another one."""
    if role == OWNER:
        return "made owner"
    return "promoted" if former == MEMBER else "demoted"


def record_removal(
    kind: str,
    id: str,
    author_id: str | None,
    *,
    excerpt: str | None,
    reason: str | None,
    post_id: str | None = None,
) -> None:
    """Record that the current user deletes a text, an image or a file, and tell its author.

    This does nothing if it is their own. `excerpt` is the beginning of the text, as plain text. For
    an image or a file, `post_id` is the post that it is on.
    """
    if author_id != current_user.id:
        record_act("deleted", kind, id, author_id, reason)
        notify_of_removal(author_id, reason, excerpt=excerpt, post_id=post_id)


def record_act_by_operator(
    action: str, kind: str, id: str, user_id: str, reason: str | None = None
) -> None:
    """Record what somebody with a shell on the machine does to a row of a user."""
    target = {"target_kind": kind, "target_id": id, "user_id": user_id}
    _insert_act(moderator=OPERATOR, action=action, reason=reason, **target)


def _insert_act(**values: Any) -> None:
    execute(_INSERT, **values)
    target = describe_target(values["target_kind"], values["target_id"], values["user_id"])
    audit("moderation", act=values["action"], target=target)


def describe_target(kind: str, id: str, user: str | None) -> str:
    """Return the target of an act in words. `user` is the name or the id of its user."""
    if kind == "user":
        return f"user {user}"
    return f"{kind} {id}" + (f" of {user}" if user else "")


def list_acts(*, limit: int, cursor: str | None, user_id: str | None = None) -> Page:
    """Return a page of the log, newest first, or of the acts on a user."""
    return paginate(
        _ACTS_ON_USER if user_id else _ACTS,
        limit=limit,
        cursor=cursor,
        name="acts_on_user" if user_id else "acts",
        newest_first=True,
        parameters={"user": user_id} if user_id else {},
    )


def list_latest_acts(limit: int) -> Sequence[Row]:
    """Return the latest acts, newest first.

    A row has the columns of `Act`, and the current names of its moderator and of the user of its
    target, `moderator_name` and `user_name`, which are None if there is no such account.
    """
    moderator, user = aliased(User), aliased(User)
    statement = (
        sa.select(
            Act.__table__,
            moderator.username.label("moderator_name"),
            user.username.label("user_name"),
        )
        .select_from(Act)
        .outerjoin(moderator, moderator.id == Act.moderator_id)
        .outerjoin(user, user.id == Act.user_id)
        .order_by(Act.created_at.desc(), Act.id)
        .limit(limit)
    )
    with snapshot() as connection:  # without a time limit, for commands
        return connection.execute(statement).all()
