"""The statements of comments."""

import sqlalchemy as sa

from posting.comments import schemas
from posting.comments.models import Comment
from posting.db.transactions import Row, fetch_one
from posting.posts.locks import lock_post_of
from posting.posts.models import Post
from posting.web.problems import NoSuch
from posting.web.rows import Item, insert, select, to_item


class NoSuchComment(NoSuch, thing="comment"):
    pass


COMMENTS = select(schemas.Comment, Comment)
INSERT_COMMENT = insert(schemas.Comment, Comment).returning(Comment.version)
COMMENTS_ON_POST = COMMENTS.where(Comment.post_id == sa.bindparam("post"))
COMMENTS_BY_AUTHOR = COMMENTS.where(Comment.author_id == sa.bindparam("author"))
# The time of the last comment on a post. It is no placeholder: those have replies, which are newer.
LAST_COMMENT_AT = (
    sa.select(sa.func.max(Comment.created_at)).where(Comment.post_id == Post.id).scalar_subquery()
)
COMMENT_COUNT = (
    sa.select(sa.func.count())
    .where(Comment.post_id == Post.id, Comment.content.is_not(None))
    .scalar_subquery()
)
_COLUMNS = sa.select(Comment.__table__).where(Comment.id == sa.bindparam("id"))
COMMENT = COMMENTS.add_columns(Comment.version).where(Comment.id == sa.bindparam("id"))


def get_comment(id: str) -> Item:
    """Return a comment with `version`. Raise NoSuchComment."""
    row = fetch_one(COMMENT, id=id)
    if row is None:
        raise NoSuchComment
    return to_item(row)


def get_comment_for_update(id: str) -> Row:
    """Lock the post of a comment, and return the columns of the comment.

    Raise NoSuchComment, also for a placeholder.
    """
    lock_post_of(Comment, id)
    comment = fetch_one(_COLUMNS, id=id)
    if comment is None or comment.content is None:
        raise NoSuchComment
    return comment
