"""The search index of posts: a table of FTS5 on SQLite, text search vectors on Postgres.

Both are given the same words, by `posting.db.words`, so that they find the same posts. The table is
no model: archives do not contain it, and Alembic does not compare it. Whatever writes a post also
indexes it, in the same transaction.
"""

from collections.abc import Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any

import sqlalchemy as sa

from posting.db.engine import db, fetch_all, lift_time_limits
from posting.db.models import Post
from posting.db.search import fts5, vectors
from posting.db.types import Position
from posting.db.words import Term

TABLE = sa.table("post_search", sa.column("post_id"), sa.column("version", sa.Integer))
BATCH = 500
# NOT EXISTS, because Postgres may scan all posts for each row of a NOT IN.
DELETE_LEFT_OVER = """
    DELETE FROM post_search
    WHERE NOT EXISTS (SELECT 1 FROM posts WHERE posts.id = post_search.post_id)"""

PostRow = Mapping[Any, Any]  # the columns of a post


def index_posts(posts: Sequence[PostRow]) -> None:
    """Index new posts within the transaction."""
    connection = db.session.connection()
    _implementation(connection).add(connection, posts)


def reindex_post(post: Post) -> None:
    """Index an edited post again within the transaction."""
    unindex_posts([(post.created_at, post.id)])
    index_posts([{column.name: getattr(post, column.name) for column in Post.__table__.columns}])


def unindex_posts(positions: Sequence[Position]) -> None:
    """Remove posts from the index within the transaction."""
    connection = db.session.connection()
    _implementation(connection).remove(connection, positions)


def find_posts(
    terms: Sequence[Term], author: str | None, after: Position | None, limit: int
) -> list[Position]:
    """Return the newest posts, after a position, in which all terms occur."""
    if not terms:
        return []
    implementation = _implementation(db.engine)
    rows: Sequence[sa.Row[Any]] = []
    for statement, values in implementation.searches(terms, author, after, limit):
        rows = fetch_all(statement, **values)
        if len(rows) == limit:
            break
    return [implementation.position(row) for row in rows]


def clear(connection: sa.Connection) -> None:
    """Remove all posts from the index."""
    connection.exec_driver_sql(_implementation(connection).CLEAR)


def build(connection: sa.Connection) -> Iterator[int]:
    """Index all posts in an empty index, and yield the size of each batch."""
    last = ""
    while posts := _next_posts(connection, last):
        _implementation(connection).add(connection, posts)
        last = posts[-1]["id"]
        yield len(posts)
    if connection.dialect.name == "sqlite":  # autovacuum tends the index on Postgres
        connection.exec_driver_sql(fts5.OPTIMIZE)


def rebuild() -> Iterator[int]:
    """Index all posts again, in short transactions, and yield the size of each batch.

    Others may search and write meanwhile.
    """
    last = ""
    while True:
        with db.engine.begin() as connection:
            posts = _next_posts(connection, last)
            if not posts:
                lift_time_limits(connection)
                connection.exec_driver_sql(DELETE_LEFT_OVER)
                return
            implementation = _implementation(connection)
            implementation.remove(connection, [(post["created_at"], post["id"]) for post in posts])
            implementation.add(connection, posts)
        last = posts[-1]["id"]
        yield len(posts)


def is_empty(connection: sa.Connection) -> bool:
    """Return whether no post is in the index, as after an upgrade that creates it."""
    return not connection.scalar(sa.select(sa.exists().select_from(TABLE)))


def count_stale_entries(connection: sa.Connection) -> int:
    """Return the number of posts whose entry is missing, outdated or left over."""
    posts = sa.select(Post.id, Post.version)
    entries = sa.select(TABLE.c.post_id, TABLE.c.version)
    missing, stale = sa.except_(posts, entries).subquery(), sa.except_(entries, posts).subquery()
    ids = sa.union(sa.select(missing.c.id), sa.select(stale.c.post_id)).subquery()
    return connection.scalar(sa.select(sa.func.count()).select_from(ids)) or 0


def _implementation(bind: sa.Connection | sa.Engine) -> ModuleType:
    return fts5 if bind.dialect.name == "sqlite" else vectors


def _next_posts(connection: sa.Connection, last: str) -> Sequence[PostRow]:
    """Lock the next batch of posts by id, and return it."""
    columns = Post.id, Post.created_at, Post.author_id, Post.title, Post.content, Post.version
    after = sa.select(*columns).where(Post.id > last).order_by(Post.id).limit(BATCH)
    return connection.execute(after.with_for_update()).mappings().all()
