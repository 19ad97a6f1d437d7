"""Apps, clients and servers for the fixtures of `posting.testing`."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any, cast

import click
import flask_migrate
import sqlalchemy as sa
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.serving import WSGIRequestHandler, make_server

from posting.config import CHEAP_PASSWORD_HASH, SETTINGS, StartError
from posting.db import search
from posting.db.engine import db, is_in_memory
from posting.db.migrations import ensure_current
from posting.db.models import MODERATOR, User
from posting.factory import create_app

# Every setting, so that environment variables have no effect.
DEFAULTS: dict[str, Any] = dict.fromkeys(setting.name for setting in SETTINGS) | {
    "TESTING": True,
    "PASSWORD_HASH": CHEAP_PASSWORD_HASH,
    "RATE_LIMITS": "off",
}
PASSWORD = "a long walk by the sea"  # noqa: S105 - for all test users
TEST_DATABASE_NAME = re.compile(r"(^|[_.-])tests?([_.-]|$)")


class Client(FlaskClient):
    """A test client; `user` is the account that it is signed in to."""

    user: dict[str, Any]


@dataclass(frozen=True)
class Server:
    """An HTTP server and the app that it serves."""

    url: str
    app: Flask


class _Handler(WSGIRequestHandler):
    """Werkzeug's handler without its access log; the app has its own."""

    def log(self, type: str, message: str, *args: Any) -> None:
        pass


@contextmanager
def running_app(database_url: str, settings: Mapping[str, Any]) -> Iterator[Flask]:
    """Yield an app for tests, with an up-to-date database schema.

    Raise StartError if the database is not available or its name does not contain "test".
    """
    with click.Context(click.Command("db")):  # as in `flask db`, do not check the schema yet
        app = create_app(DEFAULTS | {"DATABASE_URL": database_url} | dict(settings))
    app.test_client_class = Client
    with app.app_context():
        if is_in_memory():
            ensure_current()
        elif TEST_DATABASE_NAME.search(Path(db.engine.url.database or "").name):
            flask_migrate.upgrade()
        else:
            raise StartError(
                "Tests delete all data in their database. Use a database with the word test in its "
                f"name, such as posting_test, instead of {db.engine.url.render_as_string()}."
            )
    yield app
    with app.app_context():
        db.engine.dispose()


def delete_all_rows(app: Flask) -> None:
    with app.app_context(), db.engine.begin() as connection:
        for table in reversed(db.metadata.sorted_tables):
            connection.execute(sa.delete(table))
        search.clear(connection)


def sign_in(app: Flask, username: str, **profile: Any) -> Client:
    """Return a client that is signed in, after creating the account if there is none.

    Raise ValueError if the name or the profile is not valid.
    """
    client = cast(Client, app.test_client())
    credentials = {"username": username, "password": PASSWORD}
    signed_up = client.post("/signup", json=credentials | profile)
    signed_in = client.post("/signin", json=credentials)
    if signed_up.status_code not in {201, 409} or signed_in.status_code != 200:
        raise ValueError(f"{username} cannot sign in: {signed_up.text}{signed_in.text}")
    client.user = cast(dict[str, Any], signed_in.json)
    return client


def make_moderator(client: Client) -> None:
    """Make a client's user a moderator."""
    with client.application.app_context():
        account = sa.update(User).where(User.id == client.user["id"])
        db.session.execute(account.values(role=MODERATOR))
        db.session.commit()
    client.user = cast(dict[str, Any], client.get("/users/me").json)


@contextmanager
def serve(app: Flask) -> Iterator[Server]:
    """Serve an app over HTTP on a free port, with a thread for each request."""
    server = make_server("127.0.0.1", 0, app, threaded=True, request_handler=_Handler)
    thread = Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    yield Server(f"http://127.0.0.1:{server.port}", app)
    server.shutdown()
    thread.join()
    server.server_close()
