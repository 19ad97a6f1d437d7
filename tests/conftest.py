"""One app a process, on the engine of TEST_DATABASE_URL and emptied for each test; the cast."""

import os
import secrets
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from flask import Flask

from posting import create_app, testbed
from posting.db.engine import db
from posting.http.response_cache import CommitWatch
from tests.helpers import pictures
from tests.helpers.archives import example_archive
from tests.helpers.assertions import sound

pytest_plugins = ["pytester", "posting.testing"]

POSTGRES = os.environ.get("TEST_DATABASE_URL", "")
PASSWORD = testbed.PASSWORD
os.environ["FLASK_SKIP_DOTENV"] = "1"  # servers and commands of tests have settings of their own


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--figures", action="store_true", help="print what tests have measured")


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print a table of figures, with how many seconds each test took."""
    if not config.getoption("--figures"):
        return
    reports = [report for kind in terminalreporter.stats.values() for report in kind]
    reports = [report for report in reports if isinstance(report, pytest.TestReport)]
    lasted = {report.nodeid: report.duration for report in reports if report.when == "call"}
    engine = "Postgres" if POSTGRES else "SQLite"
    terminalreporter.section(f"figures on {engine}, {os.cpu_count()} cores")
    for report in sorted(reports, key=lambda report: report.nodeid):
        for name, figure in report.user_properties if report.when == "teardown" else ():
            if name == "figure":
                test = report.nodeid.removeprefix("tests/")
                terminalreporter.line(f"{lasted[report.nodeid]:6.1f} s  {test}\n          {figure}")


class Client(testbed.Client):
    """A client with shorthands for what tests write."""

    def post_titled(self, title: str, **fields: Any) -> dict[str, Any]:
        response = self.post("/posts", json={"title": title, "content": "Some text."} | fields)
        assert response.status_code == 201, response.text
        return response.json

    def illustrate(self, post: dict[str, Any], data: bytes = b"", **fields: Any) -> dict[str, Any]:
        """Add an image to a post."""
        form = {"file": (BytesIO(data or pictures.png()), "picture")} | fields
        response = self.post(f"/posts/{post['id']}/images", data=form)
        assert response.status_code == 201, response.text
        return response.json

    def comment_on(self, post: dict[str, Any], content: str, **fields: Any) -> dict[str, Any]:
        """Comment on a post, or reply: `parent_id=` says to what."""
        path = f"/posts/{post['id']}/comments"
        response = self.post(path, json={"content": content} | fields)
        assert response.status_code == 201, response.text
        return response.json


@contextmanager
def empty_database(folder: Path) -> Iterator[str]:
    """Yield the URL of an empty database: in `folder`, or on the server under test."""
    if not POSTGRES:
        yield f"sqlite:///{folder / 'test.db'}"
        return
    name = f"posting_test_{secrets.token_hex(8)}"
    with psycopg.connect(POSTGRES, autocommit=True) as server:
        server.execute(f"CREATE DATABASE {name}")
        try:
            yield POSTGRES.rpartition("/")[0] + f"/{name}"
        finally:
            server.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def figure(record_property: Callable[[str, object], None]) -> Callable[[str], None]:
    """Tell what a test has measured, for `--figures` to print."""
    return lambda text: record_property("figure", text)


@pytest.fixture
def answers(figure: Callable[[str], None]) -> Iterator[Counter[Any]]:
    """Count answers by their status; the counts are a figure."""
    counted: Counter[Any] = Counter()
    yield counted
    parts = (f"{count:,} times {status}" for status, count in sorted(counted.items()))
    figure(f"{counted.total():,} answers: {', '.join(parts)}")


@pytest.fixture(scope="session")
def database_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a database of this process's own."""
    with empty_database(tmp_path_factory.mktemp("database")) as url:
        yield url


@pytest.fixture
def empty_url(tmp_path: Path) -> Iterator[str]:
    """The URL of a database of this test's own, without any tables."""
    with empty_database(tmp_path) as url:
        yield url


@pytest.fixture(scope="session")
def posting_database_url(database_url: str) -> str:
    upgrade(database_url)
    return database_url


def upgrade(database_url: str) -> None:
    """Run `flask db upgrade`, as an operator would."""
    subprocess.run(
        [sys.executable, "-m", "flask", "--app", "posting", "db", "upgrade"],
        cwd=Path(__file__).parent.parent,
        env=os.environ | {"POSTING_DATABASE_URL": database_url},
        check=True,
        capture_output=True,
    )


@pytest.fixture
def posting_app(posting_app: Flask) -> Flask:
    """The plugin's app, with clients of ours."""
    posting_app.test_client_class = Client
    return posting_app


@pytest.fixture
def app(posting_app: Flask) -> Flask:
    return posting_app


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The SQL statements sent since the list was last cleared; no answer is kept meanwhile."""
    monkeypatch.setattr(CommitWatch, "version", lambda _: None)
    sent: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        sent.append(statement)

    sa.event.listen(sa.Engine, "before_cursor_execute", note)
    yield sent
    sa.event.remove(sa.Engine, "before_cursor_execute", note)


@pytest.fixture
def impatient(app: Flask) -> Iterator[sa.Engine]:
    """The app's engine, whose connections wait for a lock only a moment."""
    wait = "SET lock_timeout = 100" if POSTGRES else "PRAGMA busy_timeout=100"

    def hurry(connection: Any, *_: Any) -> None:
        connection.execute(wait)

    with app.app_context():
        engine = db.engine
    sa.event.listen(engine, "checkout", hurry)
    yield engine
    sa.event.remove(engine, "checkout", hurry)
    engine.dispose()


@pytest.fixture
def stays_sound(app: Flask) -> Iterator[None]:
    """Assert at the end that the database holds no orphan and no wrong count."""
    yield
    with app.app_context(), db.engine.connect() as connection:
        sound(connection)


@pytest.fixture
def make_app(app: Flask, database_url: str) -> Iterator[Callable[..., Flask]]:
    """Make further apps on the same database, with other settings."""
    made: list[Flask] = []

    def make(**settings: Any) -> Flask:
        other = create_app({"TESTING": True, "DATABASE_URL": database_url} | settings)
        other.test_client_class = Client
        made.append(other)
        return other

    yield make
    for other in made:
        with other.app_context():
            db.engine.dispose()


@pytest.fixture
def empty_app(make_app: Callable[..., Flask], tmp_path: Path) -> Flask:
    """An app on an empty SQLite database of its own."""
    return make_app(DATABASE_URL=f"sqlite:///{tmp_path / 'other.db'}")


@pytest.fixture
def small() -> list[Any]:
    """The lines of the small archive that docs/archive.md shows."""
    return example_archive()


@pytest.fixture
def flask(app: Flask) -> Callable[..., tuple[int, str]]:
    """Run a `flask` command; return its exit code and what it says, or what is wrong."""

    def flask(*arguments: str, input: str | None = None, on: Flask = app) -> tuple[int, str]:
        result = on.test_cli_runner().invoke(args=arguments, input=input)
        assert result.exception is None or isinstance(result.exception, SystemExit)
        return result.exit_code, result.stdout or result.stderr

    return flask


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
def moderator(posting_moderator: Client) -> Client:
    return posting_moderator


@pytest.fixture
def post(alice: Client) -> dict[str, Any]:
    """A post of Alice's."""
    return alice.post_titled("On engines")
