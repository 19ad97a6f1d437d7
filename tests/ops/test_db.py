"""`flask db`, as far as it differs from Flask-Migrate."""

import pytest
import sqlalchemy as sa

from posting.db.base import db
from posting.db.engine import close_connections, sqlite_file, url_without_password
from posting.db.migrations.revisions import (
    VERSION_TABLE,
    database_revisions,
    head_revision,
    known_revisions,
)
from posting.db.transactions import transaction
from posting.indexes import INDEXES
from posting.testbed import running_app
from tests.helpers.archives import example_archive, import_, write_archive
from tests.helpers.assertions import assert_indexed
from tests.helpers.doctor import unstarted

FIRST = min(known_revisions())


@pytest.fixture
def other(next_revision, empty_url):
    """An app on a database of its own with the current schema, which a second migration makes."""
    with running_app(empty_url, {}) as app:
        yield app


def revisions(app):
    with app.app_context(), db.engine.connect() as connection:
        return database_revisions(connection)


def stamp(app, revision):
    with app.app_context(), transaction() as connection:
        connection.execute(VERSION_TABLE.update().values(version_num=revision))


def test_a_downgrade_asks_first(flask, other):
    code, output = flask("db", "downgrade", input="n\n", on=other)
    assert code == 1
    with other.app_context():
        name = sqlite_file() or url_without_password()
    assert output.startswith(f"Revert the schema of {name} to the previous one? Data ")
    assert revisions(other) == [head_revision()]
    assert flask("db", "downgrade", FIRST, on=other)[0] == 1  # without an answer
    assert revisions(other) == [head_revision()]
    assert flask("db", "downgrade", FIRST, input="y\n", on=other)[0] == 0
    assert revisions(other) == [FIRST]


def test_a_downgrade_does_not_ask_with_yes(flask, other):
    printed = f"The database schema is {FIRST}.\n"
    assert flask("db", "downgrade", "--yes", FIRST, on=other) == (0, printed)
    assert revisions(other) == [FIRST]


def test_a_downgrade_that_only_prints_sql_does_not_ask(flask, other):
    code, output = flask("db", "downgrade", "--sql", f"{head_revision()}:base", on=other)
    assert code == 0
    assert "DROP TABLE" in output
    assert revisions(other) == [head_revision()]


@pytest.mark.parametrize("revision", ["0024", "8", "00", "0099", "nonsense", "", f"{FIRST}@head"])
@pytest.mark.parametrize("command", ["upgrade", "downgrade", "stamp", "show", "edit"])
def test_an_unknown_revision_is_an_error_that_names_all(flask, other, command, revision):
    code, output = flask("db", command, revision, on=other)
    assert code == 2
    assert f"there is no revision '{revision}'. The revisions are {FIRST}, " in output
    assert f", {head_revision()}.\n" in output
    assert "Revert" not in output  # it has not asked
    assert revisions(other) == [head_revision()]


@pytest.mark.parametrize(
    "arguments",
    [
        ["downgrade", "--sql", f"{FIRST}:0099"],
        ["upgrade", "--sql", f"0099:{FIRST}"],
        ["history", "--rev-range", "0099:"],
    ],
)
def test_a_range_with_an_unknown_revision_is_an_error(flask, other, arguments):
    code, output = flask("db", *arguments, on=other)
    assert code == 2
    assert "there is no revision " in output


@pytest.mark.parametrize(
    "arguments",
    [
        ["downgrade", "--yes", "--", "-99"],
        ["downgrade", "--yes", "+1"],
        ["downgrade", "--yes", "head"],
        ["downgrade", "--yes", "HEAD"],
        ["upgrade", "+20"],
        ["stamp", f"{FIRST}+99"],
    ],
)
def test_a_revision_out_of_reach_is_an_error(flask, other, arguments):
    assert flask("db", "downgrade", "--yes", FIRST, on=other)[0] == 0
    arguments = [head_revision() if each == "HEAD" else each for each in arguments]
    code, output = flask("db", *arguments, on=other)
    assert code == 1
    expected = f"Error: The schema is {FIRST}, and {arguments[0]} cannot get from there to the rev"
    assert f"{expected}ision that you named. The revisions are {FIRST}, " in output
    assert revisions(other) == [FIRST]


@pytest.mark.parametrize(
    "arguments",
    [
        ["downgrade", "--yes", "--", "-2"],
        ["downgrade", "--yes", "base"],
        ["downgrade", "--yes", f"{FIRST}-1"],
        ["upgrade", "heads"],
        ["stamp", FIRST],
        ["show", "current"],
        ["history", "--rev-range", f"{FIRST}:current"],
    ],
)
def test_other_ways_to_name_a_revision_are_accepted(flask, other, arguments):
    assert flask("db", *arguments, on=other)[0] == 0


@pytest.mark.parametrize("command", [["upgrade"], ["downgrade", "--yes"], ["current"]])
def test_a_newer_schema_needs_a_newer_version(flask, other, command):
    stamp(other, "9999")
    expected = (
        "Error: The database has schema 9999, which this version does not know: "
        "a newer version upgraded it. Install that version.\n"
    )
    assert flask("db", *command, on=other) == (1, expected)
    assert revisions(other) == ["9999"]


def test_a_revision_that_cannot_be_read_is_an_error(flask, other):
    """As after a restore by another role, whose tables this one may not read."""
    rename = f"ALTER TABLE {VERSION_TABLE.name} RENAME COLUMN version_num TO number"
    with other.app_context(), transaction() as connection:
        connection.execute(sa.text(rename))
    code, output = flask("db", "upgrade", on=other)
    assert code == 1
    assert output.startswith("Error: ")
    assert "version_num" in output


@pytest.mark.parametrize("command", [["upgrade"], ["downgrade", "--yes"], ["current"]])
def test_a_schema_from_before_the_first_revision_needs_the_commit_that_upgrades_it(
    flask, other, command
):
    stamp(other, "0024")
    expected = (
        "Error: The database has schema 0024, from before schema 0025. Check out commit aad39ff, "
        "and run there: flask db upgrade. Then use this version again.\n"
    )
    assert flask("db", *command, on=other) == (1, expected)
    assert revisions(other) == ["0024"]


def test_an_upgrade_from_the_first_schema_indexes_all_texts_again(flask, empty_url, tmp_path):
    with running_app(empty_url, {}) as app:
        import_(app, write_archive(tmp_path / "archive.gz", *example_archive()))
        assert flask("db", "downgrade", "--yes", FIRST, on=app)[0] == 0
        with app.app_context(), transaction() as connection:
            for index in INDEXES:
                index.clear(connection)
                assert index.count_stale(connection) > 0
        result = app.test_cli_runner().invoke(args=["db", "upgrade"])
        assert result.stdout == f"The database schema is up to date ({head_revision()}).\n"
        assert "If this is interrupted, run: flask search rebuild\n" in result.stderr
        with app.app_context(), transaction() as connection:
            assert_indexed(connection)


def test_an_upgrade_creates_the_database_and_its_folder(flask, tmp_path):
    folder = tmp_path / "data" / "instance"
    app = unstarted(INSTANCE_PATH=str(folder), DATABASE_URL="sqlite:///posting.db")
    assert not folder.exists()
    assert flask("db", "upgrade", on=app)[0] == 0
    assert revisions(app) == [head_revision()]
    with app.app_context():
        close_connections()
    assert [file.name for file in folder.iterdir()] == ["posting.db"]
