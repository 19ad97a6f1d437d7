"""Rebuild the search index, and the times of last comments."""

import sqlalchemy as sa

from posting.db import search
from posting.db.engine import db, lift_time_limits, lock_tables
from posting.db.models import Post
from posting.db.queries import LAST_COMMENT_AT
from posting.ops.progress import progress


def rebuild() -> int:
    """Index all posts again, with the times of their last comments, and return their number.

    Nothing else can be written meanwhile.
    """
    wrong = sa.update(Post).where(Post.last_comment_at.is_distinct_from(LAST_COMMENT_AT))
    correct = wrong.values(last_comment_at=LAST_COMMENT_AT, updated_at=Post.updated_at)
    with db.engine.begin() as connection:
        lift_time_limits(connection)
        lock_tables(connection)
        posts = connection.scalar(sa.select(sa.func.count()).select_from(Post)) or 0
        with progress("Indexing posts", posts) as advance:
            for indexed in search.rebuild(connection):
                advance(indexed)
        connection.execute(correct)
    return posts
