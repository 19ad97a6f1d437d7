"""A pytest plugin with fixtures for code that uses Posting.

pytest loads this module in every run where Posting is installed, so it imports the rest of the
package only in fixtures.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, cast

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
        f"The database URL for Posting's fixtures; {WORKER} becomes the name of the xdist worker.",
        default=IN_MEMORY,
    )


@pytest.fixture(scope="session")
def posting_settings() -> dict[str, Any]:
    """Settings of the app, as for `create_app`. Override this fixture to change them."""
    return {}


@pytest.fixture(scope="session")
def posting_database_url(pytestconfig: pytest.Config) -> str:
    """URL of the database: the one in the ini file, or an in-memory database."""
    url: str = pytestconfig.getini(DATABASE_URL)
    worker: str | None = getattr(pytestconfig, "workerinput", {}).get("workerid")
    if worker and url != IN_MEMORY and WORKER not in url:
        pytest.fail(
            f"{DATABASE_URL} must contain {WORKER}, so that each pytest-xdist worker has its own "
            "database.",
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
    from posting.db.engine import is_in_memory
    from posting.testbed import serve

    app = _posting_app
    with app.app_context():
        in_memory = is_in_memory()
    if in_memory:  # it has one connection, which the server's threads cannot share
        app = request.getfixturevalue("_posting_file_app")
    with serve(app) as server:
        yield server


@pytest.fixture
def posting_app(request: pytest.FixtureRequest) -> "Flask":
    """An app on an empty database; the app of `posting_server` if a test uses both."""
    from posting.testbed import delete_all_rows

    app: Flask
    if "posting_server" in request.fixturenames:
        app = request.getfixturevalue("_posting_server").app
    else:
        app = request.getfixturevalue("_posting_app")
    delete_all_rows(app)
    return app


@pytest.fixture
def posting_server(posting_app: "Flask", _posting_server: "Server") -> "Server":
    """An HTTP server on a free local port; its `url` has no trailing slash."""
    if posting_app is not _posting_server.app:
        pytest.fail(
            "posting_server was requested after posting_app had been set up without it. "
            "Request it as an argument of the test or of a fixture.",
            pytrace=False,
        )
    return _posting_server


@pytest.fixture
def posting_client(posting_app: "Flask") -> "Client":
    """A test client that is not signed in."""
    return cast("Client", posting_app.test_client())


@pytest.fixture
def posting_sign_in(posting_app: "Flask") -> Callable[..., "Client"]:
    """A function that returns a signed-in client: `posting_sign_in("ada", display_name="Ada")`."""
    from posting.testbed import sign_in

    def posting_sign_in(username: str, **profile: Any) -> "Client":
        return sign_in(posting_app, username, **profile)

    return posting_sign_in


@pytest.fixture
def posting_moderator(posting_sign_in: Callable[..., "Client"]) -> "Client":
    """A test client that is signed in as a moderator."""
    from posting.testbed import make_moderator

    client = posting_sign_in("morgan")
    make_moderator(client)
    return client


def _run(database_url: str, settings: dict[str, Any]) -> Iterator["Flask"]:
    from posting.config import StartError
    from posting.testbed import running_app

    try:
        with running_app(database_url, settings) as app:
            yield app
    except StartError as error:
        pytest.fail(error.message, pytrace=False)
