"""Connections to Postgres, and those that the server has ended."""

import select
from contextlib import ExitStack
from unittest.mock import Mock

import pytest
import sqlalchemy as sa

from posting.db.base import db
from posting.db.engine import close_connections
from posting.db.transactions import transaction
from tests.conftest import POSTGRES

pytestmark = pytest.mark.skipif(not POSTGRES, reason="is for Postgres")


def test_postgres_connections_have_time_limits(app):
    with app.app_context(), transaction() as connection:
        for name, value in {
            "statement_timeout": "30s",
            "lock_timeout": "5s",
            "idle_in_transaction_session_timeout": "1min",
        }.items():
            assert connection.exec_driver_sql(f"SHOW {name}").scalar_one() == value
        parameters = connection.connection.driver_connection.info.get_parameters()
    assert parameters["tcp_user_timeout"] == "10000"
    assert (parameters["keepalives_idle"], parameters["keepalives_interval"]) == ("30", "10")


def test_no_request_fails_after_a_restart_of_postgres(app, anonymous):
    assert anonymous.get("/posts").status_code == 200
    with app.app_context():
        engine = sa.create_engine(db.engine.url, poolclass=sa.NullPool)
    with engine.connect() as connection:
        connection.exec_driver_sql(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    assert anonymous.get("/posts").status_code == 200


def test_only_connections_with_unread_data_are_tested(app, monkeypatch):
    with app.app_context():
        with db.engine.connect() as connection, db.engine.connect() as other:
            raw = connection.connection.driver_connection
            raw.execute("LISTEN news")
            other.connection.driver_connection.execute("NOTIFY news")
            assert select.select([raw], [], [], 10)[0]
        test = Mock(wraps=raw.execute)
        monkeypatch.setattr(raw, "execute", test)
        for _ in range(2):
            with ExitStack() as connections:
                for _ in range(db.engine.pool.checkedin()):  # each idle one, in whatever order
                    connections.enter_context(db.engine.connect())
        test.assert_called_once_with("SELECT 1")
        raw.execute("UNLISTEN news")


def test_a_change_of_a_columns_type_fails_at_most_one_request(app, anonymous):
    """Open connections hold statements that were prepared for the former type."""
    alter = "ALTER TABLE posts ALTER COLUMN title TYPE varchar({})"
    try:
        for _ in range(10):
            assert anonymous.get("/posts").status_code == 200
        with app.app_context(), transaction() as connection:
            connection.exec_driver_sql(alter.format(300))
        statuses = [anonymous.get("/posts").status_code for _ in range(10)]
    finally:
        with app.app_context():
            with transaction() as connection:
                connection.exec_driver_sql(alter.format(200))
            close_connections()  # they have statements that were prepared for the other type
    assert statuses[1:] == [200] * 9
