"""Rebuild the search index, and the times of last comments."""

import sqlalchemy as sa

from posting.db import search
from posting.db.engine import db, lift_time_limits
from posting.db.models import Post
from posting.db.queries import LAST_COMMENT_AT
from posting.domain.threads import update_last_comment
from posting.ops.files import command_errors
from posting.ops.progress import progress

BATCH = 500


def rebuild() -> int:
    """Index all posts again, correct the times of their last comments, and return their number.

    Raise ClickException if the database fails.
    """
    with command_errors("The search index cannot be rebuilt"):
        with db.engine.connect().execution_options(writes=False) as connection:
            lift_time_limits(connection)
            posts = connection.scalar(sa.select(sa.func.count()).select_from(Post)) or 0
            wrong = sa.select(Post.id).where(Post.last_comment_at.is_distinct_from(LAST_COMMENT_AT))
            ids = connection.scalars(wrong.order_by(Post.id)).all()
        for start in range(0, len(ids), BATCH):
            batch = ids[start : start + BATCH]
            locked = sa.select(Post.id).where(Post.id.in_(batch)).order_by(Post.id)
            with db.engine.begin() as connection:
                connection.execute(locked.with_for_update())
                connection.execute(update_last_comment(batch))
        with progress("Indexing posts", posts) as advance:
            for indexed in search.rebuild():
                advance(indexed)
    return posts
