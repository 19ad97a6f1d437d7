"""The time that a query may take."""

import pytest
import sqlalchemy as sa

from posting.db.transactions import execute, fetch_all, snapshot, transaction, unit_of_work
from tests.conftest import POSTGRES


class TestTimeLimit:
    """A query outside of a transaction has two seconds."""

    LONG = (
        "WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n {}) SELECT max(x) FROM n"
    )

    @pytest.fixture
    def is_limited(self, monkeypatch):
        """Return a function that returns whether a function is interrupted in a long query."""
        monkeypatch.setattr("posting.db.sqlite.READ_SECONDS", -1)

        def is_limited(execute):
            if POSTGRES:
                [[timeout]] = execute("SHOW statement_timeout")
                return {"2s": True, "30s": False, "0": False}[timeout]
            try:
                return list(execute(self.LONG.format("LIMIT 20000"))) != [(20000,)]
            except sa.exc.OperationalError as error:
                return error.orig.sqlite_errorname == "SQLITE_INTERRUPT"

        return is_limited

    @staticmethod
    def fetch(sql):
        return fetch_all(sa.text(sql))

    @staticmethod
    def execute(sql):
        return execute(sa.text(sql))

    @pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS"])
    def test_requests_that_read_have_it(self, in_request, is_limited, method):
        assert in_request(method, lambda: is_limited(self.fetch))

    @pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
    def test_transactions_do_not_have_it(self, in_request, is_limited, method):
        assert in_request(method, lambda: is_limited(self.fetch))
        assert not in_request(method, lambda: is_limited(self.execute))

    def test_commands_do_not_have_it(self, app, is_limited):
        with app.app_context(), unit_of_work():
            assert not is_limited(self.execute)

    def test_a_snapshot_does_not_have_it(self, app, is_limited):
        with app.app_context(), snapshot() as connection:
            assert not is_limited(connection.exec_driver_sql)

    def test_a_query_after_a_transaction_has_it(self, app, is_limited):
        with app.app_context():
            with transaction() as connection:
                assert not is_limited(connection.exec_driver_sql)
            assert is_limited(self.fetch)

    @pytest.mark.parametrize("path", ["/posts?q=x", "/comments?q=x", "/search?q=x"])
    def test_a_request_that_takes_longer_gets_503(self, anonymous, monkeypatch, caplog, path):
        endless = "SELECT pg_sleep(30)" if POSTGRES else self.LONG.format("")
        monkeypatch.setattr("posting.search.index.Index.find", lambda *_: self.fetch(endless))
        monkeypatch.setattr("posting.db.sqlite.READ_SECONDS", 0.05)  # on SQLite
        response = anonymous.get(path, headers={"Accept": "application/json"})
        assert response.status_code == 503
        assert response.headers["Retry-After"] == "10"
        assert "too long" in response.text
        assert "The database failed" in caplog.text
        assert anonymous.get("/posts").status_code == 200
