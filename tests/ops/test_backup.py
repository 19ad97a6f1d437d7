"""`flask backup`: complete and private; and what both backup and restore refuse."""

import os
import stat
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import sqlalchemy as sa
from pysqlite3 import dbapi2 as sqlite

from posting.accounts.models import User
from posting.db.transactions import transaction
from posting.ops import backup, files
from tests.conftest import POSTGRES
from tests.helpers.backups import change, fail_as_full, leave_stale_log, overwrite_pages, rows

on_sqlite = pytest.mark.skipif(bool(POSTGRES), reason="Postgres has pg_dump and pg_restore")


@on_sqlite
class TestBackup:
    def test_a_backup_is_one_private_file_with_every_row(self, copy, database):
        assert [file.name for file in copy.parent.iterdir()] == [copy.name]
        assert stat.S_IMODE(copy.stat().st_mode) == 0o600
        assert rows(copy) == rows(database)
        assert len(rows(copy)["image_data"]) == 1
        with closing(sqlite.connect(copy)) as connection:
            assert connection.execute("PRAGMA journal_mode").fetchall() == [("delete",)]
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]

    def test_a_backup_has_the_committed_rows_and_does_not_wait_for_a_writer(
        self, app, flask, copy, database
    ):
        before, other = rows(database), copy.with_name("other.db")
        with app.app_context(), transaction() as writer:
            writer.execute(sa.update(User).values(bio="not yet"))
            assert flask("backup", str(other))[0] == 0
        assert rows(other) == before != rows(database)

    def test_an_existing_file_is_replaced_only_with_force(self, flask, alice, copy, database):
        before = rows(copy)
        alice.create_post("Another")
        code, output = flask("backup", str(copy))
        assert (code, "already exists" in output) == (1, True)
        assert rows(copy) == before
        assert flask("backup", "--force", str(copy))[0] == 0
        assert rows(copy) == rows(database) != before

    @pytest.mark.parametrize("suffix", backup.SIDECARS)
    def test_a_stale_sidecar_is_never_read_into_a_backup(self, flask, copy, database, suffix):
        before = rows(copy)
        stale = copy.with_name(copy.name + suffix)
        leave_stale_log(copy, stale)
        copy.unlink()
        code, output = flask("backup", str(copy))
        assert (code, f"{stale} already exists" in output) == (1, True)
        assert stale.exists()
        assert flask("backup", "--force", str(copy))[0] == 0
        assert not stale.exists()
        assert rows(copy) == rows(database) == before

    @pytest.mark.parametrize("command", ["backup", "restore"])
    def test_pipes_and_devices_are_refused(self, flask, folder, command):
        pipe = folder / "pipe"
        os.mkfifo(pipe)
        for file in (pipe, Path("/dev/null")):
            code, output = flask(command, "--force", str(file))
            assert (code, f"{file} is not a regular file" in output) == (1, True)
            assert not file.is_file()

    def test_a_link_is_followed(self, flask, copy, database, tmp_path):
        link = tmp_path / "link.db"
        link.symlink_to(copy)
        copy.write_text("older")
        assert flask("backup", str(link))[0] == 1
        assert flask("backup", "--force", str(link))[0] == 0
        assert link.is_symlink()
        assert rows(copy) == rows(database)

    @pytest.mark.parametrize("link", [None, Path.symlink_to, Path.hardlink_to])
    @pytest.mark.parametrize("command", ["backup", "restore"])
    def test_the_database_itself_is_refused(self, flask, database, link, command):
        before = rows(database)
        with TemporaryDirectory(dir=database.parent) as folder:  # a hard link needs the same disk
            file = database
            if link:
                file = Path(folder) / "link.db"
                link(file, database)
            expected = f"Error: {file} is the database itself. Name another file.\n"
            assert flask(command, "--force", str(file)) == (1, expected)
        assert rows(database) == before

    def test_the_steps_are_reported(self, flask, elsewhere, copy, monkeypatch):
        steps = []
        monkeypatch.setattr(backup, "_report", steps.append)
        for command in ("backup", "restore"):
            assert flask(command, "--force", str(copy), on=elsewhere)[0] == 0
        assert steps == [
            f"Copying {elsewhere.file} …",
            f"Checking {elsewhere.file} …",
            f"Checking {copy} …",
            "Restoring …",
        ]

    def test_a_failed_backup_leaves_no_file(self, flask, folder, monkeypatch):
        monkeypatch.setattr(files, "_sync", fail_as_full)
        file = folder / "full.db"
        expected = f"Error: {file} cannot be written (No space left on device).\n"
        assert flask("backup", str(file)) == (1, expected)
        assert list(folder.iterdir()) == []

    def test_a_failed_backup_leaves_the_older_one(self, flask, copy, monkeypatch):
        monkeypatch.setattr(files, "_sync", fail_as_full)
        before = copy.read_bytes()
        assert flask("backup", "--force", str(copy))[0] == 1
        assert copy.read_bytes() == before
        assert [file.name for file in copy.parent.iterdir()] == [copy.name]

    def test_a_missing_folder_is_an_error(self, flask, folder):
        file = folder / "none" / "copy.db"
        expected = f"Error: {file} cannot be written (No such file or directory).\n"
        assert flask("backup", str(file)) == (1, expected)

    def test_a_damaged_database_is_not_backed_up(self, flask, elsewhere, folder):
        overwrite_pages(elsewhere.file)
        code, output = flask("backup", str(folder / "new.db"), on=elsewhere)
        assert (code, output.count("\n")) == (1, 1)
        assert f"{elsewhere.file} is damaged" in output
        assert [file.name for file in folder.iterdir()] == ["copy.db"]

    def test_a_database_with_broken_foreign_keys_is_not_backed_up(self, flask, elsewhere, folder):
        change(elsewhere.file, "DELETE FROM users")
        code, output = flask("backup", str(folder / "new.db"), on=elsewhere)
        assert (code, output.count("\n")) == (1, 1)
        assert "has 4 broken foreign keys, for example in" in output
        assert "PRAGMA foreign_key_check" in output
        assert [file.name for file in folder.iterdir()] == ["copy.db"]

    @pytest.mark.parametrize(
        "damage",
        [
            lambda file: change(file, "DROP TABLE alembic_version"),
            lambda file: change(file, "DELETE FROM alembic_version"),
        ],
        ids="foreign versionless".split(),
    )
    def test_a_database_of_another_program_is_not_backed_up(self, flask, elsewhere, folder, damage):
        damage(elsewhere.file)
        expected = f"Error: {elsewhere.file} is not a Posting database: it has no schema version.\n"
        assert flask("backup", str(folder / "new.db"), on=elsewhere) == (1, expected)
        assert [file.name for file in folder.iterdir()] == ["copy.db"]


@pytest.mark.parametrize("command", ["backup", "restore"])
def test_a_database_in_memory_is_refused(flask, make_app, tmp_path, command):
    app = make_app(DATABASE_URL="sqlite://")
    code, output = flask(command, str(tmp_path / "file"), on=app)
    assert code == 1
    assert output.startswith("Error: The database is in memory")
    assert list(tmp_path.glob("file*")) == []
