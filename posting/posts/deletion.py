"""Deletion of posts, with all that belongs to them, in steps."""

from collections.abc import Sequence
from contextlib import suppress
from itertools import accumulate, takewhile
from threading import Lock
from time import sleep

import sqlalchemy as sa

from posting.attachments import forget_owners_of_posts
from posting.changes import store as changes
from posting.db.cascades import PAUSE, ROWS_PER_STEP, Step, delete_below
from posting.db.transactions import execute, fetch_all, fetch_one, unit_of_work
from posting.db.types import now
from posting.moderation.store import close_reports_on_posts
from posting.posts.models import DELETED_POSTS, Post
from posting.posts.store import INDEX, lock_posts
from posting.topics.models import PostTopic

POSTS_PER_STEP = 100
COMMENTS_PER_STEP = 1000  # below the posts of a step; a post with more is a step of its own
# In place of the texts of a post of which only the rows that belong to it are left.
NO_TEXT = {
    column.name: None if column.nullable else "-"
    for column in Post.__table__.columns
    if isinstance(column.type, sa.String) and not column.primary_key and not column.foreign_keys
}

_finishing = Lock()


def delete_posts(condition: sa.ColumnElement[bool]) -> None:
    """Delete the locked posts that match a condition.

    After this, no reader sees them. If very many rows belong to them, some of these rows are left:
    call `finish_deletions` after the commit.
    """
    posts = fetch_all(sa.select(Post.created_at, Post.id, Post.version).where(condition))
    if not posts:
        return
    ids = [post.id for post in posts]
    changes.record_deletion_of_posts(ids)
    close_reports_on_posts(ids)
    INDEX.remove([(post.created_at, post.id) for post in posts])
    execute(sa.delete(PostTopic).where(PostTopic.post_id.in_(ids)))
    done = delete_below(Post, ids, ROWS_PER_STEP)
    execute(sa.delete(Post).where(Post.id.in_(done)))
    if left := [post._mapping for post in posts if post.id not in done]:
        hidden = {"deleted_at": now(), "author_id": None, "pinned_at": None, **NO_TEXT}
        execute(sa.update(Post).where(Post.id.in_([post["id"] for post in left])).values(hidden))
        INDEX.add(INDEX.split_all([{**post, **hidden} for post in left]))


def delete_post(id: str) -> None:
    """Delete a locked post, like `delete_posts`."""
    delete_posts(Post.id == id)


def finish_deletions() -> None:
    """Delete the rows that are left of deleted posts, in steps, such as after a process was killed.

    One thread of a process does this for all, so that no other deletion waits for it. If the
    database is too busy, the rows stay until the next deletion or the next start of the service.
    """
    if not _finishing.acquire(blocking=False):
        return
    try:
        with suppress(sa.exc.SQLAlchemyError):
            while _are_left():
                with unit_of_work():
                    is_done = not _finish_step()
                if is_done:
                    break
                sleep(PAUSE)
    finally:
        _finishing.release()


def _are_left() -> bool:
    """Return whether rows of deleted posts are left."""
    return fetch_one(DELETED_POSTS.limit(1)) is not None


def _finish_step() -> bool:
    """Delete some of what is left of a deleted post, and return whether there was one."""
    oldest = sa.select(Post.id, Post.created_at).where(Post.deleted_at.is_not(None))
    oldest = oldest.order_by(Post.deleted_at, Post.id).limit(1)
    post = execute(oldest.with_for_update(skip_locked=True)).one_or_none()
    if post is None:
        return False
    if delete_below(Post, [post.id], ROWS_PER_STEP):
        INDEX.remove([(post.created_at, post.id)])
        execute(sa.delete(Post).where(Post.id == post.id))
    return True


def _remove_author(condition: sa.ColumnElement[bool]) -> None:
    """Remove the author of the locked posts that match a condition."""
    update = sa.update(Post).where(condition).values(author_id=None).returning(Post.id)
    if ids := execute(update).scalars().all():
        changes.record_changes("post", {id: id for id in ids}, "edited")
        forget_owners_of_posts(ids)


def clear_step(user_id: str, *, with_content: bool) -> Step:
    """Clear some posts of a user, or delete some of what is left of deleted posts."""
    own = sa.select(Post.id, Post.comment_count).where(Post.author_id == user_id).order_by(Post.id)
    posts = execute(own.limit(POSTS_PER_STEP).with_for_update()).all()
    if not posts:
        return Step(0, has_more=_finish_step())
    ids = [post.id for post in posts]
    if with_content:
        ids = ids[: _count_in_step([post.comment_count for post in posts])]
        delete_posts(Post.id.in_(ids))
    else:
        _remove_author(Post.id.in_(ids))
    has_more = len(ids) < len(posts) or len(ids) == POSTS_PER_STEP
    return Step(len(ids), has_more=has_more or _are_left())


def _count_in_step(comment_counts: Sequence[int]) -> int:
    """Return how many posts with these numbers of comments are deleted in one step."""
    in_step = takewhile(lambda total: total <= COMMENTS_PER_STEP, accumulate(comment_counts))
    return max(1, len(list(in_step)))


def clear_rest(user_id: str, *, with_content: bool) -> None:
    """Clear the posts that a user has written since the last step, and lock them first."""
    lock_posts(Post.author_id == user_id)
    clear = delete_posts if with_content else _remove_author
    clear(Post.author_id == user_id)
