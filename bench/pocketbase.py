"""PocketBase (https://pocketbase.io, from its package on PyPI) with the same posts.

Its API creates the collections. SQL fills them while it is stopped, because the API accepts only
one row per request.
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from pysqlite3 import dbapi2 as sqlite

from bench import servers
from bench.data import BASE, LINE, LINES, USERS

PROGRAM = shutil.which("pocketbase", path=str(Path(sys.executable).parent)) or "pocketbase"
ADMIN = {"identity": "bench@example.org", "password": "a benchmark of posting"}
# The same fields as in Posting's lists, and no count of all rows.
FIELDS = (
    "id,title,comment_count,created,updated,expand.author.id,expand.author.username,"
    "expand.author.display_name"
)
LIST = (
    f"/api/collections/posts/records?perPage=20&skipTotal=1&sort=-created&expand=author"
    f"&fields={FIELDS}"
)
CREATE = "/api/collections/posts/records"
# By default, a power failure can undo acknowledged writes. PocketBase writes by one connection.
SYNCHRONOUS = """
onBootstrap((event) => {
    event.next()
    event.app.nonconcurrentDB().newQuery("PRAGMA synchronous = FULL").execute()
})
"""
AUTODATES = [
    {"name": "created", "type": "autodate", "onCreate": True},
    {"name": "updated", "type": "autodate", "onCreate": True, "onUpdate": True},
]


def create(folder: Path, posts: int) -> None:
    """Create the collections and their rows."""
    upsert = [PROGRAM, "superuser", "upsert", *ADMIN.values(), f"--dir={folder}"]
    subprocess.run(upsert, check=True, capture_output=True)
    with serve(folder) as url:
        token = _post(f"{url}/api/collections/_superusers/auth-with-password", ADMIN)["token"]
        people = {
            "name": "people",
            "type": "base",
            "listRule": "",
            "viewRule": "",
            "fields": [
                {"name": "username", "type": "text"},
                {"name": "display_name", "type": "text"},
                *AUTODATES,
            ],
        }
        people_id = _post(f"{url}/api/collections", people, token)["id"]
        relation = {"name": "author", "type": "relation", "collectionId": people_id}
        collection = {
            "name": "posts",
            "type": "base",
            "listRule": "",
            "viewRule": "",
            "createRule": "@request.auth.id != ''",
            "fields": [
                {"name": "title", "type": "text"},
                {"name": "content", "type": "text", "max": 100_000},
                {"name": "comment_count", "type": "number"},
                relation | {"maxSelect": 1},
                *AUTODATES,
            ],
            "indexes": [
                "CREATE INDEX idx_posts_created ON posts (created)",
                "CREATE INDEX idx_posts_author ON posts (author, created)",
            ],
        }
        _post(f"{url}/api/collections", collection, token)
    _fill(folder / "data.db", posts)


@contextmanager
def serve(
    folder: Path, hook: str = "", cores: Sequence[int] = (servers.SERVER_CORE,)
) -> Iterator[str]:
    """Start PocketBase, with the code of a hook, on these cores; yield its URL."""
    url = f"http://127.0.0.1:{servers.free_port()}"
    hooks = folder / "hooks"
    hooks.mkdir(exist_ok=True)
    (hooks / "bench.pb.js").write_text(hook)
    command = [PROGRAM, "serve", f"--dir={folder}", f"--hooksDir={hooks}", "--automigrate=false"]
    command.append(f"--http={url.removeprefix('http://')}")
    with servers.serve(command, f"{url}/api/health", cores, GOMAXPROCS=str(len(cores))):
        yield url


def sign_in(url: str) -> str:
    """Create an account; return a token of it."""
    account = {"email": "writer@example.org", "password": ADMIN["password"]}
    collection = f"{url}/api/collections/users"
    _post(f"{collection}/records", account | {"passwordConfirm": account["password"]})
    identity = {"identity": account["email"], "password": account["password"]}
    return str(_post(f"{collection}/auth-with-password", identity)["token"])


def post_url(number: int) -> str:
    return f"/api/collections/posts/records/post{number:011}?expand=author"


def _post(url: str, body: dict[str, Any], token: str = "") -> Any:
    headers = {"Content-Type": "application/json", "Authorization": token}
    with urlopen(Request(url, json.dumps(body).encode(), headers)) as response:
        return json.load(response)


def _fill(database: Path, posts: int) -> None:
    timestamp = f"strftime('%Y-%m-%d %H:%M:%fZ', '{BASE}', '+' || n || ' seconds')"
    counting = (
        "WITH RECURSIVE counting(n) AS "
        "(SELECT 1 UNION ALL SELECT n + 1 FROM counting WHERE n < {}) "
    )
    content = LINE * LINES
    connection = sqlite.connect(database)
    connection.execute(
        "INSERT INTO people (id, username, display_name, created, updated) "
        + counting.format(USERS)
        + f"SELECT printf('user%011d', n), 'user-' || n, 'User ' || n, {timestamp}, {timestamp} "
        "FROM counting"
    )
    connection.execute(
        "INSERT INTO posts (id, author, title, content, comment_count, created, updated) "
        + counting.format(posts)
        + f"SELECT printf('post%011d', n), printf('user%011d', 1 + n % {USERS}), "
        f"'A title of the ordinary kind, number ' || n, '{content}', 0, {timestamp}, {timestamp} "
        "FROM counting"
    )
    connection.commit()
    connection.execute("ANALYZE")
    connection.close()
