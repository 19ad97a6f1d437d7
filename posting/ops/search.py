"""Rebuild the search index, and correct what texts say about other rows."""

from typing import Any

import sqlalchemy as sa

from posting.attachments import count_of_comment, count_of_post
from posting.comments.models import Comment
from posting.comments.store import COMMENT_COUNT, LAST_COMMENT_AT
from posting.db.transactions import snapshot, transaction
from posting.files.models import File
from posting.images.models import Image
from posting.indexes import INDEXES
from posting.ops.files import command_errors
from posting.posts.models import Post
from posting.progress import progress
from posting.reactions.deletion import reaction_counts
from posting.topics.models import PostTopic

BATCH = 500
CORRECT: dict[str, sa.ColumnElement[Any]] = {
    "comment_count": COMMENT_COUNT,
    "image_count": count_of_post(Image),
    "file_count": count_of_post(File),
    "last_comment_at": LAST_COMMENT_AT,
    "has_topics": sa.exists().where(PostTopic.post_id == Post.id),
    **reaction_counts(Post),
}
TIMES = {"created_at": Post.created_at, "last_activity_at": Post.last_activity_at}
HAS_WRONG_TIMES = sa.exists().where(
    PostTopic.post_id == Post.id,
    sa.or_(*(getattr(PostTopic, name) != value for name, value in TIMES.items())),
)
IS_WRONG = sa.or_(
    HAS_WRONG_TIMES,
    *(getattr(Post, name).is_distinct_from(value) for name, value in CORRECT.items()),
)
CORRECT_COMMENT = {
    "image_count": count_of_comment(Image),
    "file_count": count_of_comment(File),
    **reaction_counts(Comment),
}
WRONG_COMMENTS = (
    sa.select(Comment.post_id, Comment.id)
    .where(sa.or_(*(getattr(Comment, name) != value for name, value in CORRECT_COMMENT.items())))
    .order_by(Comment.post_id, Comment.id)
)


def rebuild() -> dict[str, int]:
    """Fill all indexes again, and correct what posts, comments and topics of posts repeat.

    Return the number of rows of each index by its name. Raise ClickException if the database fails.
    """
    with command_errors("The search index cannot be rebuilt"):
        with snapshot() as connection:
            rows = {index.name: index.count_rows(connection) for index in INDEXES}
            ids = connection.scalars(sa.select(Post.id).where(IS_WRONG).order_by(Post.id)).all()
            comments = connection.execute(WRONG_COMMENTS).all()
        for start in range(0, len(ids), BATCH):
            batch = ids[start : start + BATCH]
            locked = sa.select(Post.id).where(Post.id.in_(batch)).order_by(Post.id)
            with transaction() as connection:
                connection.execute(locked.with_for_update())
                connection.execute(sa.update(Post).where(Post.id.in_(batch)).values(CORRECT))
                topics = sa.update(PostTopic).where(PostTopic.post_id == Post.id)
                connection.execute(topics.where(Post.id.in_(batch)).values(TIMES))
        for post_id, id in comments:
            with transaction() as connection:
                connection.execute(sa.select(Post.id).where(Post.id == post_id).with_for_update())
                connection.execute(
                    sa.update(Comment).where(Comment.id == id).values(CORRECT_COMMENT)
                )
        for index in INDEXES:
            with progress(f"Indexing {index.name}s", rows[index.name]) as advance:
                for indexed in index.rebuild():
                    advance(indexed)
    return rows
