"""What no Flask service can be faster than: views that hand out ready bytes, or store one row.

`BODY` names the file with the bytes, `DATABASE` the SQLite file, and `PASSWORD_HASH` is one.
"""

import os
import threading
from pathlib import Path

from flask import Flask, Response, request
from pysqlite3 import dbapi2 as sqlite
from werkzeug.security import check_password_hash

from posting.db.engine import SQLITE_PRAGMAS
from posting.db.types import new_id

BODY = Path(os.environ["BODY"]).read_bytes()
PASSWORD_HASH = os.environ["PASSWORD_HASH"]
INSERT = "INSERT INTO things (id, title, content) VALUES (?, ?, ?)"

app = Flask(__name__)
own = threading.local()
hashing = threading.BoundedSemaphore(os.cpu_count() or 1)  # as Posting has it


@app.get("/bytes")
def hand_out() -> Response:
    return Response(BODY, content_type="application/json")


@app.get("/unchanged")
def not_modified() -> Response:
    return Response(status=304)


@app.post("/rows")
def store() -> Response:
    body = request.get_json()
    connection = _connection()
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(INSERT, (new_id(), body["title"], body["content"]))
    connection.execute("COMMIT")
    return Response(b"{}", 201, content_type="application/json")


@app.post("/password")
def check_password() -> Response:
    password = request.get_json()["password"]
    with hashing:
        right = check_password_hash(PASSWORD_HASH, password)
    return Response(b"{}", 200 if right else 401, content_type="application/json")


def _connection() -> sqlite.Connection:
    if not hasattr(own, "connection"):
        own.connection = sqlite.connect(os.environ["DATABASE"], isolation_level=None)
        for pragma in SQLITE_PRAGMAS:
            own.connection.execute(f"PRAGMA {pragma}")
        table = "things (id TEXT PRIMARY KEY, title TEXT, content TEXT)"
        own.connection.execute(f"CREATE TABLE IF NOT EXISTS {table}")
    return own.connection
