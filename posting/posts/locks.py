"""Row locks taken before a change (`SELECT … FOR UPDATE`).

All code takes locks in one order, so that no two requests wait for each other: rate-limit windows,
the current user's account, the epoch to pin a post, posts by id, reports, idempotency keys, and
last what `posting.db.purge` deletes. Only mentions lock their window later, after the post. A
request that holds this window waits for nothing else except an idempotency key, so that is safe.
Comments and images are changed only by the holder of their post's lock, who also deletes the
notifications about them; other code skips notifications that are locked. A purge skips a locked
epoch. On SQLite a writing transaction excludes all others, and `FOR UPDATE` does nothing.
"""

import sqlalchemy as sa

from posting.db.base import Base
from posting.db.transactions import Row, execute
from posting.posts.models import Post
from posting.posts.queries import NoSuchPost

_EXISTS = sa.and_(Post.id == sa.bindparam("id"), Post.deleted_at.is_(None))
_LOCK_POST = sa.select(Post.locked.label("locked")).where(_EXISTS).with_for_update()
_LOCK_AND_READ_POST = sa.select(Post.__table__).where(_EXISTS).with_for_update()


def lock_post(id: str) -> Row:
    """Lock a row of a post. Return its column `locked`: whether members may not comment on it.

    Raise NoSuchPost.
    """
    post = execute(_LOCK_POST, id=id).one_or_none()
    if post is None:
        raise NoSuchPost
    return post


def get_post_for_update(id: str) -> Row:
    """Lock a post and return its columns. Raise NoSuchPost."""
    post = execute(_LOCK_AND_READ_POST, id=id).one_or_none()
    if post is None:
        raise NoSuchPost
    return post


def select_for_update(condition: sa.ColumnElement[bool]) -> sa.Select[str]:
    """Return the SELECT that locks the posts that match a condition."""
    return sa.select(Post.id).where(condition).order_by(Post.id).with_for_update()


def lock_posts(condition: sa.ColumnElement[bool]) -> None:
    """Lock the posts that match a condition."""
    execute(select_for_update(condition))


def lock_post_of(part: type[Base], id: str) -> None:
    """Lock the post to which a row of another table belongs, such as a comment."""
    table = part.__table__.columns
    post = sa.select(Post.id).join(part, table.post_id == Post.id).where(table.id == id)
    execute(post.with_for_update(of=Post))
