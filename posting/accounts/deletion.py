"""Deletion of accounts, with or without what their members have written."""

from collections.abc import Callable
from functools import partial
from time import sleep

import sqlalchemy as sa

from posting.accounts.models import User
from posting.attachments import delete_unattached
from posting.changes import store as changes
from posting.comments import deletion as comments
from posting.comments.store import count_comments_by
from posting.db.cascades import PAUSE, Step, delete_some
from posting.db.transactions import after_commit, execute, unit_of_work
from posting.notifications import deletion as notifications
from posting.outbox.models import Outgoing
from posting.posts import deletion as posts
from posting.posts.store import count_posts_by
from posting.reactions import deletion as reactions
from posting.web.idempotency import IdempotencyKey

OUTGOING_PER_STEP = 2000
RESPONSES_PER_STEP = 500  # with up to a hundred kilobytes each


def count_content(user_id: str) -> int:
    """Return how many posts and comments a user has written."""
    return count_comments_by(user_id) + count_posts_by(user_id)


def clear_account(
    user_id: str, *, with_content: bool, advance: Callable[[int], None] = lambda _rows: None
) -> None:
    """Delete what a user has written, or remove its author, in several units of work.

    In one transaction, very much content would block other writers for too long. After each step,
    `advance` is called with the number of posts and comments that it has cleared.
    """
    for step in (  # in the order of their locks
        partial(comments.clear_step, user_id, with_content=with_content),
        partial(posts.clear_step, user_id, with_content=with_content),
        partial(reactions.clear_step, user_id),
        partial(notifications.clear_step, user_id),
        partial(_delete_outgoing, user_id),
        partial(_delete_responses, user_id),
    ):
        has_more = True
        while has_more:
            with unit_of_work():
                cleared, has_more = step()
            if cleared:
                advance(cleared)
            if has_more:
                sleep(PAUSE)


def delete_a_step(user_id: str) -> Step:
    """Delete some of what a user has written.

    This is for a unit of work of its own. Notifications stay.
    """
    step = comments.clear_step(user_id, with_content=True)
    if step.cleared or step.has_more:  # some of its reactions may go before a comment
        return step
    return posts.clear_step(user_id, with_content=True)


def delete_account(user_id: str, *, with_content: bool) -> None:
    """Delete a locked account, its sessions, and what `clear_account` has left."""
    comments.clear_rest(user_id, with_content=with_content)
    posts.clear_rest(user_id, with_content=with_content)
    reactions.clear_rest(user_id)
    delete_unattached(user_id)
    after_commit(partial(notifications.clear_late, user_id))
    deleted = sa.delete(User).where(User.id == user_id).returning(User.pending_since)
    if execute(deleted).scalar_one() is None:  # others could see it
        changes.record_change("user", user_id, None, "deleted")


def _delete_outgoing(user_id: str) -> Step:
    """Delete some of what is to be sent to a user. What is added later finds no account."""
    deleted = delete_some(Outgoing, Outgoing.user_id == user_id, OUTGOING_PER_STEP)
    return Step(0, has_more=deleted == OUTGOING_PER_STEP)


def _delete_responses(user_id: str) -> Step:
    """Delete some of the responses that are stored under the keys of a user's requests."""
    own = IdempotencyKey.user_id == user_id
    deleted = delete_some(IdempotencyKey, own, RESPONSES_PER_STEP)
    return Step(0, has_more=deleted == RESPONSES_PER_STEP)
