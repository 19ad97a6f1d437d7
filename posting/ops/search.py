"""Rebuild what posts are found by."""

import sqlalchemy as sa

from posting.db import search
from posting.db.engine import db, lift_time_limits, lock_tables
from posting.db.models import Comment, Post
from posting.ops.progress import progress


def rebuild() -> int:
    """Index all posts again, with the times of their last comments, and return their number.

    Nothing else can be written meanwhile.
    """
    latest = (
        sa.select(sa.func.max(Comment.created_at))
        .where(Comment.post_id == Post.id)
        .scalar_subquery()
    )
    changed = sa.update(Post).where(Post.last_comment_at.is_distinct_from(latest))
    with db.engine.begin() as connection:
        lift_time_limits(connection)
        lock_tables(connection)
        posts = connection.scalar(sa.select(sa.func.count()).select_from(Post)) or 0
        with progress("Indexing posts", posts) as advance:
            for indexed in search.rebuild(connection):
                advance(indexed)
        connection.execute(changed.values(last_comment_at=latest, updated_at=Post.updated_at))
    return posts
