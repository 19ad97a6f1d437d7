"""Fixtures shared by all tests.

A test process has one app and one database, which is emptied before each test. Tests run on SQLite,
or on the Postgres server of TEST_DATABASE_URL.
"""

import gc
import os
import secrets
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import psycopg
import pytest
import sqlalchemy as sa
from flask import Flask
from hypothesis import HealthCheck, settings

from posting import create_app, testbed
from posting.accounts.store import insert_user
from posting.db.base import db
from posting.db.engine import close_connections
from posting.db.transactions import unit_of_work
from posting.db.types import now
from posting.images import codec as imaging
from posting.invitations.store import create_invitation
from posting.site.store import lock_site, replace_picture
from posting.topics.store import insert_topic
from posting.web.response_cache import ResponseCache
from posting.webhooks.store import create_webhook
from tests.helpers import ROOT, pictures
from tests.helpers.assertions import assert_consistent, assert_indexed
from tests.helpers.changes import cursor_of_now
from tests.helpers.https import ANSWER, Certificate, Listener, make_certificate

pytest_plugins = ["pytester", "posting.testing"]

POSTGRES = os.environ.get("TEST_DATABASE_URL", "")
CONNECTIONS = 33  # to Postgres, of a process of tests at most; two had 42 together
PASSWORD = testbed.PASSWORD
TOKEN = {"name": "A program", "scope": "write"}
MEMORY_FOLDER = Path("/dev/shm")
SLOW = ("live/test_operating.py", "live/", "test_model.py", "test_fuzz.py")
os.environ["FLASK_SKIP_DOTENV"] = "1"  # tests do not use the settings of a developer's .env
# How many cases of generated input a test runs in `make test`, `make test-all` and `make fuzz`.
MANY = 25
GENERATED = settings(derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
settings.register_profile("few", GENERATED, max_examples=3)
settings.register_profile("many", GENERATED, max_examples=MANY)
settings.register_profile(
    "fuzz", GENERATED, max_examples=int(os.environ.get("CASES", "300")), derandomize=False
)
settings.load_profile("few")  # unless --hypothesis-profile names another
# The image codec takes a process and about 50 ms a time. Tests of something else use this one.
cached_reencode = cache(imaging.reencode)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--figures", action="store_true", help="print the measurements of tests")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Return the number of processes for `-n auto`: more than cores if live tests wait as well.

    A Postgres server has connections for few of them.
    """
    cores = os.cpu_count() or 1
    processes = cores if config.getoption("ignore") else -(-3 * cores // 2)
    return min(processes, count_connections() // CONNECTIONS) if POSTGRES else processes


def count_connections() -> int:
    """Return how many connections the server under test can have."""
    with psycopg.connect(POSTGRES) as server:
        [connections] = server.execute("SHOW max_connections").fetchone() or ["0"]
    return int(connections)


def pytest_collection_finish() -> None:
    """Keep the garbage collector from searching all tests again and again: a tenth of the time."""
    gc.freeze()
    gc.set_threshold(20_000, 10, 10)


def uses_database(item: pytest.Item) -> bool:
    """Return whether a test can have another result on another database."""
    names = {"database_url", "template_url", "empty_url", "run"}  # `run` runs a whole test suite
    return (
        "tests/live/" in item.nodeid
        or item.get_closest_marker("skipif") is not None  # on one of the databases
        or not names.isdisjoint(getattr(item, "fixturenames", ()))
    )


@pytest.hookimpl(trylast=True)  # after pytest-randomly
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests without a database on Postgres, and begin with the slow tests.

    So all processes have work until the end.
    """
    if POSTGRES:
        config.hook.pytest_deselected(items=[item for item in items if not uses_database(item)])
        items[:] = filter(uses_database, items)
    items.sort(key=lambda item: next((n for n, path in enumerate(SLOW) if path in item.nodeid), 9))


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print the measurements of each test and its duration."""
    if not config.getoption("--figures"):
        return
    reports = [report for kind in terminalreporter.stats.values() for report in kind]
    reports = [report for report in reports if isinstance(report, pytest.TestReport)]
    durations = {report.nodeid: report.duration for report in reports if report.when == "call"}
    engine = "Postgres" if POSTGRES else "SQLite"
    terminalreporter.section(f"figures on {engine}, {os.cpu_count()} cores")
    for report in sorted(reports, key=lambda report: report.nodeid):
        for name, figure in report.user_properties if report.when == "teardown" else ():
            if name == "figure":
                test = report.nodeid.removeprefix("tests/")
                duration = durations[report.nodeid]
                terminalreporter.line(f"{duration:6.1f} s  {test}\n          {figure}")


class Client(testbed.Client):
    """A test client with shorthands for common requests."""

    @property
    def session_token(self) -> str | None:
        cookie = self.get_cookie("session")
        return cookie and cookie.value

    def copy(self, app: Flask | None = None) -> "Client":
        """Return another client with the same session cookie, of this app or another."""
        client: Client = (app or self.application).test_client()
        client.set_cookie("session", self.session_token or "")
        return client

    def create_post(self, title: str, **fields: Any) -> dict[str, Any]:
        response = self.post("/posts", json={"title": title, "content": "Some text."} | fields)
        assert response.status_code == 201, response.text
        return response.json

    def add_image(self, post: dict[str, Any], data: bytes = b"", **fields: Any) -> dict[str, Any]:
        form = {"file": (BytesIO(data or pictures.png()), "picture")} | fields
        with patch.object(imaging, "reencode", cached_reencode):
            response = self.post(f"/posts/{post['id']}/images", data=form)
        assert response.status_code == 201, response.text
        return response.json

    def send_image(self, data: bytes = b"", **fields: Any) -> dict[str, Any]:
        """Send an image that no post or comment has yet."""
        form = {"file": (BytesIO(data or pictures.png()), "picture")} | fields
        with patch.object(imaging, "reencode", cached_reencode):
            response = self.post("/images", data=form)
        assert response.status_code == 201, response.text
        return response.json

    def send_file(self, data: bytes = b"%PDF-1.7\n", name: str = "minutes.pdf") -> dict[str, Any]:
        """Send a file that no post or comment has yet."""
        response = self.post("/files", data={"file": (BytesIO(data), name)})
        assert response.status_code == 201, response.text
        return response.json

    def add_comment(self, post: dict[str, Any], content: str, **fields: Any) -> dict[str, Any]:
        """Comment on a post, or reply to the comment with the id `parent_id`."""
        path = f"/posts/{post['id']}/comments"
        response = self.post(path, json={"content": content} | fields)
        assert response.status_code == 201, response.text
        return response.json


@contextmanager
def new_database(folder: Path, template_url: str = "") -> Iterator[str]:
    """Yield the URL of a database in `folder`, or on the server under test: empty, or a copy."""
    if not POSTGRES:
        file = folder / "test.db"
        if template_url:
            source = template_url.removeprefix("sqlite:///")
            assert not Path(f"{source}-wal").exists()
            shutil.copy(source, file)
        yield f"sqlite:///{file}"
        return
    name = f"posting_test_{secrets.token_hex(8)}"
    template = f"TEMPLATE {template_url.rpartition('/')[2]}" if template_url else ""
    administer(f"CREATE DATABASE {name} {template}")
    try:
        yield POSTGRES.rpartition("/")[0] + f"/{name}"
    finally:
        administer(f"DROP DATABASE {name} WITH (FORCE)")


def administer(statement: str) -> None:
    """Execute a statement on the server under test, and keep no connection: it has 100 for all."""
    with psycopg.connect(POSTGRES, autocommit=True) as server:
        server.execute(statement)


@pytest.fixture
def figure(record_property: Callable[[str, object], None]) -> Callable[[str], None]:
    """Return a function that records a measurement, which `--figures` prints."""
    return lambda text: record_property("figure", text)


@pytest.fixture
def status_counts(figure: Callable[[str], None]) -> Iterator[Counter[Any]]:
    """A counter of response statuses, whose counts `--figures` prints."""
    counts: Counter[Any] = Counter()
    yield counts
    parts = (f"{count:,} times {status}" for status, count in sorted(counts.items()))
    figure(f"{counts.total():,} responses: {', '.join(parts)}")


@pytest.fixture(scope="session")
def database_url() -> Iterator[str]:
    """The URL of the database of this test process; SQLite's is in memory, to save disk writes."""
    folder = MEMORY_FOLDER if MEMORY_FOLDER.is_dir() else None
    with TemporaryDirectory(dir=folder) as path, new_database(Path(path)) as url:
        yield url


@pytest.fixture
def empty_url(tmp_path: Path) -> Iterator[str]:
    """The URL of a new database without tables, for one test."""
    with new_database(tmp_path) as url:
        yield url


@pytest.fixture(scope="session")
def template_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a database with tables and without rows, to be copied."""
    with new_database(tmp_path_factory.mktemp("template")) as url:
        upgrade(url)
        yield url


@pytest.fixture
def fresh_url(template_url: str, tmp_path: Path) -> Iterator[str]:
    """The URL of a new database with tables and without rows, for one test."""
    with new_database(tmp_path, template_url) as url:
        yield url


@pytest.fixture(scope="session")
def posting_database_url(database_url: str) -> str:
    return database_url


def upgrade(database_url: str) -> None:
    """Run `flask db upgrade` in a process, as an operator does."""
    subprocess.run(
        [sys.executable, "-m", "flask", "--app", "posting", "db", "upgrade"],
        cwd=ROOT,
        env=os.environ | {"POSTING_DATABASE_URL": database_url},
        check=True,
        capture_output=True,
    )


@pytest.fixture
def posting_app(posting_app: Flask) -> Flask:
    """The app of the plugin, with the test client of this file."""
    posting_app.test_client_class = Client
    return posting_app


@pytest.fixture
def app(posting_app: Flask) -> Flask:
    return posting_app


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The SQL statements sent so far, without that for the settings of the site.

    The response cache is off.
    """
    monkeypatch.setattr(ResponseCache, "_look_up", lambda *_: None)
    sent: list[str] = []

    def append(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if "FROM site" not in statement:
            sent.append(statement)

    sa.event.listen(sa.Engine, "before_cursor_execute", append)
    yield sent
    sa.event.remove(sa.Engine, "before_cursor_execute", append)


@pytest.fixture
def vacuum(database_url: str) -> Callable[[], None]:
    """Return a function that tends the database on Postgres, as autovacuum does within minutes.

    It removes the deleted rows of other tests, and renews the statistics that the planner uses.
    """

    def vacuum() -> None:
        if POSTGRES:
            with psycopg.connect(database_url, autocommit=True) as connection:
                connection.execute("VACUUM ANALYZE")

    return vacuum


@pytest.fixture
def short_lock_timeout(app: Flask, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let the app's connections wait 0.1 seconds for a lock."""

    def set_timeout(connection: Any, *_: Any) -> None:
        connection.execute("SET lock_timeout = 100" if POSTGRES else "PRAGMA busy_timeout=100")

    monkeypatch.setattr("posting.db.sqlite.WRITE_LOCK_SECONDS", 0.1)
    with app.app_context():
        engine = db.engine
    sa.event.listen(engine, "checkout", set_timeout)
    yield
    sa.event.remove(engine, "checkout", set_timeout)
    with app.app_context():
        close_connections()


@pytest.fixture
def stays_consistent(app: Flask) -> Iterator[None]:
    """Check after the test that the database has no orphans, no wrong counts and a right index."""
    yield
    with app.app_context(), db.engine.connect() as connection:
        assert_consistent(connection)
        assert_indexed(connection)


@pytest.fixture
def make_app(app: Flask, database_url: str) -> Iterator[Callable[..., Flask]]:
    """Return a function that creates another app on the same database, with other settings."""
    apps: list[Flask] = []

    def make(**settings: Any) -> Flask:
        other = create_app({"TESTING": True, "DATABASE_URL": database_url} | settings)
        other.test_client_class = Client
        apps.append(other)
        return other

    yield make
    for other in apps:
        with other.app_context():
            close_connections()


@pytest.fixture
def empty_app(make_app: Callable[..., Flask], tmp_path: Path) -> Flask:
    """Another app, on an empty SQLite database."""
    return make_app(DATABASE_URL=f"sqlite:///{tmp_path / 'other.db'}")


@pytest.fixture
def cached_codec(monkeypatch: pytest.MonkeyPatch) -> None:
    """Process each distinct image only once in a test run."""
    monkeypatch.setattr(imaging, "reencode", cached_reencode)


@pytest.fixture
def flask(app: Flask) -> Callable[..., tuple[int, str]]:
    """Return a function that runs a `flask` command and returns its exit code and output."""

    def flask(*arguments: str, input: str | None = None, on: Flask = app) -> tuple[int, str]:
        result = on.test_cli_runner().invoke(args=arguments, input=input)
        assert result.exception is None or isinstance(result.exception, SystemExit)
        return result.exit_code, result.stdout or result.stderr

    return flask


@pytest.fixture(scope="session")
def https_certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return make_certificate(tmp_path_factory.mktemp("certificate"))


@pytest.fixture
def listen(
    https_certificate: Certificate, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Listener]]:
    """Return a function that starts an HTTPS server whose certificate is trusted."""
    monkeypatch.setenv("SSL_CERT_FILE", str(https_certificate[1]))
    started: list[Listener] = []

    def listen(*parts: bytes, answer: Callable[[], Iterable[bytes]] | None = None) -> Listener:
        started.append(Listener(https_certificate, answer or (lambda: parts or [ANSWER])))
        return started[-1]

    yield listen
    for listener in started:
        listener.close()


@pytest.fixture
def sign_in(posting_sign_in: Callable[..., Client]) -> Callable[..., Client]:
    return posting_sign_in


@pytest.fixture
def anonymous(posting_client: Client) -> Client:
    return posting_client


@pytest.fixture
def alice(sign_in: Callable[..., Client]) -> Client:
    return sign_in("alice", display_name="Alice")


@pytest.fixture
def bob(sign_in: Callable[..., Client]) -> Client:
    return sign_in("bob")


@pytest.fixture
def eve(sign_in: Callable[..., Client]) -> Client:
    return sign_in("eve")


@pytest.fixture
def with_token(app: Flask, alice: Client) -> Callable[..., Client]:
    """Return a function that returns a client with a new token of Alice, and without a session."""

    def with_token(scope: str, **fields: Any) -> Client:
        response = alice.post("/tokens", json=TOKEN | {"scope": scope} | fields)
        assert response.status_code == 201, response.text
        client: Client = app.test_client()
        client.environ_base["HTTP_AUTHORIZATION"] = f"Bearer {response.json['token']}"
        client.user = alice.user
        return client

    return with_token


@pytest.fixture
def reader(with_token: Callable[..., Client]) -> Client:
    """A program of Alice with a token that may read."""
    return with_token("read")


@pytest.fixture
def writer(with_token: Callable[..., Client]) -> Client:
    """A program of Alice with a token that may write."""
    return with_token("write")


@pytest.fixture
def moderator(posting_moderator: Client) -> Client:
    return posting_moderator


@pytest.fixture
def owner(posting_owner: Client) -> Client:
    return posting_owner


@pytest.fixture
def post(alice: Client) -> dict[str, Any]:
    """A post by Alice."""
    return alice.create_post("On engines")


def add_webhook(app: Flask, creator_id: str) -> str:
    """Add a webhook, and return its id."""
    with app.app_context(), unit_of_work():
        return str(create_webhook(creator_id, "https://chat.example.net/x", ["post.created"])["id"])


def add_topic(app: Flask) -> str:
    """Add a topic, and return its id."""
    with app.app_context(), unit_of_work():
        return str(insert_topic({"name": f"Looms {secrets.token_hex(4)}", "color": "green"})["id"])


def apply(app: Flask) -> str:
    """Add an account that waits for approval, and return its id."""
    with app.app_context(), unit_of_work():
        newcomer = {"username": f"hopeful-{secrets.token_hex(4)}", "password_hash": "x"}
        application = {"application": "I weave too.", "pending_since": now()}
        id: str = insert_user(**newcomer, **application)["id"]
    return id


def invite(app: Flask, creator_id: str) -> str:
    """Add an invitation of a user, and return its id."""
    with app.app_context(), unit_of_work():
        invitation, _ = create_invitation(creator_id)
    id: str = invitation["id"]
    return id


def report(client: Client, comment: dict[str, Any]) -> str:
    """Report a comment, and return the id of the report."""
    response = client.post(f"/comments/{comment['id']}/reports", json={"reason": "Why?"})
    id: str = response.json["id"]
    return id


def set_avatar(client: Client) -> str:
    """Set the avatar of a client's user, and return its URL."""
    form = {"file": (BytesIO(pictures.png()), "a.png")}
    url: str = client.put("/users/me/avatar", data=form).json["avatar_url"]
    return url


def set_picture(app: Flask, name: str) -> str:
    """Set the logo or the cover of the site, and return its id."""
    with app.app_context(), unit_of_work():
        replace_picture(lock_site(), name, [pictures.png(), pictures.png()])
    id: str = app.test_client().get("/site").json[f"{name}_url"].rpartition("/")[2]
    return id


def add_image_of_comment(client: Client, post: dict[str, Any]) -> str:
    """Comment on a post with an image, and return the id of the image."""
    id: str = client.send_image()["id"]
    client.add_comment(post, "A comment", images=[id])
    return id


def add_file(client: Client, post: dict[str, Any]) -> str:
    """Give a file to a post, and return the id of the file."""
    path = f"/posts/{post['id']}"
    former = [file["id"] for file in client.get(path).json["files"]]
    id: str = client.send_file()["id"]
    assert client.patch(path, json={"files": [*former, id]}).status_code == 200
    return id


def add_file_of_comment(client: Client, post: dict[str, Any]) -> str:
    """Comment on a post with a file, and return the id of the file."""
    id: str = client.send_file()["id"]
    client.add_comment(post, "A comment", files=[id])
    return id


@pytest.fixture
def id_of(alice: Client, post: dict[str, Any]) -> Callable[[str], str]:
    """Return a function that returns the id of an object of Alice, or of an application.

    For a feed, it is her token for feeds, and for a cursor the present end of the changes.
    """
    ids: dict[str, Callable[[], str]] = {
        "post": lambda: post["id"],
        "comment": lambda: alice.add_comment(post, "A comment")["id"],
        "image": lambda: alice.add_image(post)["id"],
        "photo": lambda: alice.add_image(post, pictures.photo())["id"],
        "unattached": lambda: alice.send_image()["id"],
        "image_of_comment": lambda: add_image_of_comment(alice, post),
        "document": lambda: add_file(alice, post),
        "mailbox": lambda: "m" * 21,
        "unattached_file": lambda: alice.send_file()["id"],
        "file_of_comment": lambda: add_file_of_comment(alice, post),
        "avatar": lambda: set_avatar(alice).rpartition("/")[2],
        "logo": lambda: set_picture(alice.application, "logo"),
        "cover": lambda: set_picture(alice.application, "cover"),
        "face": lambda: set_avatar(alice) and alice.user["id"],
        "side": lambda: "640",
        "user": lambda: alice.user["id"],
        "session": lambda: alice.get("/sessions").json[0]["id"],
        "token": lambda: alice.post("/tokens", json=TOKEN).json["id"],
        "feed": lambda: alice.post("/tokens", json=TOKEN | {"scope": "feed"}).json["token"],
        "application": lambda: apply(alice.application),
        "report": lambda: report(alice, alice.add_comment(post, "A comment")),
        "invitation": lambda: invite(alice.application, alice.user["id"]),
        "webhook": lambda: add_webhook(alice.application, alice.user["id"]),
        "topic": lambda: add_topic(alice.application),
        "cursor": lambda: cursor_of_now(alice),
    }
    return lambda kind: ids[kind]()
