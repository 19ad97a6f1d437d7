"""The benchmark data: posts by 1,000 users, and comments, of which one post has 10,000.

SQL generates the rows and the search index in the database, because inserting a million rows from
Python would take longer than the measurements.
"""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import sqlalchemy as sa
from pysqlite3 import dbapi2 as sqlite

from posting.db.types import EPOCH
from posting.search import sqlite as fts5

ROOT = Path(__file__).parent.parent
USERS = 1000
COMMENTS = 10_000  # on one post
PASSWORD = "a benchmark of posting"
LINE = "Words that somebody could have written. "
LINES = 50  # make a post of 2 KB
BASE = "2016-01-01 00:00:00"
TEN_YEARS = 315_360_000  # seconds, in which all posts and comments are written

# SQL of each engine for the numbers 1 to n, an id with leading zeros, and a timestamp.
DIALECTS: Mapping[str, Mapping[str, str]] = {
    "sqlite": {
        "numbers": "(WITH RECURSIVE counting(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counting "
        "WHERE n < {count}) SELECT n FROM counting)",
        "id": "printf('{prefix}%016d', {n})",
        "timestamp": f"strftime('%Y-%m-%d %H:%M:%f000', '{BASE}', '+' || ({{n}}) || ' seconds')",
    },
    "postgresql": {
        "numbers": "(SELECT * FROM generate_series(1, {count}) AS counting(n)) AS numbers",
        "id": "'{prefix}' || lpad(({n})::text, 16, '0')",
        "timestamp": f"timestamptz '{BASE}+00' + ({{n}}) * interval '1 second'",
    },
}

# Settings while the rows are created: more memory, and no protection against a crash.
PREPARE: Mapping[str, tuple[str, ...]] = {
    "sqlite": (
        "PRAGMA journal_mode = OFF",
        "PRAGMA synchronous = OFF",
        "PRAGMA cache_size = -1000000",
    ),
    "postgresql": (
        "SET synchronous_commit = off",
        "SET maintenance_work_mem = '1GB'",
        "SET session_replication_role = replica",  # which does not check foreign keys
    ),
}


def create(url: str, posts: int, lines: int = LINES, comments: int = COMMENTS) -> None:
    """Create the schema and the rows in an empty database, with this number of lines in a post.

    Comments beyond 10,000 are on all posts in turn.
    """
    flask = [sys.executable, "-m", "flask", "db", "upgrade"]
    environment = os.environ | {"POSTING_DATABASE_URL": url}
    subprocess.run(flask, cwd=ROOT, env=environment, check=True, capture_output=True)
    engine = _engine(url)
    dialect = engine.dialect.name
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        for statement in PREPARE[dialect]:
            connection.exec_driver_sql(statement)
        for statement in (
            *_statements(dialect, posts, lines, comments),
            *_index(dialect, "post", ["title", "content"]),
            *_index(dialect, "comment", ["content"]),
        ):
            connection.exec_driver_sql(statement)
        if dialect == "postgresql":
            connection.exec_driver_sql("ANALYZE")  # as autovacuum does; nothing does it for SQLite
    engine.dispose()


def add_changes(url: str, count: int) -> None:
    """Add changes to a database that `create` has filled: edits of posts in turn."""
    engine = _engine(url)
    dialect = DIALECTS[engine.dialect.name]
    post = dialect["id"].format(prefix="post-", n=f"1 + n - n / {USERS} * {USERS}")
    transaction = (
        "NULL" if engine.dialect.name == "sqlite" else "pg_current_xact_id()::text::bigint"
    )
    with engine.begin() as connection:
        connection.exec_driver_sql(
            "INSERT INTO changes (transaction_id, kind, id, post_id, change, at) "
            f"SELECT {transaction}, 'post', {post}, {post}, 'edited', "
            f"{dialect['timestamp'].format(n='n')} FROM {dialect['numbers'].format(count=count)}"
        )
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql("ANALYZE changes")
    engine.dispose()


def user_id(number: int) -> str:
    return f"user-{number:016}"


def post_id(number: int) -> str:
    return f"post-{number:016}"


def _engine(url: str) -> sa.Engine:
    if url.startswith("sqlite"):
        return sa.create_engine(url, module=sqlite)
    return sa.create_engine(url.replace("postgresql:", "postgresql+psycopg:"))


def _statements(engine: str, posts: int, lines: int, comments: int) -> list[str]:
    dialect = DIALECTS[engine]

    def numbers(count: int) -> str:
        return dialect["numbers"].format(count=count)

    def identifier(prefix: str, n: str = "n") -> str:
        return dialect["id"].format(prefix=prefix, n=n)

    timestamp = dialect["timestamp"].format(n="n")
    some_user = identifier("user-", f"1 + n - n / {USERS} * {USERS}")
    some_post = identifier("post-", f"1 + n - n / {posts} * {posts}")
    content = LINE * lines

    def time_of_one(count: int) -> str:
        return dialect["timestamp"].format(n=f"n * {max(1, TEN_YEARS // count)}")

    def words_of_half(count: int) -> str:
        """Return words, each of which is in half of the texts; psycopg would parse a %."""
        return " || ".join(
            f"CASE WHEN {condition} THEN ' {word}' ELSE ' {other}' END"
            for condition, word, other in (
                ("n / 2 * 2 = n", "even", "odd"),
                ("n / 4 * 2 = n / 2", "left", "right"),
                ("n / 8 * 2 = n / 4", "warm", "cold"),
                (f"n <= {count // 2}", "early", "late"),
            )
        )

    return [
        "INSERT INTO users (id, username, display_name, role, password_hash, created_at) "
        f"SELECT {identifier('user-')}, 'user-' || n, 'User ' || n, 'member', 'none', {timestamp} "
        f"FROM {numbers(USERS)}",
        "INSERT INTO posts (id, author_id, title, content, comment_count, version, created_at, "
        f"updated_at) SELECT {identifier('post-')}, {some_user}, "
        f"'A title of the ordinary kind, number ' || n, '{content}' || {words_of_half(posts)}, "
        f"0, 1, {time_of_one(posts)}, {time_of_one(posts)} FROM {numbers(posts)}",
        "INSERT INTO comments (id, post_id, author_id, content, version, created_at, updated_at, "
        f"thread_id, thread_at) SELECT {identifier('talk-')}, CASE WHEN n <= {COMMENTS} "
        f"THEN '{post_id(1)}' ELSE {some_post} END, {some_user}, "
        f"'{LINE * 5} number ' || n || {words_of_half(comments)}, 1, {time_of_one(comments)}, "
        f"{time_of_one(comments)}, {identifier('talk-')}, {time_of_one(comments)} "
        f"FROM {numbers(comments)}",
        "UPDATE posts SET comment_count = counted.number, last_comment_at = counted.latest FROM "
        "(SELECT post_id, count(*) AS number, max(created_at) AS latest FROM comments "
        "GROUP BY post_id) AS counted WHERE posts.id = counted.post_id",
    ]


def _index(engine: str, name: str, texts: list[str]) -> list[str]:
    """Return the SQL that fills the search index of posts or comments.

    It makes the words of `posting.search.words`; FTS5 does that itself.
    """
    columns = ", ".join(texts)
    if engine == "sqlite":
        first_rowid = fts5.first_rowid((EPOCH, "post" if name == "post" else "talk"))
        return [
            f"INSERT INTO {name}_search (rowid, {columns}, author, {name}_id, version) SELECT "
            f"{first_rowid} + (unixepoch(created_at) * 1000 << {fts5.ID_BITS}), {columns}, "
            f"author_id, id, version FROM {name}s ORDER BY created_at",
            fts5.OPTIMIZE.format(name=name),
        ]
    words = (f"replace(translate(lower({text}), '.,', ''), '  ', ' ') AS {text}" for text in texts)
    rows = f"SELECT id, created_at, version, author_id, {', '.join(words)} FROM {name}s"
    text, all_words = r" || E' \n ' || ".join(texts), " || ' ' || ".join(texts)
    return [
        f"DROP INDEX ix_{name}_search_lexemes",  # creating it is quicker than filling it
        f"INSERT INTO {name}_search ({name}_id, created_at, version, text, words) SELECT id, "
        f"created_at, version, ' ' || {text} || ' ', strip(to_tsvector('simple', {all_words})) "
        f"|| array_to_tsvector(ARRAY['@' || author_id]) FROM ({rows}) AS texts",
        f"CREATE INDEX ix_{name}_search_lexemes ON {name}_search "
        f"USING gin ({name}_search_lexemes(words, created_at))",
    ]
