"""What goes along when something is deleted, and what stays."""

import sqlalchemy as sa
from sqlalchemy.orm import aliased

from posting import locked
from posting.database import db
from posting.models import Comment, Post, User


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
        chosen.values(author_id=None),
    ):
        db.session.execute(statement, execution_options={"synchronize_session": False})


def _uncount(which: sa.ColumnElement[bool]) -> sa.Update:
    number = sa.func.count().label("number")
    deleted = sa.select(Comment.post_id, number).where(which).group_by(Comment.post_id).subquery()
    left = {"comment_count": Post.comment_count - deleted.c.number, "updated_at": Post.updated_at}
    return sa.update(Post).where(Post.id == deleted.c.post_id).values(left)


def _bare_tombstones(which: sa.ColumnElement[bool]) -> sa.Select[str]:
    """Select, of tombstones and the tombstones above them, those under which nothing else is."""
    above, child = aliased(Comment), aliased(Comment)
    chain = sa.select(Comment.id, Comment.parent_id).where(which).cte("chain", recursive=True)
    chain = chain.union(
        sa.select(above.id, above.parent_id)
        .join(chain, above.id == chain.c.parent_id)
        .where(above.content.is_(None))
    )
    other = sa.exists().where(child.parent_id == chain.c.id, child.id.not_in(sa.select(chain.c.id)))
    needed = sa.select(chain.c.id, chain.c.parent_id).where(other).cte("needed", recursive=True)
    needed = needed.union(
        sa.select(above.id, above.parent_id)
        .join(needed, above.id == needed.c.parent_id)
        .where(above.content.is_(None))
    )
    return sa.select(chain.c.id).where(chain.c.id.not_in(sa.select(needed.c.id)))
