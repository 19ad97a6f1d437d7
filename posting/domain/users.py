"""Accounts: unique usernames, and deletion with everything that depends on an account."""

from collections.abc import Iterator
from contextlib import contextmanager
from time import sleep

import sqlalchemy as sa
from werkzeug.exceptions import Conflict

from posting.db import search
from posting.db.engine import db, violated_constraint
from posting.db.locks import lock_posts
from posting.db.models import Comment, Post, User
from posting.domain.threads import BULK, delete_comments

COMMENTS_PER_STEP = 2000
POSTS_PER_STEP = 100
# Seconds between two steps, in which others can take SQLite's write lock.
PAUSE = 0.1


class UsernameTaken(Conflict):
    error_code = "username_taken"
    description = "This username is taken."


def find_account(username: str) -> User | None:
    """Return the account with this name, if there is one."""
    return db.session.scalar(
        sa.select(User).where(sa.func.lower(User.username) == username.lower())
    )


@contextmanager
def unique_username() -> Iterator[None]:
    """Raise UsernameTaken if a commit violates the uniqueness of usernames."""
    try:
        yield
    except sa.exc.IntegrityError as error:
        if violated_constraint(error) != "uq_users_username":
            raise
        raise UsernameTaken from None


def clear_account(user_id: str, *, with_content: bool) -> None:
    """Delete a user's posts and comments, or remove their author, in several transactions.

    In a single transaction, very many of them would block other writers for too long.
    """
    for clear_step in (_clear_comments, _clear_posts):
        while clear_step(user_id, with_content):
            db.session.commit()
            sleep(PAUSE)
        db.session.commit()


def delete_account(user: User, *, with_content: bool) -> None:
    """Delete a locked account, its sessions, and what `clear_account` has left."""
    written = sa.select(Post.id).where(Post.author_id == user.id)
    commented = sa.select(Comment.post_id).where(Comment.author_id == user.id)
    lock_posts(Post.id.in_(written.union(commented)))
    if with_content:
        _delete_posts(Post.author_id == user.id)
        own = sa.select(Comment.id).where(Comment.author_id == user.id)
        delete_comments(db.session.scalars(own).all())
    db.session.execute(sa.delete(User).where(User.id == user.id))


def _clear_posts(user_id: str, with_content: bool) -> bool:
    """Clear some posts of a user, and return whether there may be more."""
    own = sa.select(Post.id).where(Post.author_id == user_id).order_by(Post.id)
    ids = db.session.scalars(own.limit(POSTS_PER_STEP).with_for_update()).all()
    if with_content:
        _delete_posts(Post.id.in_(ids))
    else:
        no_author = {"author_id": None, "updated_at": Post.updated_at}
        statement = sa.update(Post).where(Post.id.in_(ids)).values(no_author)
        db.session.execute(statement, execution_options=BULK)
    return len(ids) == POSTS_PER_STEP


def _delete_posts(condition: sa.ColumnElement[bool]) -> None:
    posts = db.session.execute(sa.select(Post.created_at, Post.id).where(condition)).all()
    search.unindex_posts([(post.created_at, post.id) for post in posts])
    db.session.execute(sa.delete(Post).where(condition), execution_options=BULK)


def _clear_comments(user_id: str, with_content: bool) -> bool:
    """Clear the newest comments of a user, and return whether there may be more.

    Replies are newer than their parents, so this order leaves few placeholders to delete later.
    """
    own = sa.select(Comment.id, Comment.post_id).where(Comment.author_id == user_id)
    newest_first = own.order_by(Comment.created_at.desc(), Comment.id.desc())
    rows = db.session.execute(newest_first.limit(COMMENTS_PER_STEP)).all()
    lock_posts(Post.id.in_({row.post_id for row in rows}))
    still_own = sa.select(Comment.id).where(
        Comment.id.in_([row.id for row in rows]), Comment.author_id == user_id
    )
    ids = db.session.scalars(still_own).all()
    if with_content:
        delete_comments(ids)
    else:
        no_author = {"author_id": None, "updated_at": Comment.updated_at}
        statement = sa.update(Comment).where(Comment.id.in_(ids)).values(no_author)
        db.session.execute(statement, execution_options=BULK)
    return len(rows) == COMMENTS_PER_STEP
