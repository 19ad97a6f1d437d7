"""Rows that nobody else can change until the commit, for those who are about to change them.

Locks are taken in one order, so that no two requests wait for each other: first the account that
asks, then posts, by id, then what hangs under a post, which only the holder of its post changes.
On SQLite, where each transaction that writes is alone, all of this costs nothing.
"""

from typing import TypeVar

import sqlalchemy as sa
from werkzeug.exceptions import NotFound

from posting.db.engine import db
from posting.db.models import Comment, Image, Post

Kind = TypeVar("Kind", Comment, Image)


class NoSuchPost(NotFound):
    description = "There is no such post."


class NoSuchComment(NotFound):
    description = "There is no such comment."


class NoSuchImage(NotFound):
    description = "There is no such image."


def get_post_for_update(id: str) -> Post:
    found = db.session.get(Post, id, with_for_update=True)
    if found is None:
        raise NoSuchPost
    return found


def get_comment_for_update(id: str) -> Comment:
    """Return a comment that is not deleted."""
    found = _under_post(Comment, id)
    if found is None or found.is_deleted:
        raise NoSuchComment
    return found


def get_image_for_update(id: str) -> Image:
    found = _under_post(Image, id)
    if found is None:
        raise NoSuchImage
    return found


def lock_posts(which: sa.ColumnElement[bool]) -> None:
    """Lock the posts for which a condition holds."""
    db.session.execute(sa.select(Post.id).where(which).order_by(Post.id).with_for_update())


def _under_post(kind: type[Kind], id: str) -> Kind | None:
    its_post = sa.select(Post).join(kind, kind.post_id == Post.id).where(kind.id == id)
    db.session.scalars(its_post.with_for_update(of=Post)).one_or_none()
    return db.session.get(kind, id, populate_existing=True)
