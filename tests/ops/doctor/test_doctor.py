"""`flask doctor`: each problem is found and has a fix, and no check raises an error."""

import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy import make_url

from posting.db.engine import close_connections
from posting.db.transactions import transaction
from posting.images.models import Thumbnail
from posting.ops.doctor import examination
from tests.conftest import POSTGRES, new_database
from tests.helpers.archives import count_rows
from tests.helpers.doctor import GOOD, add_post, only_problem, problems, unstarted


def test_a_healthy_service_has_no_problems(healthy, flask):
    assert problems(healthy) == []
    code, output = flask("doctor", on=healthy)
    assert code == 0
    assert all(line.startswith("ok       ") for line in output.splitlines())


def test_warnings_exit_with_0_and_print_the_fix_below(make_app, flask):
    code, output = flask("doctor", on=make_app(**GOOD | {"RATE_LIMITS": "off"}))
    assert code == 0
    expected = "warning  Password guesses are not limited\n         Remove POSTING_RATE_LIMITS.\n"
    assert expected in output


def test_a_failure_exits_with_1(make_app, flask):
    code, output = flask("doctor", on=make_app(**GOOD | {"PASSWORD_HASH": "scrypt:1024:8:1"}))
    assert code == 1
    assert "\nfailure  Passwords are hashed with scrypt:1024:8:1" in output


def test_an_unreachable_database_is_one_failure(flask):
    app = unstarted(DATABASE_URL="postgresql://postgres:hidden@127.0.0.1:9/nothing")
    assert "POSTING_DATABASE_URL" in only_problem(app, "failure", "cannot be used")
    code, output = flask("doctor", on=app)
    assert code == 1
    assert "hidden" not in output


@pytest.mark.parametrize("name", ["about.md", "custom.css"])
def test_a_file_that_the_service_cannot_read_is_a_failure(healthy, tmp_path, monkeypatch, name):
    file = tmp_path / name
    file.touch()
    monkeypatch.setattr(healthy, "instance_path", str(tmp_path))
    assert problems(healthy) == []
    monkeypatch.setattr(os, "access", lambda path, _: path != file)
    assert "chown" in only_problem(healthy, "failure", f"{file} cannot be read")


def test_a_database_in_memory_is_a_warning(make_app):
    only_problem(make_app(DATABASE_URL="sqlite://", **GOOD), "warning", "in memory")


def test_an_old_schema_is_a_failure(healthy, monkeypatch):
    monkeypatch.setattr(examination, "head_revision", lambda: "9999")
    assert only_problem(healthy, "failure", "not at 9999") == "Run: flask db upgrade"


def test_a_newer_schema_is_a_failure(healthy, monkeypatch):
    monkeypatch.setattr(examination, "head_revision", lambda: "0000")
    monkeypatch.setattr(examination, "known_revisions", lambda: frozenset({"0000"}))
    fix = only_problem(healthy, "failure", "a newer one upgraded it")
    assert ("pg_restore" if POSTGRES else "flask restore --force FILE") in fix


def test_a_database_without_a_schema_is_a_failure(healthy, monkeypatch):
    monkeypatch.setattr(examination, "database_revisions", lambda _: [])
    assert only_problem(healthy, "failure", "at none") == "Run: flask db upgrade"


@pytest.fixture
def filled(make_app, fresh_url):
    """A healthy service with a post, and a database of its own."""
    app = make_app(DATABASE_URL=fresh_url, **GOOD)
    add_post(app)
    if not POSTGRES:
        Path(fresh_url.removeprefix("sqlite:///")).chmod(0o600)
    return app


def drop(app, table):
    with app.app_context(), transaction() as connection:
        connection.exec_driver_sql(f"DROP TABLE {table}")


def test_a_missing_search_index_is_a_failure_whose_fix_loses_nothing(filled, flask, tmp_path):
    drop(filled, "post_search")
    drop(filled, "user_search")
    fix = only_problem(filled, "failure", "but tables are missing: post_search, user_search")
    assert fix == (
        "Run: flask export FILE. Then set POSTING_DATABASE_URL to a new database, and run: "
        "flask db upgrade; flask import FILE"
    )
    file, folder = str(tmp_path / "archive.gz"), tmp_path / "new"
    folder.mkdir()
    assert flask("export", file, on=filled)[0] == 0
    with new_database(folder) as url:
        new = unstarted(DATABASE_URL=url)
        assert flask("db", "upgrade", on=new)[0] == 0
        assert flask("import", file, on=new)[0] == 0
        assert count_rows(new) == count_rows(filled)
        assert problems(new) == []
        with new.app_context():
            close_connections()


@pytest.mark.skipif(bool(POSTGRES), reason="Postgres has pg_restore")
def test_a_missing_table_is_a_failure_until_a_backup_is_restored(filled, flask, tmp_path):
    file = str(tmp_path / "backup.db")
    assert flask("backup", file, on=filled)[0] == 0
    drop(filled, "tokens")
    fix = only_problem(filled, "failure", "but tables are missing: tokens")
    assert fix == "Restore a backup: flask restore --force FILE"
    assert flask("restore", "--force", file, on=filled)[0] == 0
    only_problem(filled, "warning", "is what `flask restore` replaced 0 days ago")


@pytest.mark.skipif(not POSTGRES or not shutil.which("pg_restore"), reason="uses pg_restore")
def test_a_missing_table_of_postgres_is_a_failure_until_a_backup_is_restored(
    filled, fresh_url, tmp_path
):
    file = str(tmp_path / "backup.dump")
    subprocess.run(["pg_dump", "--format=custom", f"--file={file}", fresh_url], check=True)
    drop(filled, "tokens")
    fix = only_problem(filled, "failure", "but tables are missing: tokens")
    description, command = fix.split(": ", 1)
    assert description == "Restore a backup"
    words = [file if word == "FILE" else word for word in shlex.split(command)]
    password = make_url(fresh_url).password or ""
    subprocess.run(words, env=os.environ | {"PGPASSWORD": password}, check=True)
    assert problems(filled) == []


@pytest.mark.parametrize(
    ("table", "number"),
    [("post_search", "2 posts"), ("comment_search", "1 comment"), ("user_search", "2 users")],
)
def test_rows_that_are_not_indexed_are_a_failure(healthy, alice, flask, table, number):
    alice.add_comment(alice.create_post("On engines"), "A comment")
    alice.create_post("On looms")
    with healthy.app_context(), transaction() as connection:
        connection.exec_driver_sql(f"DELETE FROM {table}")
    fix = only_problem(healthy, "failure", f"The search index is out of date for {number}")
    assert fix == "Run: flask search rebuild"
    assert flask("search", "rebuild")[0] == 0
    assert problems(healthy) == []


@pytest.mark.parametrize(("images", "number"), [(1, "1 image"), (2, "2 images")])
def test_images_without_a_thumbnail_are_a_warning(healthy, alice, flask, images, number):
    post = alice.create_post("On engines")
    for _ in range(images):
        alice.add_image(post)
    assert problems(healthy) == []
    with healthy.app_context(), transaction() as connection:
        connection.execute(sa.delete(Thumbnail))
    fix = only_problem(healthy, "warning", f"{number} without a thumbnail or sizes")
    assert fix == "Run: flask images thumbnails"
    assert flask("images", "thumbnails")[0] == 0
    assert problems(healthy) == []
