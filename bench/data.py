"""The benchmark data: posts by 1,000 users, and one post with 10,000 comments.

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
from posting.posts.search import sqlite as fts5

ROOT = Path(__file__).parent.parent
USERS = 1000
COMMENTS = 10_000
PASSWORD = "a benchmark of posting"
LINE = "Words that somebody could have written. "
LINES = 50  # make a post of 2 KB
BASE = "2016-01-01 00:00:00"
TEN_YEARS = 315_360_000  # seconds, in which all posts are written

# SQL of each engine for the numbers 1 to n, an id with leading zeros, and a timestamp.
DIALECTS: Mapping[str, Mapping[str, str]] = {
    "sqlite": {
        "numbers": "(WITH RECURSIVE counting(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counting "
        "WHERE n < {count}) SELECT n FROM counting)",
        "id": "printf('{prefix}%016d', {n})",
        "timestamp": f"strftime('%Y-%m-%d %H:%M:%f000', '{BASE}', '+' || {{n}} || ' seconds')",
    },
    "postgresql": {
        "numbers": "(SELECT * FROM generate_series(1, {count}) AS counting(n)) AS numbers",
        "id": "'{prefix}' || lpad(({n})::text, 16, '0')",
        "timestamp": f"timestamptz '{BASE}+00' + ({{n}}) * interval '1 second'",
    },
}

# SQL that makes the words of `posting.posts.search.words`, as FTS5 does itself.
TEXTS = ", ".join(
    f"replace(translate(lower({column}), '.,', ''), '  ', ' ') AS {column}"
    for column in ("title", "content")
)
INDEX: Mapping[str, tuple[str, ...]] = {
    "sqlite": (
        "INSERT INTO post_search (rowid, title, content, author, post_id, version) SELECT "
        f"{fts5.first_rowid((EPOCH, 'post'))} + (unixepoch(created_at) * 1000 << {fts5.ID_BITS}), "
        "title, content, author_id, id, version FROM posts ORDER BY created_at",
        fts5.OPTIMIZE,
    ),
    "postgresql": (
        "DROP INDEX ix_post_search_lexemes",  # creating it is quicker than filling it
        "INSERT INTO post_search (post_id, created_at, version, text, words) SELECT id, "
        "created_at, version, ' ' || title || E' \n ' || content || ' ', "
        "strip(to_tsvector('simple', title || ' ' || content)) "
        "|| array_to_tsvector(ARRAY['@' || author_id]) "
        f"FROM (SELECT id, created_at, version, author_id, {TEXTS} FROM posts) AS posts",
        "CREATE INDEX ix_post_search_lexemes ON post_search "
        "USING gin (post_search_lexemes(words, created_at))",
        "ANALYZE",  # as autovacuum does; nothing does it for SQLite
    ),
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


def create(url: str, posts: int, lines: int = LINES) -> None:
    """Create the schema and the rows in an empty database, with this number of lines in a post."""
    flask = [sys.executable, "-m", "flask", "db", "upgrade"]
    environment = os.environ | {"POSTING_DATABASE_URL": url}
    subprocess.run(flask, cwd=ROOT, env=environment, check=True, capture_output=True)
    on_sqlite = url.startswith("sqlite")
    engine = (
        sa.create_engine(url, module=sqlite)
        if on_sqlite
        else sa.create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    )
    dialect = engine.dialect.name
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        for statement in PREPARE[dialect]:
            connection.exec_driver_sql(statement)
        for statement in (*_statements(dialect, posts, lines), *INDEX[dialect]):
            connection.exec_driver_sql(statement)
    engine.dispose()


def user_id(number: int) -> str:
    return f"user-{number:016}"


def post_id(number: int) -> str:
    return f"post-{number:016}"


def _statements(engine: str, posts: int, lines: int) -> list[str]:
    dialect = DIALECTS[engine]

    def numbers(count: int) -> str:
        return dialect["numbers"].format(count=count)

    def identifier(prefix: str, n: str = "n") -> str:
        return dialect["id"].format(prefix=prefix, n=n)

    timestamp = dialect["timestamp"].format(n="n")
    time_of_post = dialect["timestamp"].format(n=f"n * {max(1, TEN_YEARS // posts)}")
    some_user = identifier("user-", f"1 + n - n / {USERS} * {USERS}")
    content = LINE * lines
    # Each of these words is in half of the posts; psycopg would parse a %.
    words = " || ".join(
        f"CASE WHEN {condition} THEN ' {word}' ELSE ' {other}' END"
        for condition, word, other in (
            ("n / 2 * 2 = n", "even", "odd"),
            ("n / 4 * 2 = n / 2", "left", "right"),
            ("n / 8 * 2 = n / 4", "warm", "cold"),
            (f"n <= {posts // 2}", "early", "late"),
        )
    )
    return [
        "INSERT INTO users (id, username, display_name, role, password_hash, created_at) "
        f"SELECT {identifier('user-')}, 'user-' || n, 'User ' || n, 'member', 'none', {timestamp} "
        f"FROM {numbers(USERS)}",
        "INSERT INTO posts (id, author_id, title, content, comment_count, version, created_at, "
        f"updated_at) SELECT {identifier('post-')}, {some_user}, "
        f"'A title of the ordinary kind, number ' || n, '{content}' || {words}, 0, 1, "
        f"{time_of_post}, {time_of_post} FROM {numbers(posts)}",
        "INSERT INTO comments (id, post_id, author_id, content, version, created_at, updated_at) "
        f"SELECT {identifier('talk-')}, '{post_id(1)}', {some_user}, '{LINE * 5}', 1, {timestamp}, "
        f"{timestamp} FROM {numbers(COMMENTS)}",
        f"UPDATE posts SET comment_count = {COMMENTS}, last_comment_at = (SELECT max(created_at) "
        f"FROM comments) WHERE id = '{post_id(1)}'",
    ]
