"""The statements of comments."""

import sqlalchemy as sa

from posting.comments import schemas
from posting.comments.models import Comment
from posting.db.base import Identifier
from posting.db.transactions import Row, fetch_one, fetch_value
from posting.db.types import UtcDateTime
from posting.markdown import BEGINNING
from posting.posts.locks import lock_post_of
from posting.posts.models import DELETED_POSTS, Post
from posting.web.problems import NoSuch
from posting.web.rows import Item, select, to_item


class NoSuchComment(NoSuch, thing="comment"):
    pass


COMMENTS = select(schemas.Comment, Comment).where(Comment.post_id.not_in(DELETED_POSTS))
COMMENTS_ON_POST = COMMENTS.where(Comment.post_id == sa.bindparam("post"))
# Comments on several posts, without placeholders, which have no author either.
COMMENTS_WITH_POSTS = (
    select(schemas.CommentWithPost, Comment)
    .join(Post, Post.id == Comment.post_id)
    .add_columns(Post.title.label("post_title"))
    .where(Comment.content.is_not(None), Post.deleted_at.is_(None))
)
COMMENTS_BY_AUTHOR = COMMENTS_WITH_POSTS.where(Comment.author_id == sa.bindparam("author"))
# The time of the last comment on a post. This is no placeholder, whose replies would be newer.
LAST_COMMENT_AT = (
    sa.select(sa.func.max(Comment.created_at)).where(Comment.post_id == Post.id).scalar_subquery()
)
COMMENT_COUNT = (
    sa.select(sa.func.count())
    .where(Comment.post_id == Post.id, Comment.content.is_not(None))
    .scalar_subquery()
)
# The comments of a post by threads, after a place in this order.
_PLACE = (Comment.thread_at, Comment.thread_id, Comment.created_at, Comment.id)
_AFTER = (
    sa.bindparam("after_thread_at", type_=UtcDateTime()),
    sa.bindparam("after_thread", type_=Identifier),
    sa.bindparam("after_time", type_=UtcDateTime()),
    sa.bindparam("after_id", type_=Identifier),
)
COMMENTS_BY_THREAD = (
    COMMENTS_ON_POST.add_columns(Comment.thread_at, Comment.thread_id)
    .where(sa.tuple_(*_PLACE) > sa.tuple_(*_AFTER))
    .order_by(*_PLACE)
    .limit(sa.bindparam("limit", type_=sa.Integer()))
)
THREAD_OF_COMMENT = sa.select(Comment.thread_at, Comment.thread_id, Comment.created_at).where(
    Comment.id == sa.bindparam("id"), Comment.post_id == sa.bindparam("post")
)
# The beginning of a comment, for a page that shows the comment as one line above its replies.
_BRIEF = select(schemas.Comment, Comment, without=["content"]).add_columns(
    sa.func.substr(Comment.content, 1, BEGINNING).label("content")
)
# The comments with some ids, and the comments above them, a few steps up.
MAX_STEPS = 6
_above = (
    sa.select(Comment.id, Comment.parent_id, sa.literal(1).label("step"))
    .where(Comment.id.in_(sa.bindparam("ids", expanding=True)))
    .cte("above", recursive=True)
)
_above = _above.union(
    sa.select(Comment.id, Comment.parent_id, _above.c.step + 1)
    .join(_above, Comment.id == _above.c.parent_id)
    .where(_above.c.step < MAX_STEPS)
)
COMMENTS_ABOVE = (
    _BRIEF.where(Comment.id.in_(sa.select(_above.c.id)))
    .order_by(Comment.created_at)
    .limit(sa.bindparam("limit", type_=sa.Integer()))
)
_COLUMNS = sa.select(Comment.__table__).where(
    Comment.id == sa.bindparam("id"), Comment.post_id.not_in(DELETED_POSTS)
)
COMMENT = COMMENTS.add_columns(Comment.version).where(Comment.id == sa.bindparam("id"))


def get_comment(id: str) -> Item:
    """Return a comment with `version`. Raise NoSuchComment."""
    row = fetch_one(COMMENT, id=id)
    if row is None:
        raise NoSuchComment
    return to_item(row)


def count_comments_by(author_id: str) -> int:
    """Return how many comments a user has written. Deleted comments do not count."""
    count: int = fetch_value(sa.select(sa.func.count()).where(Comment.author_id == author_id))
    return count


def get_comment_for_update(id: str) -> Row:
    """Lock the post of a comment, and return the columns of the comment.

    Raise NoSuchComment, also for a placeholder.
    """
    lock_post_of(Comment, id)
    comment = fetch_one(_COLUMNS, id=id)
    if comment is None or comment.content is None:
        raise NoSuchComment
    return comment
