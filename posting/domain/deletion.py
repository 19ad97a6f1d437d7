"""Delete accounts and comments with everything that depends on them, and purge expired rows."""

from collections.abc import Collection
from time import sleep

import sqlalchemy as sa
from sqlalchemy.orm import aliased

from posting.db import locks
from posting.db.engine import db
from posting.db.models import Comment, Post, User

COMMENTS_AT_ONCE = 2000
POSTS_AT_ONCE = 100
# SQLite looks at least this often (in seconds) whether a lock that it waits for is free.
LONGEST_SQLITE_NAP = 0.1
# Rows are changed behind the back of loaded objects, which nobody reads after that.
BULK = {"synchronize_session": False}


def clear_account(user_id: str, *, with_content: bool) -> None:
    """Delete the posts and comments of a user, or only their author, in several transactions.

    With very many of them, one transaction would keep others from writing for too long. Between two
    of these they get a turn.
    """
    for clear_some in (_clear_some_comments, _clear_some_posts):
        while clear_some(user_id, with_content):
            db.session.commit()
            sleep(LONGEST_SQLITE_NAP)
        db.session.commit()


def _clear_some_posts(user_id: str, with_content: bool) -> bool:
    """Clear some posts of a user, and return whether there may be more."""
    some = sa.select(Post.id).where(Post.author_id == user_id).order_by(Post.id)
    ids = db.session.scalars(some.limit(POSTS_AT_ONCE).with_for_update()).all()
    anonymous = {"author_id": None, "updated_at": Post.updated_at}
    statement = sa.delete(Post) if with_content else sa.update(Post).values(anonymous)
    db.session.execute(statement.where(Post.id.in_(ids)), execution_options=BULK)
    return len(ids) == POSTS_AT_ONCE


def _clear_some_comments(user_id: str, with_content: bool) -> bool:
    """Clear the newest comments of a user, and return whether there may be more.

    Replies are newer than their parents, so deleting the newest first leaves few tombstones.
    """
    own = sa.select(Comment.id, Comment.post_id).where(Comment.author_id == user_id)
    newest = own.order_by(Comment.created_at.desc(), Comment.id.desc()).limit(COMMENTS_AT_ONCE)
    rows = db.session.execute(newest).all()
    locks.lock_posts(Post.id.in_({row.post_id for row in rows}))
    ids = sa.select(Comment.id).where(
        Comment.id.in_([row.id for row in rows]), Comment.author_id == user_id
    )
    still_own = db.session.scalars(ids).all()
    if with_content:
        delete_comments(still_own)
    else:
        anonymous = {"author_id": None, "updated_at": Comment.updated_at}
        statement = sa.update(Comment).where(Comment.id.in_(still_own)).values(anonymous)
        db.session.execute(statement, execution_options=BULK)
    return len(rows) == COMMENTS_AT_ONCE


def delete_account(user: User, *, with_content: bool) -> None:
    """Delete a locked account with its sessions; its posts and comments too, or their author."""
    written = sa.select(Post.id).where(Post.author_id == user.id)
    commented = sa.select(Comment.post_id).where(Comment.author_id == user.id)
    locks.lock_posts(Post.id.in_(written.union(commented)))
    if with_content:
        db.session.execute(sa.delete(Post).where(Post.author_id == user.id))
        own = sa.select(Comment.id).where(Comment.author_id == user.id)
        delete_comments(db.session.scalars(own).all())
    db.session.execute(sa.delete(User).where(User.id == user.id))


def delete_comments(ids: Collection[str]) -> None:
    """Delete live comments, some thousands at most, whose posts are locked.

    Those with replies that stay become tombstones. Tombstones above the others go if nothing under
    them stays.
    """
    stay, gone, parents_of_gone = _split_by_staying_replies(ids)
    empty = {"content": None, "author_id": None, "version": Comment.version + 1}
    for statement in (
        _uncount(Comment.id.in_(ids)),
        sa.update(Comment).where(Comment.id.in_(stay)).values(empty),
        sa.delete(Comment).where(Comment.id.in_(gone)),
        sa.delete(Comment).where(Comment.id.in_(_bare_tombstones(parents_of_gone))),
    ):
        db.session.execute(statement, execution_options=BULK)


def _split_by_staying_replies(ids: Collection[str]) -> tuple[set[str], set[str], set[str]]:
    """Split comments into those that become tombstones and those to delete.

    Return also the parents of the latter outside `ids`.
    """
    rows = db.session.execute(sa.select(Comment.id, Comment.parent_id).where(Comment.id.in_(ids)))
    parents: dict[str, str | None] = {row.id: row.parent_id for row in rows}
    replies = sa.select(Comment.id, Comment.parent_id).where(Comment.parent_id.in_(ids))
    stay: set[str] = set()
    for reply in db.session.execute(replies):
        above: str | None = None if reply.id in parents else reply.parent_id
        while above and above in parents and above not in stay:
            stay.add(above)
            above = parents[above]
    gone = parents.keys() - stay
    outside = {above for id in gone if (above := parents[id]) and above not in parents}
    return stay, gone, outside


def _uncount(which: sa.ColumnElement[bool]) -> sa.Update:
    number = sa.func.count().label("number")
    deleted = sa.select(Comment.post_id, number).where(which).group_by(Comment.post_id).subquery()
    left = {"comment_count": Post.comment_count - deleted.c.number, "updated_at": Post.updated_at}
    return sa.update(Post).where(Post.id == deleted.c.post_id).values(left)


def _bare_tombstones(ids: Collection[str]) -> sa.Select[str]:
    """Select the tombstones among `ids` and their ancestors that have no replies left.

    By NOT EXISTS: what is NOT IN a large set, Postgres may look up by reading it all each time.
    """
    tombstones = sa.select(Comment.id, Comment.parent_id).where(Comment.content.is_(None))
    chain = _with_tombstones_above(tombstones.where(Comment.id.in_(ids)), "chain")
    child, also = aliased(Comment), chain.alias()
    stays = ~sa.exists().where(also.c.id == child.id)
    under = sa.exists().where(child.parent_id == chain.c.id, stays)
    needed = _with_tombstones_above(sa.select(chain.c.id, chain.c.parent_id).where(under), "needed")
    return sa.select(chain.c.id).where(~sa.exists().where(needed.c.id == chain.c.id))


def _with_tombstones_above(start: sa.Select[str, str | None], name: str) -> sa.CTE:
    rows = start.cte(name, recursive=True)
    above = aliased(Comment)
    return rows.union(
        sa.select(above.id, above.parent_id)
        .join(rows, above.id == rows.c.parent_id)
        .where(above.content.is_(None))
    )
