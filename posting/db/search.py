"""The search index of posts: a table of FTS5 on SQLite, text search vectors on Postgres.

Both are given the same words, by `posting.db.words`, so that they find the same posts. The table is
no model: archives do not contain it, and Alembic does not compare it. Whatever writes a post also
indexes it, in the same transaction.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa

from posting.db.engine import db, fetch_all
from posting.db.models import Post
from posting.db.words import Term, split_words

TABLE = sa.table("post_search", sa.column("post_id"), sa.column("version", sa.Integer))
BATCH = 500
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LATEST = datetime.max.replace(tzinfo=UTC)
ID_CHARACTERS = "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz"  # in their order
MAX_ROWID = 2**63 - 1
SAME_PLACE = 8  # rowids for posts of one millisecond whose ids begin alike

PostRow = Mapping[Any, Any]  # the columns of a post
Place = tuple[datetime, str]  # of a post in the list: its timestamp and id
Index = type["Fts5 | TextSearchVectors"]


class Fts5:
    """The index on SQLite. A rowid is the place of a post, since FTS5 finds in their order."""

    clear = "INSERT INTO post_search (post_search) VALUES ('delete-all')"
    _insert = sa.text("""
        INSERT INTO post_search (rowid, title, content, author, post_id, version)
        VALUES (:rowid, :title, :content, :author, :id, :version)""")
    _delete = sa.text("""
        DELETE FROM post_search WHERE rowid >= :first AND rowid < :end AND post_id = :id""")
    _find = sa.text("""
        SELECT post_id FROM post_search WHERE post_search MATCH :match AND rowid < :before
        ORDER BY rowid DESC LIMIT :limit""")

    @classmethod
    def add(cls, connection: sa.Connection, posts: Sequence[PostRow]) -> None:
        for post in posts:
            values = {
                "id": post["id"],
                "version": post["version"],
                "author": post["author_id"] or "",
                "title": " ".join(split_words(post["title"])),
                "content": " ".join(split_words(post["content"])),
            }
            first = _rowid((post["created_at"], post["id"]))
            for rowid in range(first, first + SAME_PLACE):
                with suppress(sa.exc.IntegrityError):  # another post has it
                    connection.execute(cls._insert, values | {"rowid": rowid})
                    break

    @classmethod
    def remove(cls, connection: sa.Connection, places: Sequence[Place]) -> None:
        for place in places:
            first = _rowid(place)
            values = {"first": first, "end": first + SAME_PLACE, "id": place[1]}
            connection.execute(cls._delete, values)

    @classmethod
    def find(
        cls, terms: Sequence[Term], author: str | None, after: Place | None, limit: int
    ) -> list[str]:
        phrases = (f'"{" ".join(term.words)}"{"*" * term.is_beginning}' for term in terms)
        match = f"{{title content}} : ({' AND '.join(phrases)})"
        if author:
            match += f' AND author : "{author}"'
        before = _rowid(after) if after else MAX_ROWID
        rows = fetch_all(cls._find, match=match, before=before, limit=limit)
        return [row.post_id for row in rows]


class TextSearchVectors:
    """The index on Postgres.

    GIN finds posts with all words. Whether those of a phrase follow each other shows the text: a
    vector has at most 256 positions of a word.
    """

    clear = "DELETE FROM post_search"
    _insert = sa.text("""
        INSERT INTO post_search (post_id, created_at, version, text, words)
        VALUES (:id, :created_at, :version, :text, array_to_tsvector(:words))""")
    # Common words are found in the newest posts. Only rarer ones are looked up by GIN, since all
    # posts that it finds have to be sorted. The planner cannot tell which words new posts have.
    _find_recent = sa.text("""
        SELECT post_id FROM (
            SELECT * FROM post_search WHERE (created_at, post_id) < (:after_time, :after_id)
            ORDER BY created_at DESC, post_id DESC LIMIT 1000
        ) AS recent
        WHERE words @@ CAST(:query AS tsquery) AND text LIKE ALL (CAST(:phrases AS text[]))
        ORDER BY created_at DESC, post_id DESC LIMIT :limit""")
    _find_all = sa.text("""
        WITH found AS MATERIALIZED (
            SELECT post_id, created_at FROM post_search
            WHERE words @@ CAST(:query AS tsquery) AND text LIKE ALL (CAST(:phrases AS text[]))
            AND (created_at, post_id) < (:after_time, :after_id)
        )
        SELECT post_id FROM found ORDER BY created_at DESC, post_id DESC LIMIT :limit""")

    @classmethod
    def add(cls, connection: sa.Connection, posts: Sequence[PostRow]) -> None:
        rows = []
        for post in posts:
            title, content = split_words(post["title"]), split_words(post["content"])
            author = [f"@{post['author_id']}"] if post["author_id"] else []
            row = {name: post[name] for name in ("id", "created_at", "version")}
            row["text"] = f" {' '.join(title)} \n {' '.join(content)} "
            row["words"] = [*{*title, *content, *author}]
            rows.append(row)
        connection.execute(cls._insert, rows)

    @classmethod
    def remove(cls, connection: sa.Connection, places: Sequence[Place]) -> None:
        ids = [id for _, id in places]
        connection.execute(sa.delete(TABLE).where(TABLE.c.post_id.in_(ids)))

    @classmethod
    def find(
        cls, terms: Sequence[Term], author: str | None, after: Place | None, limit: int
    ) -> list[str]:
        lexemes = [f"'{word}'" for term in terms for word in term.words[:-1]]
        lexemes += [f"'{term.words[-1]}'{':*' * term.is_beginning}" for term in terms]
        if author:
            lexemes.append(f"'@{author}'")
        phrases = [
            f"% {' '.join(term.words)}{'%' if term.is_beginning else ' %'}"
            for term in terms
            if len(term.words) > 1
        ]
        after_time, after_id = after or (LATEST, "")
        values = {"query": " & ".join(lexemes), "phrases": phrases, "limit": limit}
        values |= {"after_time": after_time, "after_id": after_id}
        rows = fetch_all(cls._find_recent, **values)
        if len(rows) < limit:
            rows = fetch_all(cls._find_all, **values)
        return [row.post_id for row in rows]


def add_posts(posts: Sequence[PostRow]) -> None:
    """Index new posts within the transaction."""
    connection = db.session.connection()
    _index(connection).add(connection, posts)


def update_post(post: Post) -> None:
    """Index an edited post again within the transaction."""
    remove_posts([(post.created_at, post.id)])
    add_posts([{column.name: getattr(post, column.name) for column in Post.__table__.columns}])


def remove_posts(places: Sequence[Place]) -> None:
    """Remove posts from the index within the transaction."""
    connection = db.session.connection()
    _index(connection).remove(connection, places)


def find_posts(
    terms: Sequence[Term], author: str | None, after: Place | None, limit: int
) -> list[str]:
    """Return the ids of the newest posts, after a place, in which all terms occur."""
    return _index(db.engine).find(terms, author, after, limit) if terms else []


def clear(connection: sa.Connection) -> None:
    """Remove all posts from the index."""
    connection.exec_driver_sql(_index(connection).clear)


def rebuild(connection: sa.Connection) -> Iterator[int]:
    """Index all posts anew, and yield the number of posts in each batch."""
    clear(connection)
    columns = Post.id, Post.created_at, Post.author_id, Post.title, Post.content, Post.version
    select = sa.select(*columns).order_by(Post.id).limit(BATCH)
    last = ""
    while posts := connection.execute(select.where(Post.id > last)).mappings().all():
        _index(connection).add(connection, posts)
        last = posts[-1]["id"]
        yield len(posts)


def fill(connection: sa.Connection) -> None:
    """Index all posts if none is in the index, as after an upgrade that creates it."""
    if not connection.scalar(sa.select(sa.exists().select_from(TABLE))):
        for _ in rebuild(connection):
            pass


def count_wrong_entries(connection: sa.Connection) -> int:
    """Return how many posts are not in the index in their current version, or no longer exist."""
    posts = sa.select(Post.id, Post.version)
    entries = sa.select(TABLE.c.post_id, TABLE.c.version)
    missing, stale = sa.except_(posts, entries).subquery(), sa.except_(entries, posts).subquery()
    ids = sa.union(sa.select(missing.c.id), sa.select(stale.c.post_id)).subquery()
    return connection.scalar(sa.select(sa.func.count()).select_from(ids)) or 0


def _index(bind: sa.Connection | sa.Engine) -> Index:
    return Fts5 if bind.dialect.name == "sqlite" else TextSearchVectors


def _rowid(place: Place) -> int:
    """Return the number of a place: milliseconds, and the first 21 bits of the id."""
    created_at, id = place
    milliseconds = (created_at - EPOCH) // timedelta(milliseconds=1)
    a, b, c, d = (ID_CHARACTERS.index(character) for character in id[:4])
    rowid = milliseconds << 21 | a << 15 | b << 9 | c << 3 | d >> 3
    return max(-MAX_ROWID, min(rowid, MAX_ROWID - SAME_PLACE))
