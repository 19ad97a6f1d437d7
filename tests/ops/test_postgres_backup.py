"""`flask backup` on Postgres, which runs pg_dump, and the rotation of nightly backups."""

import os
import shlex
import shutil
import stat
import subprocess
from datetime import date, timedelta
from pathlib import Path

import pytest

from posting.db.engine import close_connections
from posting.ops.backup import pg_restore_command
from posting.testbed import sign_in
from tests.conftest import POSTGRES
from tests.helpers import ROOT
from tests.helpers.archives import count_rows

on_postgres = pytest.mark.skipif(
    not POSTGRES or not shutil.which("pg_dump"), reason="uses pg_dump and Postgres"
)
# A date that another program passes to `date`, and a `flask` that writes the date into a backup.
DATE = """#!/bin/sh
exec /bin/date --date="$TODAY" "$@"
"""
FLASK = """#!/bin/sh
mkdir -p "$3"
echo "$TODAY" > "$3/posting.db.new"
mv "$3/posting.db.new" "$3/posting.db"
"""


@pytest.fixture
def own_app(make_app, fresh_url):
    return make_app(DATABASE_URL=fresh_url)


@on_postgres
class TestPostgres:
    def test_a_folder_has_the_dump_and_the_files_of_the_operator(
        self, app, flask, alice, tmp_path, monkeypatch
    ):
        instance, folder = tmp_path / "instance", tmp_path / "backup"
        instance.mkdir()
        (instance / "about.md").write_text("# We")
        monkeypatch.setattr(app, "instance_path", str(instance))
        alice.create_post("On engines")
        code, output = flask("backup", f"{folder}/")
        assert (code, output) == (0, f"{folder} is a backup of posting.dump, about.md.\n")
        for file in folder.iterdir():
            assert stat.S_IMODE(file.stat().st_mode) == 0o600
        code, output = flask("backup", f"{folder}/")
        assert (code, "already exists" in output) == (1, True)
        assert flask("backup", "--force", f"{folder}/")[0] == 0

    @pytest.mark.parametrize("target", ["backup/", "backup.dump"])
    def test_the_command_that_restore_shows_restores(
        self, own_app, flask, tmp_path, monkeypatch, target
    ):
        monkeypatch.chdir(tmp_path)
        ada = sign_in(own_app, "ada")
        ada.create_post("Before")
        before = count_rows(own_app)
        assert flask("backup", target, on=own_app)[0] == 0
        ada.create_post("After")
        assert count_rows(own_app) != before
        code, output = flask("restore", "--force", target, on=own_app)
        assert code == 1
        _, separator, command = output.strip().partition("Stop the service, and run: ")
        assert separator
        with own_app.app_context():
            close_connections()
        subprocess.run(shlex.split(command), check=True, capture_output=True)
        assert count_rows(own_app) == before

    def test_a_password_is_passed_on_and_never_shown(
        self, flask, make_app, database_url, tmp_path, monkeypatch
    ):
        app = make_app(DATABASE_URL=database_url.replace("@", ":secret@"))
        with app.app_context():
            assert "secret" not in pg_restore_command(Path("file"))
        (tmp_path / "pg_dump").write_text('#!/bin/sh\necho "$PGPASSWORD $*" >&2\nexit 1\n')
        (tmp_path / "pg_dump").chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
        code, output = flask("backup", str(tmp_path / "file"), on=app)
        assert code == 1
        assert output.startswith("Error: pg_dump failed: secret --format=custom")
        assert output.count("secret") == 1
        assert not (tmp_path / "file").exists()

    def test_a_missing_program_is_named(self, flask, tmp_path, monkeypatch):
        monkeypatch.setenv("PATH", str(tmp_path))
        code, output = flask("backup", str(tmp_path / "file"))
        assert code == 1
        assert output.startswith("Error: pg_dump is missing. Install the client of Postgres")


class TestNightly:
    @pytest.fixture
    def run_on(self, tmp_path):
        """Return a function that runs the nightly script, as if it was a certain day."""
        programs, code = tmp_path / "programs", tmp_path / "posting"
        for file, text in (
            (programs / "date", DATE),
            (code / ".venv" / "bin" / "flask", FLASK),
            (code / "deploy" / "backup.sh", (ROOT / "deploy" / "backup.sh").read_text()),
        ):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
            file.chmod(0o755)
        (tmp_path / "backups").mkdir()

        def run_on(day):
            subprocess.run(
                [code / "deploy" / "backup.sh", tmp_path / "backups"],
                env={"TODAY": day.isoformat(), "PATH": f"{programs}:{os.environ['PATH']}"},
                check=True,
            )

        return run_on

    def test_backups_are_kept_for_days_weeks_and_months(self, run_on, tmp_path):
        for day in range(70):
            run_on(date(2027, 1, 1) + timedelta(days=day))
        kept = {
            folder.name: (folder / "posting.db").read_text().strip()
            for folder in (tmp_path / "backups").iterdir()
        }
        assert kept == {
            "Friday": "2027-03-05",
            "Saturday": "2027-03-06",
            "Sunday": "2027-03-07",
            "Monday": "2027-03-08",
            "Tuesday": "2027-03-09",
            "Wednesday": "2027-03-10",
            "Thursday": "2027-03-11",
            "week-1": "2027-03-07",
            "week-2": "2027-03-11",
            "week-3": "2027-02-21",
            "week-4": "2027-02-28",
            "week-5": "2027-01-31",
            "January": "2027-01-31",
            "February": "2027-02-28",
            "March": "2027-03-11",
        }

    def test_a_backup_takes_its_space_once(self, run_on, tmp_path):
        run_on(date(2027, 1, 1))
        files = {file.stat().st_ino for file in (tmp_path / "backups").glob("*/posting.db")}
        assert len(files) == 1
