"""Usernames are unique regardless of case, in every locale of a Postgres database."""

import secrets

import psycopg
import pytest

from posting import create_app
from posting.db.engine import close_connections
from posting.db.transactions import transaction
from posting.ops.doctor import examination
from tests.conftest import PASSWORD, POSTGRES, upgrade
from tests.helpers.assertions import assert_problem

pytestmark = pytest.mark.skipif(not POSTGRES, reason="SQLite has no locales")


@pytest.fixture
def empty_url():
    """The URL of a Postgres database in whose locale I is not the upper case of i."""
    name = f"posting_test_{secrets.token_hex(8)}"
    with psycopg.connect(POSTGRES, autocommit=True) as server:
        server.execute(
            f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8' "
            "LOCALE_PROVIDER icu ICU_LOCALE 'tr-TR'"
        )
        try:
            yield POSTGRES.rpartition("/")[0] + f"/{name}"
        finally:
            server.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def app(empty_url):
    upgrade(empty_url)
    app = create_app({"TESTING": True, "DATABASE_URL": empty_url})
    yield app
    with app.app_context():
        close_connections()


def credentials(name):
    return {"username": name, "password": PASSWORD}


def test_a_name_in_another_case_is_taken(app):
    first, second = app.test_client(), app.test_client()
    ingrid = first.post("/signup", json=credentials("Ingrid")).json
    assert_problem(second.post("/signup", json=credentials("INGRID")), 409)
    assert second.post("/signin", json=credentials("INGRID")).json == ingrid


def test_the_doctor_finds_a_column_without_the_collation(app):
    def failures():
        with app.app_context():
            return [
                finding
                for finding in examination.examine()
                if finding.level == "failure" and "Usernames" in finding.message
            ]

    assert failures() == []
    drop = 'ALTER TABLE users ALTER username TYPE varchar(32) COLLATE "default"'
    with app.app_context(), transaction() as connection:
        connection.exec_driver_sql(drop)
    [finding] = failures()
    assert 'COLLATE "C"' in finding.fix
