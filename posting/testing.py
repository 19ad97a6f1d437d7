"""A pytest plugin for tests of code that uses Posting.

pytest loads it in every run where Posting is installed. So it imports the service only once a
fixture is used.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from flask import Flask

    from posting.testbed import Client, Server

DATABASE_URL = "posting_database_url"
IN_MEMORY = "sqlite://"
WORKER = "{worker}"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini(
        DATABASE_URL,
        f"The database of Posting's fixtures; {WORKER} becomes the name of pytest-xdist's worker.",
        default=IN_MEMORY,
    )


@pytest.fixture(scope="session")
def posting_settings() -> dict[str, Any]:
    """The settings of the app, named as for `create_app`. Override it to change them."""
    return {}


@pytest.fixture(scope="session")
def posting_database_url(pytestconfig: pytest.Config) -> str:
    """The URL of the database: that of the ini file, else in memory."""
    url: str = pytestconfig.getini(DATABASE_URL)
    worker: str | None = getattr(pytestconfig, "workerinput", {}).get("workerid")
    if worker and url != IN_MEMORY and WORKER not in url:
        pytest.fail(
            f"{DATABASE_URL} must contain {WORKER}, so that each worker of pytest-xdist has a "
            "database of its own.",
            pytrace=False,
        )
    return url.replace(WORKER, worker or "main")


@pytest.fixture(scope="session")
def _posting_app(posting_database_url: str, posting_settings: dict[str, Any]) -> Iterator["Flask"]:
    yield from _run(posting_database_url, posting_settings)


@pytest.fixture(scope="session")
def _posting_file_app(
    tmp_path_factory: pytest.TempPathFactory, posting_settings: dict[str, Any]
) -> Iterator["Flask"]:
    file = tmp_path_factory.mktemp("posting") / "test.db"
    yield from _run(f"sqlite:///{file}", posting_settings)


@pytest.fixture(scope="session")
def _posting_server(request: pytest.FixtureRequest, _posting_app: "Flask") -> Iterator["Server"]:
    from posting.testbed import has_memory_database, serving

    app = _posting_app
    if has_memory_database(app):  # on one connection, which the threads of a server cannot share
        app = request.getfixturevalue("_posting_file_app")
    with serving(app) as server:
        yield server


@pytest.fixture
def posting_app(request: pytest.FixtureRequest) -> "Flask":
    """An app on an empty database: the one that `posting_server` serves, if a test uses both."""
    from posting.testbed import delete_all_rows

    served = "posting_server" in request.fixturenames
    app: Flask = (
        request.getfixturevalue("_posting_server").app
        if served
        else request.getfixturevalue("_posting_app")
    )
    delete_all_rows(app)
    return app


@pytest.fixture
def posting_server(posting_app: "Flask", _posting_server: "Server") -> "Server":
    """An HTTP server on a free port of this machine; its `url` has no slash at the end."""
    if posting_app is not _posting_server.app:
        pytest.fail(
            "posting_server was requested after posting_app had been made for a test without it. "
            "Name it among the arguments of the test or of a fixture.",
            pytrace=False,
        )
    return _posting_server


@pytest.fixture
def posting_client(posting_app: "Flask") -> "Client":
    """A client that is not signed in."""
    client: Any = posting_app.test_client()
    return client  # type: ignore[no-any-return]  # it is of the app's own class


@pytest.fixture
def posting_sign_in(posting_app: "Flask") -> Callable[..., "Client"]:
    """Return a client signed in by name: `posting_sign_in("ada", display_name="Ada")`."""
    from posting.testbed import sign_in

    def posting_sign_in(username: str, **profile: Any) -> "Client":
        return sign_in(posting_app, username, **profile)

    return posting_sign_in


@pytest.fixture
def posting_moderator(posting_sign_in: Callable[..., "Client"]) -> "Client":
    """A client that is signed in as a moderator."""
    from posting.testbed import promote

    client = posting_sign_in("morgan")
    promote(client)
    return client


def _run(database_url: str, settings: dict[str, Any]) -> Iterator["Flask"]:
    from posting.config import StartError
    from posting.testbed import running_app

    try:
        with running_app(database_url, settings) as app:
            yield app
    except StartError as error:
        pytest.fail(error.message, pytrace=False)
