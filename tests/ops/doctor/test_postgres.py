"""A Postgres server and the rights of the service on it."""

import os
from datetime import timedelta

import pytest
import sqlalchemy as sa

from posting.db.base import db
from posting.db.engine import close_connections
from posting.db.types import now
from posting.ops.doctor import postgres
from posting.ops.doctor.findings import ok
from tests.conftest import POSTGRES
from tests.helpers.doctor import examine, only_problem, unstarted

pytestmark = pytest.mark.skipif(not POSTGRES, reason="uses Postgres")


def test_an_old_server_is_a_failure(healthy, monkeypatch):
    monkeypatch.setattr(postgres, "MIN_VERSION", (99,))
    only_problem(healthy, "failure", "too old")


def test_another_encoding_is_a_failure(healthy, monkeypatch):
    real = postgres._setting
    monkeypatch.setattr(
        postgres, "_setting", lambda c, n: "SQL_ASCII" if n == "server_encoding" else real(c, n)
    )
    only_problem(healthy, "failure", "SQL_ASCII")


@pytest.fixture
def on_connect(healthy):
    """Run a statement on each new connection of the healthy service."""

    def on_connect(statement):
        def listen(connection, _record):
            connection.execute(statement)
            connection.commit()

        with healthy.app_context():
            sa.event.listen(db.engine, "connect", listen)

    return on_connect


def test_a_read_only_server_is_a_failure(healthy, on_connect):
    on_connect("SET default_transaction_read_only = on")
    fix = only_problem(healthy, "failure", "accepts no writes")
    assert "default_transaction_read_only" in fix


def test_a_standby_is_a_failure(healthy):
    def stand_by(_connection, _cursor, statement, parameters, *_):
        return statement.replace("pg_is_in_recovery()", "true"), parameters

    with healthy.app_context():
        sa.event.listen(db.engine, "before_cursor_execute", stand_by, retval=True)
    assert "POSTING_DATABASE_URL" in only_problem(healthy, "failure", "standby")


def test_missing_privileges_are_a_failure(healthy, on_connect):
    on_connect("SET ROLE pg_read_all_data")
    fix = only_problem(healthy, "failure", "pg_read_all_data may not write acts, avatars, changes")
    assert fix.startswith(
        "As their owner, run: GRANT SELECT, INSERT, UPDATE, DELETE ON acts, avatars, changes,"
    )
    assert fix.endswith(' TO "pg_read_all_data"')


def test_missing_tables_need_no_privileges(empty_url):
    app = unstarted(DATABASE_URL=empty_url)
    assert only_problem(app, "failure", "at none") == "Run: flask db upgrade"
    with app.app_context():
        close_connections()


def test_other_timeouts_are_a_warning(healthy, monkeypatch):
    monkeypatch.setattr(postgres, "POSTGRES_TIMEOUTS", {"lock_timeout": 1, "work_mem": 4096})
    only_problem(healthy, "warning", "lock_timeout is 5000 ms")


def test_too_few_connections_are_a_warning(healthy, monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 100_000)
    fix = only_problem(healthy, "warning", "100,000 cores")
    assert "WEB_CONCURRENCY" in fix


@pytest.mark.parametrize(("seconds", "level"), [(10, "warning"), (100, "failure")])
def test_clocks_that_differ_are_found(healthy, monkeypatch, seconds, level):
    monkeypatch.setattr(postgres, "now", lambda: now() + timedelta(seconds=seconds))
    only_problem(healthy, level, "differ by")


def test_a_failed_query_hides_no_other_finding(healthy, monkeypatch):
    def fail(connection):
        return connection.execute(sa.text("SELECT 1 FROM missing_table"))

    monkeypatch.setattr(postgres, "CHECKS", (fail, *postgres.CHECKS))
    only_problem(healthy, "failure", "A query failed")
    assert ok("Postgres accepts writes") in examine(healthy)
