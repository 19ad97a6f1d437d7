"""Changes of posts together with their entries in the search index."""

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from posting.accounts.deletion import Content
from posting.db.editing import edit
from posting.db.transactions import Row, execute, fetch_all
from posting.db.types import new_id, now
from posting.posts import schemas, search
from posting.posts.locks import lock_posts
from posting.posts.models import Post
from posting.posts.search.entries import PostWords, split_posts
from posting.web.rows import Item, insert, to_item

POSTS_PER_STEP = 100

_INSERT = insert(schemas.Post, Post).returning(Post.version)


def insert_post(author_id: str, body: Mapping[str, Any], words: PostWords) -> Item:
    """Insert a post, and return it with `version`, and with the id of its author."""
    values = {"id": new_id(), "created_at": now(), "author_id": author_id, **body}
    post = to_item(execute(_INSERT, **values).one())
    search.index_posts([(values | {"version": post["version"]}, words)])
    return post


def insert_posts(rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert new posts by their columns, without `version`."""
    execute(sa.insert(Post), rows)
    search.index_posts(split_posts([{**row, "version": 1} for row in rows]))


def edit_post(post: Row, changes: Mapping[str, Any], words: PostWords) -> None:
    """Edit a locked post, whose words were split before the transaction began."""
    if edit(Post, post, changes):
        search.reindex_post({**post._mapping, **changes, "version": post.version + 1}, words)


def delete_posts(condition: sa.ColumnElement[bool]) -> None:
    """Delete the locked posts that match a condition."""
    posts = fetch_all(sa.select(Post.created_at, Post.id).where(condition))
    search.unindex_posts([(post.created_at, post.id) for post in posts])
    execute(sa.delete(Post).where(condition))


def _clear_step(user_id: str, with_content: bool) -> bool:
    own = sa.select(Post.id).where(Post.author_id == user_id).order_by(Post.id)
    ids = execute(own.limit(POSTS_PER_STEP).with_for_update()).scalars().all()
    if with_content:
        delete_posts(Post.id.in_(ids))
    else:
        execute(sa.update(Post).where(Post.id.in_(ids)).values(author_id=None))
    return len(ids) == POSTS_PER_STEP


def _clear_rest(user_id: str, with_content: bool) -> None:
    lock_posts(Post.author_id == user_id)
    if with_content:
        delete_posts(Post.author_id == user_id)


CONTENT = Content(_clear_step, _clear_rest)
