"""What moderators and operators see of an account."""

from posting.accounts import sessions, tokens
from posting.accounts.queries import find_details
from posting.comments.store import count_comments_by
from posting.images.store import count_images_by
from posting.invitations.queries import find_inviter_of, list_invited_by
from posting.moderation import schemas
from posting.moderation.queries import count_reports_on, suspension_of
from posting.posts.store import count_posts_by
from posting.web.rows import Item


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
    account["suspension"] = suspension_of(account)
    return {name: account[name] for name in schemas.Member._declared_fields}
