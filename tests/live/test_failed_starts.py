"""A start that fails prints one line with the next step, and no traceback."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import sqlalchemy as sa

from posting.db.base import db
from posting.db.migrations.revisions import VERSION_TABLE, head_revision
from posting.db.transactions import transaction
from posting.testbed import running_app
from tests.conftest import POSTGRES
from tests.helpers import ROOT
from tests.helpers.backups import garble_schema

UNREACHABLE = "postgresql://postgres@127.0.0.1:9/nothing"


@pytest.fixture
def start(empty_url, tmp_path):
    """Run Python in the root folder with an empty database, and return the completed process."""

    def start(*arguments, **environment):
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=ROOT,
            env=os.environ | {"POSTING_DATABASE_URL": empty_url} | environment,
            capture_output=True,
            text=True,
            check=False,
        )

    return start


@pytest.fixture
def migrated(empty_url):
    """An app on a database created by the migrations."""
    with running_app(empty_url, {}) as app, app.app_context():
        yield app
        db.session.remove()


def assert_stopped(result, *words, code=3):
    assert result.returncode == code, result.stderr
    [line] = result.stderr.splitlines()
    assert line.startswith("posting: ")
    for word in words:
        assert word in line


@pytest.mark.skipif(not POSTGRES, reason="a new SQLite database migrates itself")
def test_a_new_postgres_database_needs_an_upgrade(start):
    assert_stopped(start("wsgi.py"), "flask db upgrade")


@pytest.mark.skipif(bool(POSTGRES), reason="Postgres needs an upgrade")
def test_a_new_sqlite_database_migrates_itself(start):
    assert start("wsgi.py").returncode == 0
    assert head_revision() in start("-m", "flask", "db", "current").stdout


def stamp(version):
    with transaction() as connection:
        connection.execute(VERSION_TABLE.update().values(version_num=version))


def test_a_schema_from_before_the_first_revision_needs_the_commit_that_upgrades_it(start, migrated):
    stamp("0024")
    message = "The database has schema 0024, from before schema 0025. Check out commit aad39ff, "
    assert_stopped(start("wsgi.py"), message, "and run there: flask db upgrade.")


def test_a_newer_schema_needs_a_newer_version(start, migrated, tmp_path):
    stamp("9999")
    message = "The database has schema 9999, which this version does not know: a newer version"
    assert_stopped(start("wsgi.py"), message, "Install that version.")
    for command in ("export", "import"):
        result = start("-m", "flask", command, str(tmp_path / "archive"))
        assert (result.returncode, result.stdout) == (1, "")
        assert result.stderr.startswith(f"Error: {message}")


@pytest.mark.skipif(not POSTGRES, reason="asks a Postgres server")
@pytest.mark.parametrize("unknown", [{"username": "nobody_here"}, {"database": "no_such_one"}])
def test_an_unknown_role_or_database_is_an_error(start, unknown):
    url = sa.make_url(POSTGRES).set(**unknown).render_as_string(hide_password=False)
    result = start("wsgi.py", POSTING_DATABASE_URL=url)
    assert_stopped(result, *unknown.values(), "Check the user, the password and the name")


def test_an_upgrade_of_an_unreachable_database_is_an_error(start):
    result = start("-m", "flask", "db", "upgrade", POSTING_DATABASE_URL=UNREACHABLE)
    assert result.returncode == 1
    [line] = result.stderr.splitlines()
    assert line.startswith("Error: The database postgresql://postgres@127.0.0.1:9/nothing ")


def test_a_file_that_is_not_a_database_is_an_error(start, tmp_path):
    file = tmp_path / "file"
    file.write_text("This is not a database, whatever the settings say. " * 99)
    result = start("wsgi.py", POSTING_DATABASE_URL=f"sqlite:///{file}")
    assert_stopped(result, "not a database", f"{file} is damaged", "flask restore")


@pytest.mark.skipif(bool(POSTGRES), reason="damages the file")
def test_a_damaged_schema_is_an_error(start, fresh_url):
    file = Path(fresh_url.removeprefix("sqlite:///"))
    garble_schema(file)
    result = start("wsgi.py", POSTING_DATABASE_URL=fresh_url)
    assert_stopped(result, f"{file} is damaged", "malformed database schema")


def test_a_folder_instead_of_a_file_is_an_error(start, tmp_path):
    result = start("wsgi.py", POSTING_DATABASE_URL=f"sqlite:///{tmp_path}")
    assert_stopped(result, f"{tmp_path} is a folder. Set POSTING_DATABASE_URL to a file")


def test_a_missing_folder_is_an_error(start, tmp_path):
    folder = tmp_path / "nowhere"
    url = f"sqlite:///{folder}/posting.db"
    message = f"There is no folder {folder} for the database."
    assert_stopped(start("wsgi.py", POSTING_DATABASE_URL=url), message, "POSTING_DATABASE_URL")
    upgrade = start("-m", "flask", "db", "upgrade", POSTING_DATABASE_URL=url)
    assert (upgrade.returncode, upgrade.stderr.count("\n")) == (1, 1)
    assert upgrade.stderr.startswith(f"Error: {message}")


def test_an_invalid_gunicorn_setting_is_an_error(start):
    result = start("deploy/serve.py", MAX_REQUESTS="many")
    assert_stopped(result, "MAX_REQUESTS must be a whole number", "'many'")


def test_an_invalid_setting_is_an_error(start):
    result = start("wsgi.py", POSTING_PROXY_HOPS="many")
    assert_stopped(result, "POSTING_PROXY_HOPS", "'many'")


def test_gunicorn_does_not_retry(start):
    result = start("deploy/serve.py", POSTING_PASSWORD_MIN="3", PORT="0")
    assert result.returncode != 0
    assert "posting: POSTING_PASSWORD_MIN must be" in result.stderr
    assert "Traceback" not in result.stderr
