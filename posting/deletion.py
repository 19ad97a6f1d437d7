"""What goes along when something is deleted, what stays, and what goes by itself."""

import sqlalchemy as sa
from sqlalchemy.orm import aliased

from posting import locked
from posting.database import db
from posting.models import EXPIRING, Comment, Post, User
from posting.moments import now

SWEPT_AT_ONCE = 100
# Rows are changed behind the back of loaded objects, which nobody reads after that.
BULK = {"synchronize_session": False}


def delete_account(user: User, *, with_content: bool) -> None:
    """Delete a locked account with its sessions; its posts and comments too, or their author."""
    locked.posts_with(user)
    if with_content:
        db.session.execute(sa.delete(Post).where(Post.author_id == user.id))
        delete_comments(Comment.author_id == user.id)
    db.session.execute(sa.delete(User).where(User.id == user.id))


def delete_comments(which: sa.ColumnElement[bool]) -> None:
    """Delete live comments whose posts are locked.

    Those with replies that stay become tombstones. Tombstones above them go if nothing under them
    stays.
    """
    chosen = sa.update(Comment).where(which)
    for statement in (
        _uncount(which),
        chosen.values(content=None, version=Comment.version + 1),
        sa.delete(Comment).where(Comment.id.in_(_bare_tombstones(which))),
        chosen.values(author_id=None),  # not before: `which` may ask for it
    ):
        db.session.execute(statement, execution_options=BULK)


def sweep() -> None:
    """Delete what has expired: of each kind the oldest hundred, but for those that others delete.

    Nobody is waited for. Do it late: whoever has swept may only wait for those who wait for nobody.
    """
    for moment, lifetime in EXPIRING:
        kind = moment.class_
        key = sa.inspect(kind).primary_key
        expired = sa.select(*key).where(moment < now() - lifetime).order_by(moment)
        oldest = expired.limit(SWEPT_AT_ONCE).with_for_update(skip_locked=True)
        swept = sa.delete(kind).where(sa.tuple_(*key).in_(oldest))
        db.session.execute(swept, execution_options=BULK)


def _uncount(which: sa.ColumnElement[bool]) -> sa.Update:
    number = sa.func.count().label("number")
    deleted = sa.select(Comment.post_id, number).where(which).group_by(Comment.post_id).subquery()
    left = {"comment_count": Post.comment_count - deleted.c.number, "updated_at": Post.updated_at}
    return sa.update(Post).where(Post.id == deleted.c.post_id).values(left)


def _bare_tombstones(which: sa.ColumnElement[bool]) -> sa.Select[str]:
    """Select, of emptied comments and the tombstones above them, those under which nothing is left.

    By NOT EXISTS: what is NOT IN a large set, Postgres may look up by reading it all each time.
    """
    emptied = sa.select(Comment.id, Comment.parent_id).where(which)
    chain = _with_tombstones_above(emptied, "chain")
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
