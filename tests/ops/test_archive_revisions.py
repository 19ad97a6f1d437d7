"""Archives of earlier schemas can be imported, back to the first one."""

import json
from collections import Counter

import pytest
import sqlalchemy as sa

from posting.db.base import db
from posting.db.migrations.revisions import database_revisions, head_revision
from posting.testbed import running_app
from tests.helpers.archives import ARCHIVES, count_rows, export, read_archive, run, write_archive
from tests.helpers.assertions import assert_consistent, assert_indexed

REVISIONS = sorted(path.stem for path in ARCHIVES.glob("*.jsonl"))
# SQLAlchemy cannot reflect SQLite's index on lower(username).
pytestmark = pytest.mark.filterwarnings("ignore:Skipped unsupported reflection")


def lines_of(revision):
    return [json.loads(line) for line in (ARCHIVES / f"{revision}.jsonl").read_bytes().splitlines()]


@pytest.fixture
def new_app(make_app, fresh_url):
    """An app on a new database of the tested engine."""
    return make_app(DATABASE_URL=fresh_url)


@pytest.fixture
def next_app(next_revision, empty_url):
    """An app on a new database whose schema is that of one more migration."""
    with running_app(empty_url, {}) as app:
        yield app


def schema_of(app):
    """Return the revision of an app's database, and its tables, columns and indexes."""
    with app.app_context(), db.engine.connect() as connection:
        inspector = sa.inspect(connection)
        found = {
            name: (
                [(column["name"], column["nullable"]) for column in inspector.get_columns(name)],
                sorted(str(index["name"]) for index in inspector.get_indexes(name)),
                sorted(str(key["name"]) for key in inspector.get_foreign_keys(name)),
            )
            for name in db.metadata.tables
        }
        return database_revisions(connection), found


def summaries(app):
    """Return the values of the column that one more migration adds."""
    with app.app_context(), db.engine.connect() as connection:
        return connection.scalars(sa.text("SELECT summary FROM posts")).all()


def assert_imported(app, rows, path):
    """Assert that an app has the rows of an archive, perhaps with new columns."""
    counts = {name: n for name, n in count_rows(app).items() if n}
    assert counts == Counter(line["table"] for line in rows)
    with app.app_context(), db.engine.connect() as connection:
        assert_consistent(connection)
        assert_indexed(connection)
    export(app, path)
    exported = iter(read_archive(path)[1:])
    for line in rows:  # in the same order
        row = next(each["row"] for each in exported if each["table"] == line["table"])
        line.pop("checksum", None)
        assert row | line["row"] == row


def test_there_is_an_archive_of_the_current_schema():
    assert REVISIONS[-1] == head_revision()


@pytest.mark.parametrize("revision", REVISIONS)
def test_an_archive_of_each_schema_is_imported(new_app, tmp_path, revision):
    schema = schema_of(new_app)
    header, *rows = lines_of(revision)
    code, output = run(new_app, "import", write_archive(tmp_path / "old.gz", header, *rows))
    assert (code, output.partition(" ")[0]) == (0, "Imported"), output
    assert schema_of(new_app) == schema
    assert_imported(new_app, rows, tmp_path / "new.gz")


def test_an_export_without_checksums_is_imported_as_it_is(new_app, tmp_path):
    """Exports of schema 0025 have none, so what they contain is not compared with today's rules."""
    header, *rows = lines_of("0025")
    assert header["version"] == 1
    for line in rows:
        if line["table"] == "posts":
            line["row"]["title"] = "A\r\nB"
    code, output = run(new_app, "import", write_archive(tmp_path / "old.gz", header, *rows))
    assert code == 0, output
    assert_imported(new_app, rows, tmp_path / "new.gz")


def test_an_archive_goes_through_one_more_migration(next_app, next_revision, tmp_path):
    schema = schema_of(next_app)
    header, *rows = lines_of(REVISIONS[-1])
    code, output = run(next_app, "import", write_archive(tmp_path / "old.gz", header, *rows))
    assert (code, output.partition(" ")[0]) == (0, "Imported"), output
    assert schema_of(next_app) == schema
    assert schema[0] == [head_revision()] == [next_revision]
    assert_imported(next_app, rows, tmp_path / "new.gz")
    assert summaries(next_app) == ["About On engines"]
    assert read_archive(tmp_path / "new.gz")[0]["schema"] == next_revision


def test_a_database_with_rows_goes_through_one_more_migration_and_back(flask, next_app, tmp_path):
    path = write_archive(tmp_path / "old.gz", *lines_of(REVISIONS[-1]))
    assert run(next_app, "import", path)[0] == 0
    schema, counts = schema_of(next_app), count_rows(next_app)
    assert flask("db", "downgrade", "--yes", on=next_app)[0] == 0
    assert schema_of(next_app)[0] == [REVISIONS[-1]]
    assert flask("db", "upgrade", on=next_app)[0] == 0
    assert (schema_of(next_app), count_rows(next_app)) == (schema, counts)
    assert summaries(next_app) == ["About On engines"]


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"title": ""}, "line {post}: posts.title: Must have 1 to 200 characters."),
        ({"version": "1"}, "line {post}: posts.version must be a 32-bit integer."),
        ({"author_id": "a" * 21}, "is inconsistent: a row of posts refers to a missing row"),
    ],
)
def test_an_earlier_archive_is_imported_as_a_whole_or_not_at_all(next_app, tmp_path, change, error):
    schema = schema_of(next_app)
    lines = lines_of(REVISIONS[-1])
    [post] = [number for number, line in enumerate(lines, 1) if line.get("table") == "posts"]
    lines[post - 1]["row"] |= change
    code, output = run(next_app, "import", write_archive(tmp_path / "old.gz", *lines))
    assert code == 1
    errors = (error.format(post=post), f"line {post}: rejected by the database")
    assert any(each in output for each in errors), output
    assert schema_of(next_app) == schema
    assert not any(count_rows(next_app).values())


def test_an_earlier_archive_is_refused_by_a_database_with_rows(next_app, tmp_path):
    path = write_archive(tmp_path / "old.gz", *lines_of(REVISIONS[-1]))
    assert run(next_app, "import", path)[0] == 0
    code, output = run(next_app, "import", path)
    assert code == 1
    assert "The database is not empty" in output
    assert count_rows(next_app)["posts"] == 1


@pytest.mark.parametrize("version", [1, 2])
def test_an_archive_from_before_the_first_revision_is_refused(new_app, tmp_path, version):
    header, *rows = lines_of(REVISIONS[0])
    header |= {"version": version, "schema": "0024"}
    path = write_archive(tmp_path / "old.gz", header, *rows)
    code, output = run(new_app, "import", path)
    assert code == 1
    assert output == (
        f"Error: {path}, line 1: schema 0024, from before schema 0025. Check out commit aad39ff, "
        "and run there: flask import FILE. Then use this version again."
    )
    assert not any(count_rows(new_app).values())
