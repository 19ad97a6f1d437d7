"""Rebuild the search index, and correct what posts say about their comments."""

import sqlalchemy as sa

from posting.comments.queries import COMMENT_COUNT, LAST_COMMENT_AT
from posting.db.base import db
from posting.db.transactions import lift_time_limits
from posting.ops.files import command_errors
from posting.ops.progress import progress
from posting.posts import search
from posting.posts.models import Post

BATCH = 500
IS_WRONG = sa.or_(
    Post.comment_count != COMMENT_COUNT, Post.last_comment_at.is_distinct_from(LAST_COMMENT_AT)
)
CORRECT = {"comment_count": COMMENT_COUNT, "last_comment_at": LAST_COMMENT_AT}


def rebuild() -> int:
    """Index all posts, correct what they say about their comments, and return the number of posts.

    Raise ClickException if the database fails.
    """
    with command_errors("The search index cannot be rebuilt"):
        with db.engine.connect().execution_options(writes=False) as connection:
            lift_time_limits(connection)
            posts = connection.scalar(sa.select(sa.func.count()).select_from(Post)) or 0
            ids = connection.scalars(sa.select(Post.id).where(IS_WRONG).order_by(Post.id)).all()
        for start in range(0, len(ids), BATCH):
            batch = ids[start : start + BATCH]
            locked = sa.select(Post.id).where(Post.id.in_(batch)).order_by(Post.id)
            with db.engine.begin() as connection:
                connection.execute(locked.with_for_update())
                connection.execute(sa.update(Post).where(Post.id.in_(batch)).values(CORRECT))
        with progress("Indexing posts", posts) as advance:
            for indexed in search.rebuild():
                advance(indexed)
    return posts
