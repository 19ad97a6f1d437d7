"""The pool of connections."""

import pytest
import sqlalchemy as sa

from posting import create_app
from posting.db.base import db
from posting.db.engine import is_in_memory
from posting.db.transactions import READER, fetch_all
from tests.conftest import POSTGRES


def test_the_pool_has_the_documented_size(app):
    with app.app_context():
        pool = db.engine.pool
    size = 8 if POSTGRES else 9  # one of them writes
    assert (pool.size(), pool._max_overflow, pool._timeout) == (size, 0, 5)


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


def test_reads_outside_a_transaction_share_the_pool(app):
    with app.app_context():
        for _ in range(2):
            assert fetch_all(sa.select(sa.literal(1))) == [(1,)]
            assert app.extensions[READER].pool is db.engine.pool
            db.engine.dispose()  # replaces the pool
