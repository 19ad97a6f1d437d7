"""Changes of comments, together with their entries in the search index and what they cause.

If a comment is deleted, the database deletes its entry, even if the whole post is deleted: Postgres
by a foreign key, SQLite by a trigger.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from posting.changes import store as changes
from posting.comments import schemas, threads
from posting.comments.models import Comment
from posting.comments.search import INDEX
from posting.db.cascades import ROWS_PER_STEP, Step, delete_below
from posting.db.editing import edit, edit_stamp
from posting.db.transactions import Row, execute, fetch_all
from posting.db.types import new_id
from posting.moderation.store import close_reports_on_comments
from posting.notifications.telling import forget_comments, tell_of_comment, tell_of_edited_comment
from posting.posts.locks import lock_posts
from posting.posts.models import Post
from posting.posts.texts import PreparedText
from posting.web.rows import Item, insert, to_item

COMMENTS_PER_STEP = 2000

_INSERT = insert(schemas.Comment, Comment).returning(Comment.version)


def insert_comment(
    post_id: str, author_id: str, body: Mapping[str, Any], parent: Row | None, text: PreparedText
) -> Item:
    """Insert a comment on a locked post, and return it with `version`, and with its author's id."""
    values = {
        "id": new_id(),
        "post_id": post_id,
        "author_id": author_id,
        "created_at": threads.timestamp_after(parent),
        **body,
    }
    comment = to_item(execute(_INSERT, **values, **threads.thread_of(parent)).one())
    threads.count_comment(post_id, values["created_at"])
    INDEX.add([(values | {"version": comment["version"]}, text.words)])
    tell_of_comment(comment["id"], post_id, comment["parent_id"], author_id, text.mentions)
    changes.record("comment", comment["id"], post_id, "created")
    return comment


def insert_comments(rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert new comments by their columns, without `version`, which their posts count already."""
    execute(sa.insert(Comment), rows)
    INDEX.add(INDEX.split_all([{**row, "version": 1} for row in rows]))


def edit_comment(comment: Row, values: Mapping[str, Any], text: PreparedText) -> None:
    """Edit a comment on a locked post. Its text was prepared before the transaction began."""
    if edit(Comment, comment, values):
        INDEX.replace({**comment._mapping, **values, "version": comment.version + 1}, text.words)
        tell_of_edited_comment(comment.id, comment.post_id, comment.author_id, text.mentions)
        changes.record("comment", comment.id, comment.post_id, "edited")


def delete_comments(ids: Collection[str]) -> None:
    """Delete comments of locked posts. They are no placeholders, and a few thousand at most.

    Comments with remaining replies become placeholders. If the last reply to a placeholder is
    deleted, the placeholder is deleted too.
    """
    commented = sa.select(Comment.post_id).where(Comment.id.in_(ids)).distinct()
    posts = [row.post_id for row in fetch_all(commented)]
    remaining, deleted, parents = threads.split_deleted(ids)
    if remaining:
        kept = sa.select(Comment.created_at, Comment.id).where(Comment.id.in_(remaining))
        INDEX.remove([(row.created_at, row.id) for row in fetch_all(kept)])
    execute(threads.uncount(Comment.id.in_(ids)))
    is_bare = Comment.id.in_(threads.bare_placeholders(parents))
    empty = {"content": None, "author_id": None, **edit_stamp(Comment)}
    emptied = _post_ids(sa.update(Comment).where(Comment.id.in_(remaining)).values(empty))
    gone = _post_ids(sa.delete(Comment).where(Comment.id.in_(deleted)))
    gone |= _post_ids(sa.delete(Comment).where(is_bare))  # after the others, their last replies
    execute(threads.update_last_comment(posts))
    if emptied:
        forget_comments([*emptied])
        changes.record_all("comment", emptied, "edited")
        close_reports_on_comments([*emptied])
    if gone:
        changes.record_all("comment", gone, "deleted")
        close_reports_on_comments([*gone])


def _remove_author(condition: sa.ColumnElement[bool]) -> None:
    """Remove the author of the comments that match a condition. Their posts are locked."""
    if changed := _post_ids(sa.update(Comment).where(condition).values(author_id=None)):
        changes.record_all("comment", changed, "edited")


def _post_ids(statement: sa.Update | sa.Delete) -> dict[str, str]:
    """Change comments, and return the ids of their posts by those of the comments."""
    rows = execute(statement.returning(Comment.id, Comment.post_id))
    return {row.id: row.post_id for row in rows}


def clear_step(user_id: str, *, with_content: bool) -> Step:
    """Clear the newest comments of a user.

    Replies are newer than their parents, so few of these comments have remaining replies.
    """
    own = sa.select(Comment.id, Comment.post_id).where(Comment.author_id == user_id)
    newest_first = own.order_by(Comment.created_at.desc(), Comment.id.desc())
    rows = fetch_all(newest_first.limit(COMMENTS_PER_STEP))
    lock_posts(Post.id.in_({row.post_id for row in rows}))
    still_own = sa.select(Comment.id).where(
        Comment.id.in_([row.id for row in rows]), Comment.author_id == user_id
    )
    ids = found = [row.id for row in fetch_all(still_own)]
    if with_content:
        ids = delete_below(Comment, found, ROWS_PER_STEP)  # notifications
        delete_comments(ids)
    else:
        _remove_author(Comment.id.in_(ids))
    return Step(len(ids), has_more=len(ids) < len(found) or len(rows) == COMMENTS_PER_STEP)


def clear_rest(user_id: str, *, with_content: bool) -> None:
    """Clear the comments that a user has written since the last step.

    Lock the posts that the user has commented on or written first, all in one order.
    """
    written = sa.select(Post.id).where(Post.author_id == user_id)
    commented = sa.select(Comment.post_id).where(Comment.author_id == user_id)
    lock_posts(Post.id.in_(written.union(commented)))
    if with_content:
        own = sa.select(Comment.id).where(Comment.author_id == user_id)
        delete_comments([row.id for row in fetch_all(own)])
    else:
        _remove_author(Comment.author_id == user_id)
