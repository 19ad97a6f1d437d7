"""The facts about an account that moderators and operators see."""

from datetime import timedelta

import sqlalchemy as sa

from posting.accounts import sessions, tokens
from posting.accounts.models import SUSPENDED
from posting.accounts.store import find_details
from posting.comments.models import Comment
from posting.comments.store import count_comments_by
from posting.db.transactions import fetch_value
from posting.db.types import now
from posting.files.store import count_files_by
from posting.images.store import count_images_by
from posting.invitations.store import find_inviter_of, list_invited_by
from posting.moderation import schemas
from posting.moderation.models import Act
from posting.moderation.store import count_reports_on
from posting.posts.models import Post
from posting.posts.store import count_posts_by
from posting.web.schemas import Item


def describe_account(id: str) -> Item | None:
    """Return all facts about the account with this id, if there is one."""
    details = find_details(id)
    if details is None:
        return None
    return {
        **details,
        "sessions": len(sessions.list_sessions(id, current_id=None)),
        "tokens": len(tokens.list_tokens(id)),
        "posts": count_posts_by(id),
        "comments": count_comments_by(id),
        "images": count_images_by(id),
        "files": count_files_by(id),
        "invited_by": find_inviter_of(id),
        "invited": list_invited_by(id),
        "open_reports": count_reports_on(id, are_open=True),
        "closed_reports": count_reports_on(id, are_open=False),
    }


def describe_member(id: str) -> Item | None:
    """Return what moderators see of the account with this id, if there is one."""
    account = describe_account(id)
    if account is None:
        return None
    account["suspension"] = _suspension_of(account)
    return {name: account[name] for name in schemas.Member._declared_fields}


def find_suspension(id: str) -> Item | None:
    """Return the suspension of an account, if it is suspended."""
    account = find_details(id)
    return account and _suspension_of(account)


def _suspension_of(account: Item) -> Item | None:
    """Return the suspension of an account, whose details are given."""
    if account["state"] != SUSPENDED:
        return None
    return {
        "reason": account["suspension_reason"],
        "since": account["suspended_at"],
        "until": account["suspended_until"],
    }


def is_removal_under_way(user_id: str, moderator_id: str) -> bool:
    """Return whether a moderator has begun to remove what a user wrote, in this hour.

    The removal has ended when nothing from before it is left.
    """
    begun = sa.select(sa.func.max(Act.created_at)).where(
        Act.user_id == user_id,
        Act.target_kind == "content",
        Act.moderator_id == moderator_id,
        Act.created_at > now() - timedelta(hours=1),
    )
    begun_at = fetch_value(begun)
    return begun_at is not None and any(
        fetch_value(
            sa.select(sa.exists().where(kind.author_id == user_id, kind.created_at <= begun_at))
        )
        for kind in (Post, Comment)
    )
