"""The database engine: where the database is, and the pool of connections to it."""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import sqlalchemy as sa
from flask import Flask, current_app
from pysqlite3 import dbapi2

from posting.config import THREADS, StartError
from posting.db import postgres, sqlite
from posting.db.base import db

EXTENSION = "posting.connections"

POOL: dict[str, Any] = {
    "pool_size": THREADS,
    "max_overflow": 3,  # for the threads of the outbox
    "pool_timeout": 5,
    "hide_parameters": True,
}


def init_app(app: Flask) -> None:
    """Create the engine; no connection is opened yet.

    Raise StartError when the URL or its driver cannot be used.
    """
    try:
        url = _locate(sa.make_url(app.config["DATABASE_URL"]), app.instance_path)
        app.config["SQLALCHEMY_DATABASE_URI"] = url
        app.config["SQLALCHEMY_ENGINE_OPTIONS"] = _options(url)
        db.init_app(app)
    except ImportError as error:
        raise StartError(
            f"POSTING_DATABASE_URL names a Postgres server, but its driver is missing ({error}). "
            "Run: pip install 'psycopg[binary]'"
        ) from None
    except (sa.exc.ArgumentError, ValueError):  # whose message may contain part of a password
        raise StartError("POSTING_DATABASE_URL cannot be used: it is not a valid URL.") from None
    with app.app_context():
        engine, file = db.engine, sqlite_file()
    if engine.dialect.name == "postgresql":
        postgres.listen(engine)
    else:
        sqlite.listen(engine, file)


def _locate(url: sa.URL, folder: str) -> sa.URL:
    """Return the URL of a database in memory or on a server, or a URL with the path of its file.

    No connection to a file creates it (`mode=rw`): see `create_database_file`.
    """
    if url.get_backend_name() != "sqlite":
        return url
    name = url.database or ""
    if name.removeprefix("file:") in {"", ":memory:"} or url.query.get("mode") == "memory":
        return sa.make_url("sqlite://")  # the only form that every library knows
    # For a relative path, Flask-SQLAlchemy would create the instance folder at once, even for a
    # command that only looks whether there is a database.
    # SQLite keeps its other files beside the target of a link, which may change later.
    if url.query.get("uri"):
        name = f"file:{Path(folder, name.removeprefix('file:')).resolve()}"
    else:
        name = Path(folder, name).resolve().as_uri()
    return url.set(database=name).update_query_dict({"mode": "rw", "uri": "true", **url.query})


def _options(url: sa.URL) -> dict[str, object]:
    if url.get_backend_name() != "sqlite":
        return POOL | {"connect_args": postgres.POSTGRES_CONNECT_ARGS}
    if not url.database:
        return {"module": dbapi2}  # memory has one connection
    return POOL | {"module": dbapi2, "pool_size": POOL["pool_size"] + 1}  # one for the writer


def create_instance_folder(app: Flask) -> None:
    """Create the instance folder if it is missing. Raise StartError if it cannot be created."""
    try:
        Path(app.instance_path).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StartError(
            f"The instance folder {app.instance_path} cannot be created ({error.strerror}). "
            "Create it, or name another with POSTING_INSTANCE_PATH."
        ) from None


def create_database_file() -> None:
    """Create the file of a new SQLite database for its owner alone, before anything connects to it.

    SQLite gives the files beside it the same mode. Never open a file that SQLite may have open: the
    locks of a process on a file end when the process closes any of its descriptors of the file
    (https://www.sqlite.org/howtocorrupt.html, 2.2).

    Raise StartError if the instance folder cannot be created. SQLite reports other errors.
    """
    file = sqlite_file()
    if file is None or os.path.exists(file) or db.engine.url.query["mode"] == "ro":
        return
    if file.parent == Path(current_app.instance_path).resolve():
        create_instance_folder(current_app)
    with suppress(OSError):
        os.close(os.open(file, os.O_CREAT | os.O_EXCL, 0o600))


def on_close(app: Flask, close: Callable[[], None]) -> None:
    """Let `close_connections` call a function first, such as one that closes another connection.

    A listener of the engine would cost each query 15 microseconds, whatever it listens to.
    """
    app.extensions.setdefault(EXTENSION, []).append(close)


def close_connections() -> None:
    """Close all connections of this process. Code that needs a connection opens a new one."""
    for close in reversed(current_app.extensions.get(EXTENSION, ())):
        close()
    db.engine.dispose()


def is_in_memory() -> bool:
    """Return whether the database is in memory, where it ends with the app."""
    return isinstance(db.engine.pool, sa.StaticPool)


def sqlite_file() -> Path | None:
    """Return the file of an SQLite database, or None for one in memory and for Postgres."""
    if db.engine.dialect.name != "sqlite" or is_in_memory():
        return None
    return Path(unquote(urlsplit(db.engine.url.database).path))


def url_without_password() -> sa.URL:
    """Return the URL of the database to show to people, without the passwords in it."""
    url = db.engine.url.difference_update_query(["password", "sslpassword"])
    where = (url.username, None, url.host, url.port, url.database, url.query)
    return sa.URL.create(url.get_backend_name(), *where)
