"""Threads: comments, their replies and the placeholders of deleted comments with replies.

Posts have the number of their comments and the time of the last one.
"""

from collections.abc import Collection
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import aliased

from posting.comments.models import Comment
from posting.comments.queries import LAST_COMMENT_AT
from posting.db.transactions import Row, execute, fetch_all, fetch_one
from posting.db.types import MILLISECOND, UtcDateTime, now
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
_PARENT = sa.select(
    Comment.post_id, Comment.content, Comment.created_at, Comment.thread_id, Comment.thread_at
).where(Comment.id == sa.bindparam("id"))


def get_parent(parent_id: str | None, post_id: str) -> Row | None:
    """Return the comment that a new comment replies to, or None if it is no reply.

    Raise 422 if the parent is on another post or deleted.
    """
    if parent_id is None:
        return None
    parent = fetch_one(_PARENT, id=parent_id)
    if parent is None or parent.content is None or parent.post_id != post_id:
        raise InvalidInput.at("/parent_id", NOT_A_PARENT)
    return parent


def timestamp_after(parent: Row | None) -> datetime:
    """Return the `created_at` of a new comment: now, or just after its parent if that is later."""
    return max(now(), parent.created_at + MILLISECOND) if parent else now()


def thread_of(parent: Row | None) -> dict[str, Any]:
    """Return the columns with the thread of a reply. A comment without a parent begins its own."""
    return {"thread_id": parent.thread_id, "thread_at": parent.thread_at} if parent else {}


def count_comment(post_id: str, created_at: datetime) -> None:
    """Count a new comment on a post."""
    execute(_COUNT_COMMENT, post=post_id, time=created_at)


def split_deleted(ids: Collection[str]) -> tuple[set[str], set[str], set[str]]:
    """Split comments to delete: some become placeholders, and the others are deleted.

    Return the ids of both, and the ids of parents that lose a reply and are not in `ids`.
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


def uncount(condition: sa.ColumnElement[bool]) -> sa.Update:
    """Return an UPDATE of the posts that subtracts comments from their counts."""
    number = sa.func.count().label("number")
    counts = sa.select(Comment.post_id, number).where(condition).group_by(Comment.post_id)
    deleted = counts.subquery()
    left = Post.comment_count - deleted.c.number
    return sa.update(Post).where(Post.id == deleted.c.post_id).values(comment_count=left)


def update_last_comment(posts: Collection[str]) -> sa.Update:
    """Return an UPDATE of the posts' `last_comment_at`."""
    return sa.update(Post).where(Post.id.in_(posts)).values(last_comment_at=LAST_COMMENT_AT)


def bare_placeholders(ids: Collection[str]) -> sa.Select[str]:
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
