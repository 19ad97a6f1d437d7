"""Deletion of comments. A comment with replies becomes a placeholder, and posts count the rest."""

from collections.abc import Collection, Sequence
from itertools import accumulate, takewhile

import sqlalchemy as sa
from sqlalchemy.orm import aliased

from posting.attachments import forget_owners_of_comments
from posting.changes import store as changes
from posting.comments.models import Comment
from posting.comments.store import INDEX, LAST_COMMENT_AT
from posting.db.cascades import ROWS_PER_STEP, Step, delete_below
from posting.db.editing import edit_stamp
from posting.db.transactions import execute, fetch_all
from posting.files.store import delete_files_of_comments
from posting.images.store import delete_images_of_comments
from posting.moderation.store import close_reports_on_comments
from posting.notifications.telling import forget_comments
from posting.posts.models import Post
from posting.posts.store import lock_posts
from posting.reactions.deletion import REACTIONS_PER_STEP, delete_reactions
from posting.reactions.models import Reaction
from posting.topics.store import refresh_activity

COMMENTS_PER_STEP = 2000
ATTACHMENTS_PER_STEP = 50  # images and files, since each may have megabytes


def delete_comments(ids: Collection[str]) -> None:
    """Delete comments of locked posts, a few thousand at most. None of them is a placeholder.

    Comments with remaining replies become placeholders. If the last reply to a placeholder is
    deleted, the placeholder is deleted too.
    """
    commented = sa.select(Comment.post_id).where(Comment.id.in_(ids)).distinct()
    posts = [row.post_id for row in fetch_all(commented)]
    remaining, deleted, parents = _split_deleted(ids)
    if remaining:
        kept = sa.select(Comment.created_at, Comment.id).where(Comment.id.in_(remaining))
        INDEX.remove([(row.created_at, row.id) for row in fetch_all(kept)])
    execute(_uncount(Comment.id.in_(ids)))
    delete_images_of_comments(ids)
    delete_files_of_comments(ids)
    delete_reactions(Reaction.comment_id.in_(remaining))
    is_bare = Comment.id.in_(_bare_placeholders(parents))
    empty = {"content": None, "author_id": None, **edit_stamp(Comment)}
    emptied = _post_ids(sa.update(Comment).where(Comment.id.in_(remaining)).values(empty))
    gone = _post_ids(sa.delete(Comment).where(Comment.id.in_(deleted)))
    gone |= _post_ids(sa.delete(Comment).where(is_bare))  # after the others, their last replies
    execute(sa.update(Post).where(Post.id.in_(posts)).values(last_comment_at=LAST_COMMENT_AT))
    refresh_activity(posts)
    if emptied:
        forget_comments([*emptied])
        changes.record_changes("comment", emptied, "edited")
        close_reports_on_comments([*emptied])
    if gone:
        changes.record_changes("comment", gone, "deleted")
        close_reports_on_comments([*gone])


def _split_deleted(ids: Collection[str]) -> tuple[set[str], set[str], set[str]]:
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


def _uncount(condition: sa.ColumnElement[bool]) -> sa.Update:
    """Return an UPDATE of the posts that subtracts comments from their counts."""
    number = sa.func.count().label("number")
    counts = sa.select(Comment.post_id, number).where(condition).group_by(Comment.post_id)
    deleted = counts.subquery()
    left = Post.comment_count - deleted.c.number
    return sa.update(Post).where(Post.id == deleted.c.post_id).values(comment_count=left)


def _bare_placeholders(ids: Collection[str]) -> sa.Select[str]:
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


def _remove_author(condition: sa.ColumnElement[bool]) -> None:
    """Remove the author of the comments that match a condition. Their posts are locked."""
    if changed := _post_ids(sa.update(Comment).where(condition).values(author_id=None)):
        changes.record_changes("comment", changed, "edited")
        forget_owners_of_comments(changed)


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
    attached = (Comment.image_count + Comment.file_count).label("attached")
    still_own = sa.select(Comment.id, attached).where(
        Comment.id.in_([row.id for row in rows]), Comment.author_id == user_id
    )
    found = fetch_all(still_own)
    ids = [row.id for row in found]
    if with_content:
        limit = REACTIONS_PER_STEP
        if delete_reactions(Reaction.comment_id.in_(ids), limit) == limit:
            return Step(0, has_more=True)
        ids = ids[: _count_in_step([row.attached for row in found])]
        delete_images_of_comments(ids)
        delete_files_of_comments(ids)
        ids = delete_below(Comment, ids, ROWS_PER_STEP)  # notifications
        delete_comments(ids)
    else:
        _remove_author(Comment.id.in_(ids))
    return Step(len(ids), has_more=len(ids) < len(found) or len(rows) == COMMENTS_PER_STEP)


def _count_in_step(counts: Sequence[int]) -> int:
    """Return how many comments with these numbers of images and files are deleted in one step."""
    in_step = takewhile(lambda total: total <= ATTACHMENTS_PER_STEP, accumulate(counts))
    return max(1, len(list(in_step)))


def clear_rest(user_id: str, *, with_content: bool) -> None:
    """Clear the comments that a user has written since the last step.

    Lock the posts that the user has written, commented on or reacted to first, all in one order.
    """
    written = sa.select(Post.id).where(Post.author_id == user_id)
    commented = sa.select(Comment.post_id).where(Comment.author_id == user_id)
    reacted = sa.select(Reaction.post_id).where(Reaction.user_id == user_id)
    lock_posts(Post.id.in_(written.union(commented, reacted)))
    if with_content:
        own = sa.select(Comment.id).where(Comment.author_id == user_id)
        delete_comments([row.id for row in fetch_all(own)])
    else:
        _remove_author(Comment.author_id == user_id)
