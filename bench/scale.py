"""`make bench-scale`: compare ten million posts with a million, on both databases.

SQL creates the posts, which are short, in ten minutes; they take 20 GB of disk. The response cache
is off, since it would hide the differences.
"""

import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path

import psycopg
from pysqlite3 import dbapi2 as sqlite

from bench import data, report
from bench.harness import Row, Servers, sign_up_and_in, temporary_postgres
from bench.rows import PAGE, find_page

RESULTS = Path(__file__).parent / "scale-results.md"
SIZES = 1_000_000, 10_000_000  # numbers of posts
LINES = 3  # in a post
SECONDS, ROUNDS = 3, 5
EDITED, STRIDE = 1000, 617  # posts, evenly distributed, and the way from one to the next
EDIT = """
local number, run = 0, os.time()
wrk.method = "PATCH"
wrk.headers["Content-Type"] = "application/json"
wrk.headers["Cookie"] = "{cookie}"
function request()
    number = number + 1
    local id = string.format("post-%016d", {step} * (1 + number * {stride} % {edited}))
    local body = string.format('{{"title": "Title %d of run %d"}}', number, run)
    return wrk.format(nil, "/posts/" .. id, nil, body)
end
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        servers = Servers(Path(folder), stack, SECONDS, ROUNDS)
        databases = {engine: _databases(servers, engine) for engine in ("SQLite", "Postgres")}
        with ThreadPoolExecutor() as pool:
            list(pool.map(_create, databases.values()))
        rows = []
        for engine, by_posts in databases.items():
            for row in _compare(servers, engine, by_posts):
                print(f"{row.name}: done", file=sys.stderr)
                rows.append(row)
    report.write(RESULTS, "Ten million posts", "make bench-scale", rows)


def _databases(servers: Servers, engine: str) -> dict[int, str]:
    """Return the URLs of databases, by their number of posts."""
    return {
        posts: f"sqlite:///{servers.folder / f'{posts}.db'}"
        if engine == "SQLite"
        else servers.stack.enter_context(temporary_postgres())
        for posts in SIZES
    }


def _create(databases: dict[int, str]) -> None:
    for posts, database in databases.items():
        print(f"Creating {posts:,} posts in {database.partition(':')[0]} ...", file=sys.stderr)
        data.create(database, posts, LINES)


def _compare(servers: Servers, engine: str, databases: dict[int, str]) -> Iterator[Row]:
    urls = {
        posts: servers.posting(database, POSTING_RESPONSE_CACHE="off")
        for posts, database in databases.items()
    }
    paths = {
        "first page": dict.fromkeys(urls, "/posts"),
        f"page {PAGE:,}, by cursor": {posts: find_page(url, PAGE) for posts, url in urls.items()},
        "posts of an author": dict.fromkeys(urls, f"/posts?author={data.user_id(7)}"),
        "single post": {posts: f"/posts/{data.post_id(posts // 2)}" for posts in urls},
        "search for a rare word": {posts: f"/posts?q={posts // 3}" for posts in urls},
        "search for a word in half of the posts": dict.fromkeys(urls, "/posts?q=even"),
    }
    for name, path in paths.items():
        contenders = {posts: (url + path[posts],) for posts, url in urls.items()}
        yield servers.compare_sizes(f"{name}, {engine}", contenders)
    edits = {
        posts: (url, *_edit(servers, url, databases[posts], posts)) for posts, url in urls.items()
    }
    yield servers.compare_sizes(f"edits, {engine}", edits)


def _edit(servers: Servers, url: str, database: str, posts: int) -> tuple[str, ...]:
    """Return the options that make wrk edit the titles of posts all over the table."""
    cookie, step = sign_up_and_in(url, "editor"), posts // EDITED
    ids = ", ".join(f"'{data.post_id(step * (1 + number))}'" for number in range(EDITED))
    statement = (
        "UPDATE posts SET author_id = (SELECT id FROM users WHERE username = 'editor') "
        f"WHERE id IN ({ids})"
    )
    if database.startswith("sqlite"):
        with closing(sqlite.connect(database.removeprefix("sqlite:///"))) as connection, connection:
            connection.execute(statement)
    else:
        with psycopg.connect(database) as server:
            server.execute(statement)
    script = servers.folder / f"edit-{posts}.lua"
    script.write_text(EDIT.format(cookie=cookie, step=step, edited=EDITED, stride=STRIDE))
    return "-s", str(script)


if __name__ == "__main__":
    main()
