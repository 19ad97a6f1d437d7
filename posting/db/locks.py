"""Row locks taken before a change (`SELECT … FOR UPDATE`).

All code takes locks in one order, so that no two requests wait for each other: rate-limit windows,
the current user's account, posts by id, idempotency keys, and last what `posting.db.purge` deletes.
Only sign-in locks its windows after the account. Transactions that hold these windows wait for no
other lock, so that is safe. Comments and images are changed only by the holder of their post's
lock. On SQLite a writing transaction excludes all others, and `FOR UPDATE` does nothing.
"""

from typing import TypeVar

import sqlalchemy as sa

from posting.db.engine import db, execute
from posting.db.errors import NoSuchComment, NoSuchImage, NoSuchPost
from posting.db.models import Comment, Image, Post

Child = TypeVar("Child", Comment, Image)

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


def get_comment_for_update(id: str) -> Comment:
    """Lock the post of a comment and return the comment. Raise NoSuchComment, also if deleted."""
    comment = _get_after_locking_post(Comment, id)
    if comment is None or comment.deleted:
        raise NoSuchComment
    return comment


def get_image_for_update(id: str) -> Image:
    """Lock the post of an image and return the image. Raise NoSuchImage."""
    image = _get_after_locking_post(Image, id)
    if image is None:
        raise NoSuchImage
    return image


def lock_posts(condition: sa.ColumnElement[bool]) -> None:
    """Lock the posts that match a condition."""
    db.session.execute(sa.select(Post.id).where(condition).order_by(Post.id).with_for_update())


def _get_after_locking_post(model: type[Child], id: str) -> Child | None:
    post = sa.select(Post).join(model, model.post_id == Post.id).where(model.id == id)
    db.session.scalars(post.with_for_update(of=Post)).one_or_none()
    return db.session.get(model, id, populate_existing=True)
