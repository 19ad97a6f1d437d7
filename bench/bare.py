"""A minimal Flask app as an upper bound: its views send fixed bytes or insert one row.

Environment: `BODY` is the path of the bytes, `DATABASE` the path of an SQLite file or
the URL of a Postgres database, and `PASSWORD_HASH` the hash that `/password` checks.
"""

import os
import threading
from contextlib import suppress
from pathlib import Path

import psycopg
from flask import Flask, Response, request
from pysqlite3 import dbapi2 as sqlite
from werkzeug.security import check_password_hash

from posting.db.sqlite import SQLITE_PRAGMAS
from posting.db.types import new_id

BODY = Path(os.environ["BODY"]).read_bytes()
PASSWORD_HASH = os.environ["PASSWORD_HASH"]
TABLE = "CREATE TABLE IF NOT EXISTS things (id TEXT PRIMARY KEY, title TEXT, content TEXT)"
INSERT = "INSERT INTO things (id, title, content) VALUES (?, ?, ?)"

app = Flask(__name__)
local = threading.local()
hashing = threading.BoundedSemaphore(os.cpu_count() or 1)  # as in Posting


@app.get("/bytes")
def send_bytes() -> Response:
    return Response(BODY, content_type="application/json")


@app.get("/unchanged")
def not_modified() -> Response:
    return Response(status=304)


@app.post("/rows")
def insert_row() -> Response:
    body = request.get_json()
    connection = _connection()
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(INSERT, (new_id(), body["title"], body["content"]))
    connection.execute("COMMIT")
    return Response(b"{}", 201, content_type="application/json")


@app.post("/postgres/rows")
def insert_row_on_postgres() -> Response:
    body = request.get_json()
    values = (new_id(), body["title"], body["content"])
    _postgres().execute(INSERT.replace("?", "%s"), values)
    return Response(b"{}", 201, content_type="application/json")


@app.post("/password")
def check_password() -> Response:
    password = request.get_json()["password"]
    with hashing:
        correct = check_password_hash(PASSWORD_HASH, password)
    return Response(b"{}", 200 if correct else 401, content_type="application/json")


def _connection() -> sqlite.Connection:
    if not hasattr(local, "connection"):
        local.connection = sqlite.connect(os.environ["DATABASE"], isolation_level=None)
        for pragma in SQLITE_PRAGMAS:
            local.connection.execute(f"PRAGMA {pragma}")
        local.connection.execute(TABLE)
    return local.connection


def _postgres() -> psycopg.Connection:
    """Return this thread's connection, which commits each statement."""
    if not hasattr(local, "connection"):
        local.connection = psycopg.connect(os.environ["DATABASE"], autocommit=True)
        with suppress(psycopg.errors.UniqueViolation):  # another thread is creating the table
            local.connection.execute(TABLE)
    return local.connection
