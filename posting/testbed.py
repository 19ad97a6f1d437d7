"""Apps, clients and servers for tests: what the fixtures of `posting.testing` return."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any

import click
import flask_migrate
import sqlalchemy as sa
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.serving import WSGIRequestHandler, make_server

from posting.config import CHEAP_PASSWORD_HASH, SETTINGS, StartError
from posting.db.engine import db, is_in_memory
from posting.db.migrations import ensure_current
from posting.db.models import MODERATOR, User
from posting.factory import create_app

# All settings, so that variables of the environment have no effect.
DEFAULTS: dict[str, Any] = dict.fromkeys(setting.name for setting in SETTINGS) | {
    "TESTING": True,
    "PASSWORD_HASH": CHEAP_PASSWORD_HASH,
    "RATE_LIMITS": "off",
}
PASSWORD = "a long walk by the sea"  # noqa: S105 - of all users of tests
IS_FOR_TESTS = re.compile(r"(^|[_.-])tests?([_.-]|$)")


class Client(FlaskClient):
    """A test client that may be signed in; `user` is its account."""

    user: dict[str, Any]


@dataclass(frozen=True)
class Server:
    """An HTTP server and the app that it serves."""

    url: str
    app: Flask


class _Handler(WSGIRequestHandler):
    """Werkzeug's handler without its access log, since the app has one."""

    def log(self, type: str, message: str, *args: Any) -> None:
        pass


@contextmanager
def running_app(database_url: str, settings: Mapping[str, Any]) -> Iterator[Flask]:
    """Yield an app for tests on a database, whose schema is brought up to date.

    Errors: StartError for a database that does not answer, or whose name does not contain "test".
    """
    with click.Context(click.Command("db")):  # `flask db` too starts before the schema is current
        app = create_app(DEFAULTS | {"DATABASE_URL": database_url} | dict(settings))
    app.test_client_class = Client
    with app.app_context():
        if is_in_memory():
            ensure_current()
        elif IS_FOR_TESTS.search(Path(db.engine.url.database or "").name):
            flask_migrate.upgrade()
        else:
            raise StartError(
                "Tests delete all data in their database. Use one with the word test in its name, "
                f"such as posting_test; this is {db.engine.url.render_as_string()}."
            )
    yield app
    with app.app_context():
        db.engine.dispose()


def has_memory_database(app: Flask) -> bool:
    with app.app_context():
        return is_in_memory()


def delete_all_rows(app: Flask) -> None:
    with app.app_context(), db.engine.begin() as connection:
        for table in reversed(db.metadata.sorted_tables):
            connection.execute(sa.delete(table))


def sign_in(app: Flask, username: str, **profile: Any) -> Client:
    """Return a client that is signed in to an account, which is made if there is none.

    Error: ValueError if the name or the profile is not valid.
    """
    client: Any = app.test_client()
    credentials = {"username": username, "password": PASSWORD}
    signed_up = client.post("/signup", json=credentials | profile)
    signed_in = client.post("/signin", json=credentials)
    if signed_up.status_code not in {201, 409} or signed_in.status_code != 200:
        raise ValueError(f"{username} cannot sign in: {signed_up.text}{signed_in.text}")
    client.user = signed_in.json
    return client  # type: ignore[no-any-return]  # it is of the app's own class


def promote(client: Client) -> None:
    """Make the user of a client a moderator."""
    with client.application.app_context():
        theirs = sa.update(User).where(User.id == client.user["id"])
        db.session.execute(theirs.values(role=MODERATOR))
        db.session.commit()
    account: Any = client.get("/users/me").json
    client.user = account


@contextmanager
def serving(app: Flask) -> Iterator[Server]:
    """Serve an app over HTTP on a free port, each request in a thread."""
    server = make_server("127.0.0.1", 0, app, threaded=True, request_handler=_Handler)
    thread = Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    yield Server(f"http://127.0.0.1:{server.port}", app)
    server.shutdown()
    thread.join()
    server.server_close()
