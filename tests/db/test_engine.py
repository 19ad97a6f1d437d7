"""The pool of connections."""

from pathlib import Path

import pytest

from posting import create_app
from posting.db.base import db
from posting.db.engine import close_connections, is_in_memory, sqlite_file
from posting.testbed import sign_in
from tests.conftest import POSTGRES


def test_the_pool_has_the_documented_size(app):
    with app.app_context():
        pool = db.engine.pool
    size = 8 if POSTGRES else 9  # one of them writes
    assert (pool.size(), pool._max_overflow, pool._timeout) == (size, 3, 5)


@pytest.mark.parametrize(
    "url",
    [
        "sqlite:///:memory:",
        "sqlite:///file::memory:?uri=true",
        "sqlite:///file:any?mode=memory&cache=shared&uri=true",
    ],
)
def test_every_in_memory_url_is_recognized(url):
    app = create_app({"TESTING": True, "DATABASE_URL": url})
    with app.app_context():
        assert is_in_memory()
    assert app.test_client().get("/readyz").status_code == 200


def test_creating_the_app_opens_no_connection(make_app):
    app = make_app()
    with app.app_context():
        assert db.engine.pool.checkedin() + db.engine.pool.checkedout() == 0


def test_the_engine_has_no_listeners(make_app):
    """With one, whatever it listens to, each query takes 15 microseconds longer."""
    with make_app().app_context():
        assert not vars(db.engine).get("_has_events")


def test_all_connections_can_be_closed(empty_app):
    """SQLite deletes its log when the last connection is closed."""
    client = sign_in(empty_app, "ada")  # by the connection that writes
    assert client.get("/posts").json == []  # by those that read, and that of the response cache
    with empty_app.app_context():
        log = Path(f"{sqlite_file()}-wal")
        assert log.exists()
        close_connections()
        assert not log.exists()
    assert client.get("/users/me").status_code == 200
