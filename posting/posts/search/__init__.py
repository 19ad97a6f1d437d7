"""The search index of posts: a table of FTS5 on SQLite, text search vectors on Postgres.

Both are given the same words, by `words`, so that they find the same posts. The table is
no model: archives do not contain it, and Alembic does not compare it. Whatever writes a post also
indexes it, in the same transaction.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Protocol

import sqlalchemy as sa

from posting.config import StartError
from posting.db.base import db
from posting.db.errors import error_reason
from posting.db.transactions import in_transaction, lift_time_limits
from posting.db.types import Position
from posting.posts.models import Post
from posting.posts.search import postgres, sqlite
from posting.posts.search.entries import Entry, PostRow, PostWords, split_post, split_posts
from posting.posts.search.words import Term

TABLE = sa.table("post_search", sa.column("post_id"), sa.column("version", sa.Integer))
BATCH = 500
MAX_LENGTH = 2**20  # characters that a rebuild indexes in a transaction
MAX_REPETITIONS = 3  # of a word in a query
# NOT EXISTS, because Postgres may scan all posts for each row of a NOT IN.
DELETE_LEFT_OVER = """
    DELETE FROM post_search
    WHERE NOT EXISTS (SELECT 1 FROM posts WHERE posts.id = post_search.post_id)"""


class Implementation(Protocol):
    """The index on one of the databases: the modules `sqlite` and `postgres`."""

    CLEAR: str  # a statement

    def add(self, connection: sa.Connection, entries: Sequence[Entry]) -> None:
        """Add entries of posts that have none."""

    def remove(self, connection: sa.Connection, positions: Sequence[Position]) -> None:
        """Remove the entries of posts, if they have one."""

    def find(
        self, terms: Sequence[Term], author: str | None, after: Position | None, limit: int
    ) -> list[Position]:
        """Return the newest posts, after a position, in which all terms occur."""


def index_posts(entries: Sequence[Entry]) -> None:
    """Index new posts within the transaction."""
    connection = in_transaction()
    _implementation(connection).add(connection, entries)


def reindex_post(post: PostRow, words: PostWords) -> None:
    """Index an edited post again within the transaction.

    The words are split again if another edit has changed the post since.
    """
    unindex_posts([(post["created_at"], post["id"])])
    is_same = words.texts == (post["title"], post["content"])
    index_posts([(post, words if is_same else split_post(post))])


def unindex_posts(positions: Sequence[Position]) -> None:
    """Remove posts from the index within the transaction."""
    connection = in_transaction()
    _implementation(connection).remove(connection, positions)


def find_posts(
    terms: Sequence[Term], author: str | None, after: Position | None, limit: int
) -> list[Position]:
    """Return the newest posts, after a position, in which all terms occur."""
    return _implementation(db.engine).find(_shorten_phrases(terms), author, after, limit)


def _shorten_phrases(terms: Sequence[Term]) -> list[Term]:
    """Return terms whose phrases end before the fourth occurrence of a word in the query.

    A phrase that has a word twenty times would be compared twenty times with each place where the
    word is in a post, and a post may consist of that word. The words after the end of a phrase may
    be anywhere.
    """
    counts: Counter[str] = Counter()
    shortened: dict[Term, None] = {}  # in order, without repetitions
    for term in terms:
        end = len(term.words)
        for place, word in enumerate(term.words):
            counts[word] += 1
            if counts[word] > MAX_REPETITIONS:
                end = place
                break
        parts = [term.words[:end], *((word,) for word in term.words[end:])]
        *others, last = filter(None, parts)
        shortened |= dict.fromkeys([*map(Term, others), Term(last, term.is_prefix)])
    return list(shortened)


def clear(connection: sa.Connection) -> None:
    """Remove all posts from the index."""
    connection.exec_driver_sql(_implementation(connection).CLEAR)


def build(connection: sa.Connection) -> Iterator[int]:
    """Index all posts in an empty index, and yield the size of each batch."""
    last = ""
    while posts := _next_posts(connection, last):
        _implementation(connection).add(connection, split_posts(posts))
        last = posts[-1]["id"]
        yield len(posts)
    if connection.dialect.name == "sqlite":  # autovacuum tends the index on Postgres
        connection.exec_driver_sql(sqlite.OPTIMIZE)


def rebuild() -> Iterator[int]:
    """Index all posts again, in short transactions, and yield the size of each batch.

    Others may search and write meanwhile.
    """
    last = ""
    while True:
        with db.engine.connect().execution_options(writes=False) as connection:
            posts = _next_posts(connection, last)
        if not posts:
            break
        for batch in _split_batch(posts):
            entries = split_posts(batch)
            with db.engine.begin() as connection:
                _replace_unchanged(connection, entries)
            yield len(batch)
        last = posts[-1]["id"]
    with db.engine.begin() as connection:
        lift_time_limits(connection)
        connection.exec_driver_sql(DELETE_LEFT_OVER)


def fill_if_empty() -> None:
    """Index all posts if none is in the index, as after an upgrade that creates it.

    Raise StartError if the database fails.
    """
    try:
        with db.engine.connect().execution_options(writes=False) as connection:
            is_empty = not connection.scalar(sa.select(sa.exists().select_from(TABLE)))
        if is_empty:
            for _ in rebuild():
                pass
    except sa.exc.SQLAlchemyError as error:
        raise StartError(
            f"The posts are not indexed for search ({error_reason(error)}). "
            "Run: flask search rebuild"
        ) from None


def count_stale_entries(connection: sa.Connection) -> int:
    """Return the number of posts whose entry is missing, outdated or left over."""
    posts = sa.select(Post.id, Post.version)
    entries = sa.select(TABLE.c.post_id, TABLE.c.version)
    missing, stale = sa.except_(posts, entries).subquery(), sa.except_(entries, posts).subquery()
    ids = sa.union(sa.select(missing.c.id), sa.select(stale.c.post_id)).subquery()
    return connection.scalar(sa.select(sa.func.count()).select_from(ids)) or 0


def _implementation(bind: sa.Connection | sa.Engine) -> Implementation:
    if bind.dialect.name == "sqlite":
        return sqlite
    return postgres


def _next_posts(connection: sa.Connection, last: str) -> Sequence[PostRow]:
    """Return the next posts by id."""
    columns = Post.id, Post.created_at, Post.author_id, Post.title, Post.content, Post.version
    after = sa.select(*columns).where(Post.id > last).order_by(Post.id).limit(BATCH)
    return connection.execute(after).mappings().all()


def _split_batch(posts: Sequence[PostRow]) -> Iterator[list[PostRow]]:
    """Yield posts in batches that are indexed within a second, while other writes wait."""
    batch: list[PostRow] = []
    length = 0
    for post in posts:
        length += len(post["content"])
        if batch and length > MAX_LENGTH:
            yield batch
            batch, length = [], len(post["content"])
        batch.append(post)
    yield batch


def _replace_unchanged(connection: sa.Connection, entries: Sequence[Entry]) -> None:
    """Index posts again, except those that have changed since they were read.

    The requests that changed them have indexed them.
    """
    locked = sa.select(Post.id, Post.version).where(
        Post.id.in_([post["id"] for post, _ in entries])
    )
    rows = connection.execute(locked.order_by(Post.id).with_for_update())
    versions = {row.id: row.version for row in rows}
    entries = [entry for entry in entries if versions.get(entry[0]["id"]) == entry[0]["version"]]
    if entries:
        positions = [(post["created_at"], post["id"]) for post, _ in entries]
        _implementation(connection).remove(connection, positions)
        _implementation(connection).add(connection, entries)
