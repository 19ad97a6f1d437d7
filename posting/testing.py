"""A pytest plugin with fixtures for code that uses Posting.

pytest loads this module in every run where Posting is installed, so it imports the rest of the
package only in fixtures.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, cast

import pytest

if TYPE_CHECKING:
    from flask import Flask

    from posting.testbed import Apps, Client, Server

DATABASE_URL = "posting_database_url"
IN_MEMORY = "sqlite://"
WORKER = "{worker}"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini(
        DATABASE_URL,
        f"The database URL for Posting's fixtures; {WORKER} becomes the name of the xdist worker.",
        default=IN_MEMORY,
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        'posting_settings(NAME=value): settings of Posting for a test, such as SIGNUP="closed". '
        "They are added to those of the fixture `posting_settings`.",
    )


@pytest.fixture
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
def _posting_file_url(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"sqlite:///{tmp_path_factory.mktemp('posting') / 'test.db'}"


@pytest.fixture(scope="session")
def _posting_apps() -> Iterator["Apps"]:
    from posting.testbed import Apps

    apps = Apps()
    yield apps
    apps.close()


@pytest.fixture
def posting_app(
    request: pytest.FixtureRequest,
    posting_database_url: str,
    posting_settings: dict[str, Any],
    _posting_apps: "Apps",
) -> "Flask":
    """An app with the settings of the test, on an empty database."""
    from posting.config import StartError
    from posting.testbed import delete_all_rows, has_database_in_memory

    settings = dict(posting_settings)
    for marker in reversed([*request.node.iter_markers("posting_settings")]):  # the closest wins
        settings.update(*marker.args, **marker.kwargs)
    try:
        app = _posting_apps.get(posting_database_url, settings)
        if "posting_server" in request.fixturenames and has_database_in_memory(app):
            # Such a database has one connection, which the server's threads cannot share.
            app = _posting_apps.get(request.getfixturevalue("_posting_file_url"), settings)
    except StartError as error:
        pytest.fail(error.message, pytrace=False)
    delete_all_rows(app)
    return app


@pytest.fixture
def posting_server(posting_app: "Flask") -> Iterator["Server"]:
    """An HTTP server on a free local port; its `url` has no trailing slash."""
    from posting.testbed import has_database_in_memory, serve

    if has_database_in_memory(posting_app):
        pytest.fail(
            "posting_server was requested after posting_app had been set up without it. "
            "Request it as an argument of the test or of a fixture.",
            pytrace=False,
        )
    with serve(posting_app) as server:
        yield server


@pytest.fixture
def posting_client(posting_app: "Flask") -> "Client":
    """A test client that is not signed in."""
    return cast("Client", posting_app.test_client())


@pytest.fixture
def posting_sign_in(posting_app: "Flask") -> Callable[..., "Client"]:
    """A function that returns a signed-in client: `posting_sign_in("ada", role="moderator")`."""
    from posting.testbed import sign_in

    def posting_sign_in(username: str, *, role: str | None = None, **profile: Any) -> "Client":
        return sign_in(posting_app, username, role=role, **profile)

    return posting_sign_in


@pytest.fixture
def posting_moderator(posting_sign_in: Callable[..., "Client"]) -> "Client":
    """A test client that is signed in as `morgan`, a moderator."""
    return posting_sign_in("morgan", role="moderator")


@pytest.fixture
def posting_owner(posting_sign_in: "Callable[..., Client]") -> "Client":
    """A client that is signed in as an owner."""
    return posting_sign_in("olive", role="owner")


@pytest.fixture
def posting_authorization(posting_sign_in: Callable[..., "Client"]) -> dict[str, str]:
    """The header `Authorization` of a program, with a token of `robin` that may write."""
    return posting_sign_in("robin").authorization()
