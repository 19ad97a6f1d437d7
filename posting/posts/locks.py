"""Row locks taken before a change (`SELECT … FOR UPDATE`).

All code takes locks in one order, so that no two requests wait for each other: rate-limit windows,
the current user's account, posts by id, idempotency keys, and last what `posting.db.purge` deletes.
Only sign-in locks its windows after the account. Transactions that hold these windows wait for no
other lock, so that is safe. Comments and images are changed only by the holder of their post's
lock. On SQLite a writing transaction excludes all others, and `FOR UPDATE` does nothing.
"""

from typing import Any, TypeVar

import sqlalchemy as sa

from posting.db.base import Base, db
from posting.db.session import execute
from posting.posts.models import Post
from posting.posts.queries import NoSuchPost

Part = TypeVar("Part", bound=Base)  # a row that belongs to a post

_LOCK_POST = sa.select(Post.id).where(Post.id == sa.bindparam("id")).with_for_update()


def lock_post(id: str) -> None:
    """Lock a post. Raise NoSuchPost."""
    if not execute(_LOCK_POST, id=id).all():
        raise NoSuchPost


def get_post_for_update(id: str) -> Post:
    """Lock a post and return it. Raise NoSuchPost."""
    post = db.session.get(Post, id, with_for_update=True)
    if post is None:
        raise NoSuchPost
    return post


def lock_posts(condition: sa.ColumnElement[bool]) -> None:
    """Lock the posts that match a condition."""
    db.session.execute(sa.select(Post.id).where(condition).order_by(Post.id).with_for_update())


def get_after_locking_post(model: type[Part], id: str) -> Part | None:
    """Lock the post of a row that belongs to a post, and return the row if there is one."""
    part: Any = model
    post = sa.select(Post).join(part, part.post_id == Post.id).where(part.id == id)
    db.session.scalars(post.with_for_update(of=Post)).one_or_none()
    return db.session.get(model, id, populate_existing=True)
