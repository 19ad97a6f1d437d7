"""The statements that read posts."""

from functools import cache
from typing import Any, NamedTuple

import sqlalchemy as sa

from posting.db.transactions import Row, fetch_all, fetch_one, fetch_value
from posting.db.types import Position
from posting.markdown import BEGINNING
from posting.posts import schemas
from posting.posts.models import Post
from posting.web.problems import NoSuch
from posting.web.rows import Item, select, to_item, to_items


class NoSuchPost(NoSuch, thing="post"):
    pass


_EXISTS = Post.deleted_at.is_(None)
_POST = select(schemas.Post, Post).add_columns(Post.version)
_POST = _POST.where(Post.id == sa.bindparam("id"), _EXISTS)

_LOCKED = sa.select(Post.locked.label("locked")).where(Post.id == sa.bindparam("id"), _EXISTS)


class Order(NamedTuple):
    """An order of posts, newest first: its name in cursors, and the name of its timestamp."""

    name: str
    time: str


ORDERS = {
    "new": Order("list_posts", "created_at"),
    "active": Order("active_posts", "last_activity_at"),
}


@cache
def select_posts(
    *, content: bool = False, excerpt: bool = False, by_author: bool = False
) -> sa.Select[*tuple[Any, ...]]:
    """Return a SELECT of posts, with their content or the beginning of it.

    `by_author` selects the posts of the user whose id is the parameter `author`.
    """
    statement = select(schemas.PostBrief, Post, without=() if content else ("content",))
    statement = statement.where(_EXISTS)
    if excerpt:
        statement = statement.add_columns(
            sa.func.substr(Post.content, 1, BEGINNING).label("content")
        )
    return statement.where(Post.author_id == sa.bindparam("author")) if by_author else statement


_IS_PINNED = Post.pinned_at.is_not(None)
_PINNED = select_posts(excerpt=True).where(_IS_PINNED).order_by(Post.pinned_at.desc(), Post.id)
_PINNED_PLACES = sa.select(Post.created_at, Post.id).where(_IS_PINNED)


def get_post(id: str) -> Item:
    """Return a post with `version`. Raise NoSuchPost."""
    row = fetch_one(_POST, id=id)
    if row is None:
        raise NoSuchPost
    return to_item(row)


def list_pinned_posts() -> list[Item]:
    """Return the pinned posts as a list of posts shows them, the last pinned first."""
    return to_items(fetch_all(_PINNED))


def list_pinned_positions(after: Position | None, limit: int) -> list[Position]:
    """Return the positions of pinned posts, newest first, after one of them.

    For `paginate`: SQLite would go through all posts in its order to find the five.
    """
    places = [(row.created_at, row.id) for row in fetch_all(_PINNED_PLACES)]
    return sorted((place for place in places if not after or place < after), reverse=True)[:limit]


def count_posts_by(author_id: str) -> int:
    """Return how many posts a user has written."""
    count: int = fetch_value(sa.select(sa.func.count()).where(Post.author_id == author_id))
    return count


def get_marks(id: str) -> Row:
    """Return since when a post is locked, and since when it is pinned. Raise NoSuchPost."""
    row = fetch_one(sa.select(Post.locked_at, Post.pinned_at).where(Post.id == id, _EXISTS))
    if row is None:
        raise NoSuchPost
    return row


def is_locked(id: str) -> bool:
    """Return whether members may not comment on a post. Raise NoSuchPost."""
    row = fetch_one(_LOCKED, id=id)
    if row is None:
        raise NoSuchPost
    return bool(row.locked)


def post_exists(id: str) -> bool:
    return fetch_one(sa.select(Post.id).where(Post.id == id, _EXISTS)) is not None
