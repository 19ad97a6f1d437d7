"""The SQL of comments: lists, threads, single comments, and changes with what they cause.

What these functions return has `image_count` and `file_count` in the place of the images and files.

If a comment is deleted, the database deletes its search entry: Postgres by a foreign key, SQLite by
a trigger.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from posting.changes import store as changes
from posting.comments import schemas
from posting.comments.models import Comment
from posting.db.base import Identifier
from posting.db.editing import edit
from posting.db.transactions import Row, execute, fetch_all, fetch_one, fetch_value
from posting.db.types import MILLISECOND, UtcDateTime, new_id, now
from posting.markdown import BEGINNING
from posting.notifications.telling import tell_of_comment, tell_of_edited_comment
from posting.posts.models import DELETED_POSTS, Post
from posting.posts.store import PreparedText, select_for_update
from posting.search.index import Index
from posting.search.results import paginate_results
from posting.topics.store import refresh_activity
from posting.web.errors import InvalidInput, Message, NoSuch
from posting.web.pagination import Page, paginate
from posting.web.schemas import Item, insert, select, to_item

NOT_A_PARENT = Message("no_such_parent", "Must be a comment on this post that is not deleted.")
MAX_STEPS = 6  # from a comment to the comments above it
# The thread and the comment after which a part of a post's threads begins: their times and ids.
Place = tuple[datetime, str, datetime, str]


class NoSuchComment(NoSuch, thing="comment"):
    pass


def _lock_posts(ids: Collection[str]) -> sa.Select[str]:
    """Return the SELECT that locks the posts of comments, whose holder alone changes comments."""
    posts = sa.select(Comment.post_id).where(Comment.id.in_(ids))
    return select_for_update(Post.id.in_(posts))


INDEX = Index("comment", Comment, ["content"], _lock_posts)

_IS_IT = Comment.id == sa.bindparam("id")
_COUNTS = (Comment.image_count.label("image_count"), Comment.file_count.label("file_count"))
_COMMENTS = (
    select(schemas.Comment, Comment)
    .add_columns(*_COUNTS)
    .where(Comment.post_id.not_in(DELETED_POSTS))
)
_COMMENT = _COMMENTS.add_columns(Comment.version).where(_IS_IT)
_ON_POST = _COMMENTS.where(Comment.post_id == sa.bindparam("post"))
# Comments on several posts, without placeholders, which have no author either.
_WITH_POSTS = (
    select(schemas.CommentWithPost, Comment)
    .join(Post, Post.id == Comment.post_id)
    .add_columns(Post.title.label("post_title"), *_COUNTS)
    .where(Comment.content.is_not(None), Post.deleted_at.is_(None))
)
_BY_AUTHOR = _WITH_POSTS.where(Comment.author_id == sa.bindparam("author"))
# The comments of a post by threads, after a place in this order.
_PLACE = (Comment.thread_at, Comment.thread_id, Comment.created_at, Comment.id)
_AFTER = (
    sa.bindparam("after_thread_at", type_=UtcDateTime()),
    sa.bindparam("after_thread", type_=Identifier),
    sa.bindparam("after_time", type_=UtcDateTime()),
    sa.bindparam("after_id", type_=Identifier),
)
_BY_THREAD = (
    _ON_POST.add_columns(Comment.thread_at, Comment.thread_id)
    .where(sa.tuple_(*_PLACE) > sa.tuple_(*_AFTER))
    .order_by(*_PLACE)
    .limit(sa.bindparam("limit", type_=sa.Integer()))
)
_THREAD_OF_COMMENT = sa.select(Comment.thread_at, Comment.thread_id, Comment.created_at).where(
    _IS_IT, Comment.post_id == sa.bindparam("post")
)
# The comments with some ids, and the comments above them, a few steps up.
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
_ABOVE = (
    select(schemas.Comment, Comment, without=["content"])
    .add_columns(sa.func.substr(Comment.content, 1, BEGINNING).label("content"), *_COUNTS)
    .where(Comment.id.in_(sa.select(_above.c.id)))
    .order_by(Comment.created_at)
    .limit(sa.bindparam("limit", type_=sa.Integer()))
)
LOCK_POST_OF_COMMENT = sa.select(Post.id).join(Comment, Comment.post_id == Post.id).where(_IS_IT)
LOCK_POST_OF_COMMENT = LOCK_POST_OF_COMMENT.with_for_update(of=Post)
_COLUMNS = sa.select(Comment.__table__).where(_IS_IT, Comment.post_id.not_in(DELETED_POSTS))
_PARENT = sa.select(
    Comment.post_id, Comment.content, Comment.created_at, Comment.thread_id, Comment.thread_at
).where(_IS_IT)
_INSERT = insert(schemas.Comment, Comment).returning(Comment.version)
_TIME = sa.bindparam("time", type_=UtcDateTime())
_COUNT_COMMENT = (
    sa.update(Post)
    .where(Post.id == sa.bindparam("post"))
    .values(
        comment_count=Post.comment_count + 1,
        last_comment_at=sa.case((Post.last_comment_at > _TIME, Post.last_comment_at), else_=_TIME),
    )
    .returning(Post.has_topics)
)
# What a post says about its comments.
COMMENT_COUNT = (
    sa.select(sa.func.count())
    .where(Comment.post_id == Post.id, Comment.content.is_not(None))
    .scalar_subquery()
)
# The latest comment is never a placeholder, because the replies to a placeholder are later.
LAST_COMMENT_AT = (
    sa.select(sa.func.max(Comment.created_at)).where(Comment.post_id == Post.id).scalar_subquery()
)


def list_comments(
    *,
    limit: int,
    cursor: str | None,
    author: str | None = None,
    name: str = "list_comments",
    max_length: int | None = None,
    parameter: str = "cursor",
) -> Page:
    """Return a page of all comments with the titles of their posts, newest first.

    With `author`, it has only the comments of this user. See `paginate` for the rest.
    """
    return paginate(
        _BY_AUTHOR if author else _WITH_POSTS,
        limit=limit,
        cursor=cursor,
        name=name,
        newest_first=True,
        parameters={"author": author},
        max_length=max_length,
        parameter=parameter,
    )


def list_comments_on(
    post_id: str,
    *,
    limit: int,
    cursor: str | None,
    name: str,
    newest_first: bool,
    max_length: int | None = None,
    parameter: str = "cursor",
) -> Page:
    """Return a page of the comments on a post. See `paginate` for the parameters."""
    return paginate(
        _ON_POST,
        limit=limit,
        cursor=cursor,
        name=name,
        newest_first=newest_first,
        parameters={"post": post_id},
        max_length=max_length,
        parameter=parameter,
    )


def find_comments(
    words: str,
    *,
    limit: int,
    cursor: str | None,
    author: str | None = None,
    max_length: int | None = None,
) -> Page:
    """Return a page of the comments, perhaps of an author, in which all words occur, newest first.

    Raise SearchBusy.
    """
    return paginate_results(
        INDEX,
        _BY_AUTHOR if author else _WITH_POSTS,
        words,
        limit=limit,
        cursor=cursor,
        author=author,
        max_length=max_length,
    )


def list_comments_by_thread(post_id: str, after: Place, limit: int) -> Sequence[Row]:
    """Return comments on a post by threads, after a place, with `thread_at` and `thread_id`."""
    names = (parameter.key for parameter in _AFTER)
    return fetch_all(_BY_THREAD, post=post_id, limit=limit, **dict(zip(names, after, strict=True)))


def find_thread_of(id: str, post_id: str) -> Row | None:
    """Return the thread of a comment on a post, and the time of the comment."""
    return fetch_one(_THREAD_OF_COMMENT, id=id, post=post_id)


def list_comments_above(ids: Collection[str], limit: int) -> Sequence[Row]:
    """Return comments and those above them, oldest first, with the beginnings of their texts."""
    return fetch_all(_ABOVE, ids=sorted(ids), limit=limit) if ids else []


def get_comment(id: str) -> Item:
    """Return a comment with `version`. Raise NoSuchComment."""
    row = fetch_one(_COMMENT, id=id)
    if row is None:
        raise NoSuchComment
    return to_item(row)


def get_comment_for_update(id: str) -> Row:
    """Lock the post of a comment, and return the columns of the comment.

    Raise NoSuchComment, even if the comment is kept as a placeholder.
    """
    execute(LOCK_POST_OF_COMMENT, id=id)
    comment = fetch_one(_COLUMNS, id=id)
    if comment is None or comment.content is None:
        raise NoSuchComment
    return comment


def count_comments_by(author_id: str) -> int:
    """Return how many comments a user has written. Deleted comments do not count."""
    count: int = fetch_value(sa.select(sa.func.count()).where(Comment.author_id == author_id))
    return count


def get_parent(parent_id: str | None, post_id: str) -> Row | None:
    """Return the comment that a new comment replies to, or None if it is not a reply.

    Raise 422 if the parent is on another post or deleted.
    """
    if parent_id is None:
        return None
    parent = fetch_one(_PARENT, id=parent_id)
    if parent is None or parent.content is None or parent.post_id != post_id:
        raise InvalidInput.at("/parent_id", NOT_A_PARENT)
    return parent


def insert_comment(
    post_id: str, author_id: str, body: Mapping[str, Any], parent: Row | None, text: PreparedText
) -> Item:
    """Insert a comment on a locked post, and return it with `version`, and with its author's id.

    A reply is later than its parent, and in the same thread.
    """
    values = {"id": new_id(), "post_id": post_id, "author_id": author_id, "created_at": now()}
    values |= body
    thread = {}
    if parent:
        values["created_at"] = max(values["created_at"], parent.created_at + MILLISECOND)
        thread = {"thread_id": parent.thread_id, "thread_at": parent.thread_at}
    comment = to_item(execute(_INSERT, **values, **thread).one())
    if execute(_COUNT_COMMENT, post=post_id, time=values["created_at"]).scalar_one():
        refresh_activity([post_id])
    INDEX.add([(values | {"version": comment["version"]}, text.words)])
    tell_of_comment(comment["id"], post_id, comment["parent_id"], author_id, text.mentions)
    changes.record_change("comment", comment["id"], post_id, "created")
    return comment


def insert_comments(rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert new comments by their columns, without `version`, which their posts count already."""
    execute(sa.insert(Comment), rows)
    INDEX.add(INDEX.split_all([{**row, "version": 1} for row in rows]))


def edit_comment(
    comment: Row, values: Mapping[str, Any], text: PreparedText, *, is_edit: bool = False
) -> None:
    """Edit a comment on a locked post. With `is_edit`, it has got other images or files.

    Its text was prepared before the transaction began.
    """
    if edit(Comment, comment, values, is_edit=is_edit):
        INDEX.replace({**comment._mapping, **values, "version": comment.version + 1}, text.words)
        tell_of_edited_comment(comment.id, comment.post_id, comment.author_id, text.mentions)
        changes.record_change("comment", comment.id, comment.post_id, "edited")
