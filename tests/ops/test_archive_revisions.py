"""Archives of every schema since the first can be imported."""

import json
from collections import Counter

import pytest
import sqlalchemy as sa

from posting.db.base import db
from posting.db.migrations.revisions import database_revisions, head_revision, known_revisions
from tests.helpers.archives import ARCHIVES, count_rows, export, read_archive, run, write_archive
from tests.helpers.assertions import assert_consistent, assert_indexed

REVISIONS = sorted(path.stem for path in ARCHIVES.glob("*.jsonl"))
EARLIEST = REVISIONS[0]


def lines_of(revision):
    return [json.loads(line) for line in (ARCHIVES / f"{revision}.jsonl").read_bytes().splitlines()]


@pytest.fixture
def new_app(make_app, fresh_url):
    """An app on a new database of the tested engine."""
    return make_app(DATABASE_URL=fresh_url)


def upgraded(line):
    """Return a line in the form of the current schema, without new columns."""
    if line["table"] != "moderation_acts":
        return line
    row = dict(line["row"])
    row["action"], user_id = row.pop("act"), row.pop("target")
    row |= {"target_kind": "user", "target_id": user_id, "user_id": user_id}
    return {"table": "acts", "row": row}


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


def test_there_is_an_archive_of_each_schema():
    assert set(REVISIONS) == known_revisions()


@pytest.mark.filterwarnings("ignore:Skipped unsupported reflection")  # by schema_of, on SQLite
@pytest.mark.parametrize("revision", REVISIONS)
def test_an_archive_of_each_schema_is_imported_and_upgraded(new_app, tmp_path, revision):
    schema = schema_of(new_app)
    header, *rows = lines_of(revision)
    path = write_archive(tmp_path / "old.gz", header, *rows)
    code, output = run(new_app, "import", path)
    assert (code, output.partition(" ")[0]) == (0, "Imported"), output

    assert schema_of(new_app) == schema
    assert schema[0] == [head_revision()]
    rows = [upgraded(line) for line in rows]
    counts = {name: n for name, n in count_rows(new_app).items() if n}
    assert counts == Counter(line["table"] for line in rows)
    with new_app.app_context(), db.engine.connect() as connection:
        assert_consistent(connection)
        assert_indexed(connection)
    export(new_app, tmp_path / "new.gz")
    exported = iter(read_archive(tmp_path / "new.gz")[1:])
    for line in rows:  # in the same order, perhaps with new columns
        row = next(each["row"] for each in exported if each["table"] == line["table"])
        assert row | line["row"] == row
    [post] = new_app.test_client().get("/posts").json
    assert (post["title"], post["author"]["username"]) == ("On engines", "ada")


@pytest.mark.filterwarnings("ignore:Skipped unsupported reflection")
def test_rows_of_an_earlier_archive_are_changed_by_the_migrations(new_app, tmp_path):
    lines = lines_of(EARLIEST)
    [ada, *_] = [line["row"] for line in lines if line.get("table") == "users"]
    ada |= {"display_name": "", "bio": ""}
    code, output = run(new_app, "import", write_archive(tmp_path / "old.gz", *lines))
    assert code == 0, output
    [user] = new_app.test_client().get(f"/users?username={ada['username']}").json
    assert (user["display_name"], user["bio"]) == (None, None)
    assert user["updated_at"] == user["created_at"]


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"title": ""}, "line 4: rejected by the database"),
        ({"version": "1"}, "line 4: posts.version must be a 32-bit integer."),
        ({"author_id": "a" * 21}, "is inconsistent: a row of posts refers to a missing row|line 4"),
    ],
)
@pytest.mark.filterwarnings("ignore:Skipped unsupported reflection")
def test_an_earlier_archive_is_imported_as_a_whole_or_not_at_all(new_app, tmp_path, change, error):
    schema = schema_of(new_app)
    lines = lines_of(EARLIEST)
    assert lines[3]["table"] == "posts"
    lines[3]["row"] |= change
    code, output = run(new_app, "import", write_archive(tmp_path / "old.gz", *lines))
    assert code == 1
    assert any(part in output for part in error.split("|")), output
    assert schema_of(new_app) == schema
    assert not any(count_rows(new_app).values())


def test_an_earlier_archive_is_refused_by_a_database_with_rows(new_app, tmp_path):
    path = write_archive(tmp_path / "old.gz", *lines_of(EARLIEST))
    assert run(new_app, "import", path)[0] == 0
    code, output = run(new_app, "import", path)
    assert code == 1
    assert "The database is not empty" in output
    assert count_rows(new_app)["posts"] == 1
