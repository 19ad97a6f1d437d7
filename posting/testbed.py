"""Apps, clients and servers for the fixtures of `posting.testing`."""

import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from threading import Thread
from typing import Any, cast

import click
import flask_migrate
import sqlalchemy as sa
from flask import Flask, has_app_context
from flask.testing import FlaskClient
from marshmallow import ValidationError
from werkzeug.serving import WSGIRequestHandler, make_server

from posting.accounts.models import ROLES, User
from posting.accounts.passwords import hash_password
from posting.accounts.schemas import Profile
from posting.accounts.store import find_account, insert_user
from posting.app import create_app
from posting.config import CHEAP_PASSWORD_HASH, SETTINGS, StartError
from posting.db.base import db
from posting.db.engine import close_connections, is_in_memory, url_without_password
from posting.db.epoch import renew_epoch
from posting.db.migrations import ensure_current
from posting.db.transactions import (
    execute,
    lift_time_limits,
    roll_back_session,
    transaction,
    unit_of_work,
)
from posting.indexes import INDEXES

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

    def authorization(self, *, scope: str = "write") -> dict[str, str]:
        """Return the header `Authorization` with a new token of this user.

        Raise ValueError if the client is not signed in, or the token cannot be created.
        """
        response = self.post("/tokens", json={"name": "A program", "scope": scope})
        if response.status_code != 201:
            raise ValueError(f"No token can be created: {response.text}")
        return {"Authorization": f"Bearer {cast(Any, response.json)['token']}"}


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
    try:
        with app.app_context():
            if is_in_memory():
                ensure_current()
            elif TEST_DATABASE_NAME.search(Path(db.engine.url.database or "").name):
                flask_migrate.upgrade()
            else:
                raise StartError(
                    "Tests delete all data in their database. Use a database with the word test in "
                    f"its name, such as posting_test, instead of {url_without_password()}."
                )
        yield app
    finally:
        with app.app_context():
            close_connections()


class Apps:
    """The last app on each database. A test with other settings gets a new app in its place."""

    def __init__(self) -> None:
        self._running: dict[str, tuple[Mapping[str, Any], Flask, ExitStack]] = {}

    def get(self, database_url: str, settings: Mapping[str, Any]) -> Flask:
        """Return an app with these settings. Raise StartError as `running_app` does."""
        if database_url in self._running:
            its_settings, app, stack = self._running[database_url]
            if its_settings == settings:
                return app
            del self._running[database_url]
            stack.close()
        stack = ExitStack()
        app = stack.enter_context(running_app(database_url, settings))
        self._running[database_url] = settings, app, stack
        return app

    def close(self) -> None:
        for _, _, stack in self._running.values():
            stack.close()


def has_database_in_memory(app: Flask) -> bool:
    with app.app_context():
        return is_in_memory()


@cache
def _tables_to_empty() -> list[str]:
    """Return the names of all tables, each before those to which its rows refer."""
    return [table.name for table in reversed(db.metadata.sorted_tables)]


def delete_all_rows(app: Flask) -> None:
    with app.app_context(), transaction() as connection:
        lift_time_limits(connection)  # a busy Postgres may not have vacuumed for long
        for table in _tables_to_empty():
            connection.exec_driver_sql(f"DELETE FROM {table}")  # noqa: S608 - a name of a table
        for index in INDEXES:
            index.clear(connection)
        renew_epoch(connection)


@cache
def _hash_of_password(_method: str) -> str:
    """Return a hash of the password of all test users, by the method that the app is set to."""
    return hash_password(PASSWORD)


def sign_in(app: Flask, username: str, *, role: str | None = None, **profile: Any) -> Client:
    """Return a client that is signed in, after creating the account if there is none.

    The account gets `role`, which is member, moderator or owner. Without `role`, a new account is a
    member, and an existing account keeps its role. This does not depend on settings, such as a
    closed sign-up.

    Raise ValueError if the name, the role or the profile is not valid.
    """
    if role not in {None, *ROLES}:
        raise ValueError(f"The role must be member, moderator or owner, not {role!r}.")
    if has_app_context():
        roll_back_session()  # the test's own, which may lock what is written here
    with app.app_context():
        password_hash = _hash_of_password(app.config["PASSWORD_HASH"])
        with unit_of_work():
            if find_account(username) is None:
                insert_user(password_hash=password_hash, **_load_profile(username, profile))
            if role:
                named = sa.func.lower(User.username) == username.lower()
                execute(sa.update(User).where(named).values(role=role))
    client = cast(Client, app.test_client())
    signed_in = client.post("/signin", json={"username": username, "password": PASSWORD})
    if signed_in.status_code != 200:
        raise ValueError(f"{username} cannot sign in: {signed_in.text}")
    client.user = cast(dict[str, Any], signed_in.json)
    return client


def _load_profile(username: str, profile: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a new account. Raise ValueError if they are not valid."""
    try:
        fields: dict[str, Any] = Profile(exclude=["password"]).load(
            {"username": username} | profile
        )
    except ValidationError as error:
        raise ValueError(f"The account is not valid: {error}") from None
    return fields


@contextmanager
def serve(app: Flask) -> Iterator[Server]:
    """Serve an app over HTTP on a free port, with a thread for each request."""
    server = make_server("127.0.0.1", 0, app, threaded=True, request_handler=_Handler)
    thread = Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield Server(f"http://127.0.0.1:{server.port}", app)
    server.shutdown()
    thread.join()
    server.server_close()
