"""`flask db`, as far as it differs from Flask-Migrate."""

import pytest

from posting.db.base import db
from posting.db.engine import close_connections
from posting.db.migrations.revisions import VERSION_TABLE, database_revisions, head_revision
from posting.db.transactions import transaction
from posting.testbed import running_app
from tests.helpers.doctor import unstarted


@pytest.fixture
def other(empty_url):
    """An app on a database of its own with the current schema."""
    with running_app(empty_url, {}) as app:
        yield app


def revisions(app):
    with app.app_context(), db.engine.connect() as connection:
        return database_revisions(connection)


def test_a_downgrade_asks_first(flask, other):
    code, output = flask("db", "downgrade", input="n\n", on=other)
    assert code == 1
    assert output.startswith("Revert the schema of ")
    assert " to the previous one? Data that the earlier schema has no place for is dele" in output
    assert revisions(other) == [head_revision()]
    assert flask("db", "downgrade", "0008", on=other)[0] == 1  # without an answer
    assert revisions(other) == [head_revision()]
    assert flask("db", "downgrade", "0008", input="y\n", on=other)[0] == 0
    assert revisions(other) == ["0008"]


def test_a_downgrade_does_not_ask_with_yes(flask, other):
    assert flask("db", "downgrade", "--yes", "0008", on=other)[0] == 0
    assert revisions(other) == ["0008"]


def test_a_downgrade_that_only_prints_sql_does_not_ask(flask, other):
    code, output = flask("db", "downgrade", "--sql", f"{head_revision()}:0008", on=other)
    assert code == 0
    assert "DROP TABLE" in output
    assert revisions(other) == [head_revision()]


@pytest.mark.parametrize("command", [["upgrade"], ["downgrade", "--yes"], ["current"]])
def test_a_newer_schema_needs_a_newer_version(flask, other, command):
    with other.app_context(), transaction() as connection:
        connection.execute(VERSION_TABLE.update().values(version_num="9999"))
    expected = (
        "Error: The database has schema 9999, which this version does not know: "
        "a newer version upgraded it. Install that version.\n"
    )
    assert flask("db", *command, on=other) == (1, expected)
    assert revisions(other) == ["9999"]


def test_an_upgrade_creates_the_database_and_its_folder(flask, tmp_path):
    folder = tmp_path / "data" / "instance"
    app = unstarted(INSTANCE_PATH=str(folder), DATABASE_URL="sqlite:///posting.db")
    assert not folder.exists()
    assert flask("db", "upgrade", on=app)[0] == 0
    assert revisions(app) == [head_revision()]
    with app.app_context():
        close_connections()
    assert [file.name for file in folder.iterdir()] == ["posting.db"]
