"""Threads: comments, their replies and the placeholders of deleted comments with replies."""

from collections.abc import Collection
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.orm import aliased

from posting.accounts.deletion import Content
from posting.comments.models import Comment
from posting.comments.queries import LAST_COMMENT_AT
from posting.db.transactions import Row, execute, fetch_all, fetch_one
from posting.db.types import MILLISECOND, UtcDateTime, now
from posting.posts.locks import lock_posts
from posting.posts.models import Post
from posting.web.errors import InvalidInput
from posting.web.messages import Message

NOT_A_PARENT = Message("no_such_parent", "Must be a comment on this post that is not deleted.")
_TIME = sa.bindparam("time", type_=UtcDateTime())
_COUNT_COMMENT = (
    sa.update(Post)
    .where(Post.id == sa.bindparam("post"))
    .values(
        comment_count=Post.comment_count + 1,
        last_comment_at=sa.case((Post.last_comment_at > _TIME, Post.last_comment_at), else_=_TIME),
    )
)
_PARENT = sa.select(Comment.post_id, Comment.content, Comment.created_at)
_PARENT = _PARENT.where(Comment.id == sa.bindparam("id"))
COMMENTS_PER_STEP = 2000


def get_parent(parent_id: str | None, post_id: str) -> Row | None:
    """Return the comment that a new comment replies to, if any.

    Raise 422 unless it is on the same post and not deleted.
    """
    if parent_id is None:
        return None
    parent = fetch_one(_PARENT, id=parent_id)
    if parent is None or parent.content is None or parent.post_id != post_id:
        raise InvalidInput.at("/parent_id", NOT_A_PARENT)
    return parent


def timestamp_after(parent: Row | None) -> datetime:
    """Return the `created_at` of a new comment: now, but later than its parent's."""
    return max(now(), parent.created_at + MILLISECOND) if parent else now()


def count_comment(post_id: str, created_at: datetime) -> None:
    """Count a new comment on a post."""
    execute(_COUNT_COMMENT, post=post_id, time=created_at)


def delete_comments(ids: Collection[str]) -> None:
    """Delete comments that are not placeholders, a few thousand at most, of locked posts.

    Comments with remaining replies become placeholders. Placeholders above the others are deleted
    if they have no replies left.
    """
    commented = sa.select(Comment.post_id).where(Comment.id.in_(ids)).distinct()
    posts = [row.post_id for row in fetch_all(commented)]
    remaining, deleted, parents = _split(ids)
    empty = {
        "content": None,
        "author_id": None,
        "version": Comment.version + 1,  # like an edit
        "updated_at": now(),
    }
    for statement in (
        _uncount(Comment.id.in_(ids)),
        sa.update(Comment).where(Comment.id.in_(remaining)).values(empty),
        sa.delete(Comment).where(Comment.id.in_(deleted)),
        sa.delete(Comment).where(Comment.id.in_(_bare_placeholders(parents))),
        update_last_comment(posts),
    ):
        execute(statement)


def _split(ids: Collection[str]) -> tuple[set[str], set[str], set[str]]:
    """Split comments into those that become placeholders and those to delete.

    Return also the parents of the latter outside of `ids`.
    """
    rows = fetch_all(sa.select(Comment.id, Comment.parent_id).where(Comment.id.in_(ids)))
    parents: dict[str, str | None] = {row.id: row.parent_id for row in rows}
    replies = sa.select(Comment.id, Comment.parent_id).where(Comment.parent_id.in_(ids))
    remaining: set[str] = set()
    for reply in fetch_all(replies):
        ancestor: str | None = None if reply.id in parents else reply.parent_id
        while ancestor and ancestor in parents and ancestor not in remaining:
            remaining.add(ancestor)
            ancestor = parents[ancestor]
    deleted = parents.keys() - remaining
    outside = {parent for id in deleted if (parent := parents[id]) and parent not in parents}
    return remaining, deleted, outside


def _uncount(condition: sa.ColumnElement[bool]) -> sa.Update:
    number = sa.func.count().label("number")
    counts = sa.select(Comment.post_id, number).where(condition).group_by(Comment.post_id)
    deleted = counts.subquery()
    left = Post.comment_count - deleted.c.number
    return sa.update(Post).where(Post.id == deleted.c.post_id).values(comment_count=left)


def update_last_comment(posts: Collection[str]) -> sa.Update:
    """Return an UPDATE of the posts' `last_comment_at`."""
    return sa.update(Post).where(Post.id.in_(posts)).values(last_comment_at=LAST_COMMENT_AT)


def _bare_placeholders(ids: Collection[str]) -> sa.Select[str]:
    """Select the placeholders among `ids` and their ancestors that have no replies left.

    NOT EXISTS, because Postgres may scan the whole set for each row of a NOT IN.
    """
    placeholders = sa.select(Comment.id, Comment.parent_id).where(Comment.content.is_(None))
    chain = _with_placeholders_above(placeholders.where(Comment.id.in_(ids)), "chain")
    child, in_chain = aliased(Comment), chain.alias()
    is_outside = ~sa.exists().where(in_chain.c.id == child.id)
    has_reply = sa.exists().where(child.parent_id == chain.c.id, is_outside)
    with_reply = sa.select(chain.c.id, chain.c.parent_id).where(has_reply)
    needed = _with_placeholders_above(with_reply, "needed")
    return sa.select(chain.c.id).where(~sa.exists().where(needed.c.id == chain.c.id))


def _with_placeholders_above(start: sa.Select[str, str | None], name: str) -> sa.CTE:
    rows = start.cte(name, recursive=True)
    parent = aliased(Comment)
    return rows.union(
        sa.select(parent.id, parent.parent_id)
        .join(rows, parent.id == rows.c.parent_id)
        .where(parent.content.is_(None))
    )


def _clear_step(user_id: str, with_content: bool) -> bool:
    """Clear the newest comments of a user.

    Replies are newer than their parents, so this order leaves few placeholders to delete later.
    """
    own = sa.select(Comment.id, Comment.post_id).where(Comment.author_id == user_id)
    newest_first = own.order_by(Comment.created_at.desc(), Comment.id.desc())
    rows = fetch_all(newest_first.limit(COMMENTS_PER_STEP))
    lock_posts(Post.id.in_({row.post_id for row in rows}))
    still_own = sa.select(Comment.id).where(
        Comment.id.in_([row.id for row in rows]), Comment.author_id == user_id
    )
    ids = [row.id for row in fetch_all(still_own)]
    if with_content:
        delete_comments(ids)
    else:
        execute(sa.update(Comment).where(Comment.id.in_(ids)).values(author_id=None))
    return len(rows) == COMMENTS_PER_STEP


def _clear_rest(user_id: str, with_content: bool) -> None:
    """Lock the posts that a user has commented on or written, all in one order."""
    written = sa.select(Post.id).where(Post.author_id == user_id)
    commented = sa.select(Comment.post_id).where(Comment.author_id == user_id)
    lock_posts(Post.id.in_(written.union(commented)))
    if with_content:
        own = sa.select(Comment.id).where(Comment.author_id == user_id)
        delete_comments([row.id for row in fetch_all(own)])


CONTENT = Content(_clear_step, _clear_rest)
