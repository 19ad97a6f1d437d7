"""`flask backup` and `flask restore`: complete, private, and safe while the service runs."""

import errno
import os
import shutil
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import sqlalchemy as sa
from pysqlite3 import dbapi2 as sqlite

from posting.db.engine import db, sqlite_file
from posting.db.models import Post, User
from posting.ops import backup, files
from tests.conftest import POSTGRES

on_sqlite = pytest.mark.skipif(bool(POSTGRES), reason="Postgres has pg_dump and pg_restore")


def rows(file):
    """Return all rows of a database, table by table."""
    with closing(sqlite.connect(file)) as connection:
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        return {
            name: connection.execute(f'SELECT * FROM "{name}" ORDER BY 1').fetchall()
            for (name,) in tables.fetchall()
        }


def change(file, *statements):
    with closing(sqlite.connect(file, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


def overwrite_pages(file):
    """Overwrite pages in the middle of a database."""
    with file.open("r+b") as pages:
        pages.seek(4096 * 4)
        pages.write(b"scribble" * 2048)


def leave_stale_log(file, stale):
    """Leave a log beside a database, as a killed process does."""
    with closing(sqlite.connect(file, isolation_level=None)) as writer:
        writer.execute("PRAGMA journal_mode=WAL")
        writer.execute("UPDATE users SET bio = 'stale'")
        shutil.copy(f"{file}-wal", stale.with_suffix(".copy"))
    for left in (f"{file}-wal", f"{file}-shm"):
        Path(left).unlink(missing_ok=True)
    stale.with_suffix(".copy").rename(stale)


def fail_as_full(*_):
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.fixture
def database(app):
    """The database file of the service."""
    with app.app_context():
        return sqlite_file()


@pytest.fixture
def folder(tmp_path):
    """A folder for backups."""
    path = tmp_path / "backups"
    path.mkdir()
    return path


@pytest.fixture
def copy(flask, alice, post, folder):
    """A backup of a database with a post and an image."""
    alice.add_image(post)
    file = folder / "copy.db"
    assert flask("backup", str(file))[0] == 0
    return file


@pytest.fixture
def elsewhere(copy, make_app, tmp_path):
    """Another service with the same rows, in a folder of its own."""
    path = tmp_path / "elsewhere" / "posting.db"
    path.parent.mkdir()
    shutil.copy(copy, path)
    app = make_app(DATABASE_URL=f"sqlite:///{path}")
    app.file = path
    return app


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
        with app.app_context(), db.engine.begin() as writer:
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
        assert "broken foreign keys, for example in" in output
        assert "PRAGMA foreign_key_check" in output
        assert [file.name for file in folder.iterdir()] == ["copy.db"]

    @pytest.mark.parametrize(
        "damage",
        [
            lambda file: os.truncate(file, 0),
            lambda file: change(file, "DROP TABLE alembic_version"),
            lambda file: change(file, "DELETE FROM alembic_version"),
        ],
        ids="empty foreign versionless".split(),
    )
    def test_a_database_of_another_program_is_not_backed_up(self, flask, elsewhere, folder, damage):
        damage(elsewhere.file)
        expected = f"Error: {elsewhere.file} is not a Posting database: it has no schema version.\n"
        assert flask("backup", str(folder / "new.db"), on=elsewhere) == (1, expected)
        assert [file.name for file in folder.iterdir()] == ["copy.db"]

    def test_a_missing_database_is_not_created(self, flask, elsewhere, folder):
        elsewhere.file.unlink()
        expected = f"Error: There is no database at {elsewhere.file}. Check POSTING_DATABASE_URL.\n"
        assert flask("backup", str(folder / "new.db"), on=elsewhere) == (1, expected)
        assert not elsewhere.file.exists()


@pytest.mark.parametrize("command", ["backup", "restore"])
def test_a_database_in_memory_is_refused(flask, make_app, tmp_path, command):
    app = make_app(DATABASE_URL="sqlite://")
    code, output = flask(command, str(tmp_path / "file"), on=app)
    assert code == 1
    assert output.startswith("Error: The database is in memory")
    assert list(tmp_path.glob("file*")) == []


@pytest.mark.skipif(not POSTGRES, reason="uses Postgres")
@pytest.mark.parametrize("password", ["", "a secret"])
def test_the_postgres_command_is_shown(flask, make_app, database_url, password):
    app = make_app(DATABASE_URL=database_url.replace("@", f":{password}@") + "?password=a secret")
    for command, expected in {
        "backup": f"pg_dump --format=custom '--file=a file' {database_url}\n",
        "restore": f"--single-transaction --dbname={database_url} 'a file'\n",
    }.items():
        code, output = flask(command, "a file", on=app)
        assert code == 1
        assert output.endswith(expected)
        assert "secret" not in output


@on_sqlite
class TestRestore:
    def kept(self, database):
        [file] = database.parent.glob(f"{database.name}.before-restore-*")
        return file

    @pytest.fixture(autouse=True)
    def _delete_kept_files(self, database):
        yield
        for file in database.parent.glob(f"{database.name}.before-restore-*"):
            file.unlink()

    def test_a_restore_brings_rows_back_and_keeps_the_previous_ones(
        self, flask, alice, copy, database
    ):
        alice.create_post("Another")
        before = rows(database)
        code, output = flask("restore", "--force", str(copy))
        kept = self.kept(database)
        assert code == 0
        assert output.splitlines() == [
            f"The database is restored from {copy}.",
            f"The previous content is kept in {kept}",
        ]
        assert rows(database) == rows(copy) != before
        assert rows(kept) == before
        assert stat.S_IMODE(kept.stat().st_mode) == 0o600
        assert len(alice.get("/posts").json) == 1

    def test_nothing_is_overwritten_without_force(self, flask, alice, copy, database):
        alice.create_post("Another")
        before = rows(database)
        code, output = flask("restore", str(copy))
        assert (code, "--force" in output) == (1, True)
        assert rows(database) == before
        assert not list(database.parent.glob("*before-restore*"))
        alice.create_post("And another")

    def test_an_empty_database_needs_no_force(self, app, flask, copy, database):
        with app.app_context(), db.engine.begin() as connection:
            for table in reversed(db.metadata.sorted_tables):
                connection.execute(sa.delete(table))
        assert flask("restore", str(copy)) == (0, f"The database is restored from {copy}.\n")
        assert rows(database) == rows(copy)

    def test_a_missing_database_is_created_for_its_owner(self, flask, elsewhere, copy):
        elsewhere.file.unlink()
        stale = elsewhere.file.with_name("posting.db-wal")
        stale.write_bytes(b"of a deleted database")
        assert flask("restore", str(copy), on=elsewhere)[0] == 0
        assert not stale.exists()
        assert self.kept(elsewhere.file).read_bytes() == b"of a deleted database"
        assert rows(elsewhere.file) == rows(copy)
        assert stat.S_IMODE(elsewhere.file.stat().st_mode) == 0o600

    def test_readers_continue_during_a_restore_and_can_write_after_it(
        self, app, flask, alice, copy, database
    ):
        alice.create_post("Another")
        count = "SELECT count(*) FROM posts"
        with closing(sqlite.connect(database, isolation_level=None)) as reader:
            reader.execute("BEGIN")
            assert reader.execute(count).fetchone() == (2,)
            assert flask("restore", "--force", str(copy))[0] == 0
            assert reader.execute(count).fetchone() == (2,)
            reader.execute("COMMIT")
            assert reader.execute(count).fetchone() == (1,)
            reader.execute("UPDATE users SET bio = 'written after'")
            assert reader.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert alice.get("/users/me").json["bio"] == "written after"
        alice.create_post("After all")

    def test_no_write_is_lost_between_keeping_and_restoring(
        self, flask, copy, database, monkeypatch
    ):
        def late_writer(*arguments):
            keep(*arguments)
            with pytest.raises(sqlite.OperationalError, match="locked"):
                change(database, "PRAGMA busy_timeout=1", "UPDATE users SET bio = 'lost'")

        keep = backup._keep
        monkeypatch.setattr(backup, "_keep", late_writer)
        assert flask("restore", "--force", str(copy))[0] == 0

    def test_a_locked_database_is_not_restored(self, flask, copy, database, short_lock_timeout):
        before = rows(database)
        with short_lock_timeout.begin() as writer:
            writer.execute(sa.update(User).values(bio="x"))
            code, output = flask("restore", "--force", str(copy))
            writer.rollback()
        assert (code, "locked" in output) == (1, True)
        assert rows(database) == before

    def test_nothing_changes_if_the_previous_rows_cannot_be_kept(
        self, flask, alice, copy, database, monkeypatch
    ):
        alice.create_post("Another")
        before = rows(database)
        monkeypatch.setattr(backup, "_copy_database", fail_as_full)
        expected = f"Error: {database} cannot be restored from {copy} (No space left on device).\n"
        assert flask("restore", "--force", str(copy)) == (1, expected)
        assert rows(database) == before
        assert not list(database.parent.glob("*before-restore*"))
        alice.create_post("And another")

    def test_nothing_changes_if_the_disk_is_full(self, flask, elsewhere, copy):
        before = rows(elsewhere.file)
        size = elsewhere.file.stat().st_size  # more than its free pages can hold
        change(copy, "CREATE TABLE large (data)", f"INSERT INTO large VALUES (zeroblob({size}))")
        with elsewhere.app_context():
            engine = db.engine
        sa.event.listen(engine, "connect", lambda raw, _: raw.execute("PRAGMA max_page_count=1"))
        engine.dispose()  # existing connections lack the pragma
        code, output = flask("restore", "--force", str(copy), on=elsewhere)
        assert (code, "database or disk is full" in output) == (1, True)
        assert rows(elsewhere.file) == before
        assert not list(elsewhere.file.parent.glob("*before-restore*"))

    @pytest.mark.parametrize(
        ("damage", "expected"),
        [
            (Path.unlink, "There is no file"),
            (lambda file: file.write_text("This is no database. " * 99), "file is not a database"),
            (lambda file: os.truncate(file, 0), "has no schema version"),
            (lambda file: os.truncate(file, 50_000), "is damaged"),
            (overwrite_pages, "is damaged"),
            (lambda file: change(file, "DROP TABLE alembic_version"), "has no schema version"),
            (lambda file: change(file, "DELETE FROM alembic_version"), "has no schema version"),
            (
                lambda file: change(file, "UPDATE alembic_version SET version_num = '9999'"),
                "has schema version 9999, which this version does not know",
            ),
            (lambda file: change(file, "DELETE FROM users"), "broken foreign keys, for example in"),
        ],
        ids="missing text empty truncated overwritten foreign versionless newer orphans".split(),
    )
    def test_an_invalid_backup_is_refused(self, flask, copy, database, damage, expected):
        before = rows(database)
        damage(copy)
        code, output = flask("restore", "--force", str(copy))
        assert (code, output.count("\n")) == (1, 1)
        assert expected in output
        assert str(copy) in output
        assert rows(database) == before

    @pytest.mark.parametrize(("size", "other"), [(8192, 4096), (4096, 8192)])
    def test_a_backup_may_have_another_page_size(self, flask, elsewhere, copy, size, other):
        for file, bytes_ in ((copy, size), (elsewhere.file, other)):
            change(file, "PRAGMA journal_mode=DELETE", f"PRAGMA page_size={bytes_}", "VACUUM")
        change(copy, "UPDATE users SET bio = 'as it was'")
        assert flask("restore", "--force", str(copy), on=elsewhere)[0] == 0
        self.kept(elsewhere.file)
        assert rows(elsewhere.file) == rows(copy)
        assert {file.name for file in elsewhere.file.parent.glob(".*")} == set()
        with closing(sqlite.connect(elsewhere.file)) as connection:
            assert connection.execute("PRAGMA page_size").fetchone() == (other,)
            assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)

    def test_an_older_backup_needs_an_upgrade(self, flask, elsewhere, copy):
        change(copy, "UPDATE alembic_version SET version_num = '0003'")
        code, output = flask("restore", "--force", str(copy), on=elsewhere)
        assert code == 0
        assert output.endswith("The schema of the backup is older. Run: flask db upgrade\n")

    @pytest.mark.parametrize(
        "damage",
        [
            overwrite_pages,
            lambda file: os.truncate(file, 50_000),
            lambda file: file.write_text("This is no database. " * 99),
        ],
        ids="overwritten truncated text".split(),
    )
    def test_a_damaged_database_is_kept_and_restored_with_force(
        self, flask, elsewhere, copy, damage
    ):
        elsewhere.file.chmod(0o640)
        damage(elsewhere.file)
        before = elsewhere.file.read_bytes()
        code, output = flask("restore", str(copy), on=elsewhere)
        assert (code, "--force" in output) == (1, True)
        assert elsewhere.file.read_bytes()[100:] == before[100:]
        code, output = flask("restore", "--force", str(copy), on=elsewhere)
        kept = self.kept(elsewhere.file)
        assert (code, f"kept in {kept}\n" in output) == (0, True)
        assert kept.read_bytes()[100:] == before[100:]  # except for counters in the header
        assert rows(elsewhere.file) == rows(copy)
        assert stat.S_IMODE(elsewhere.file.stat().st_mode) == 0o640
        with elsewhere.app_context():
            assert db.session.scalar(sa.select(sa.func.count(Post.id))) == 1

    def test_a_damaged_database_in_use_is_not_replaced(self, flask, elsewhere, copy):
        """The process that has it open would delete sidecars of the new file."""
        code = (
            "import sys; from pysqlite3 import dbapi2; c = dbapi2.connect(sys.argv[1]); "
            "c.execute('PRAGMA journal_mode=WAL'); print(c.execute('SELECT 1 FROM users')); input()"
        )
        user = subprocess.Popen(
            [sys.executable, "-c", code, elsewhere.file],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        user.stdout.readline()
        elsewhere.file.write_text("This is no database. " * 99)
        expected = "Error: The database is damaged and in use. Stop the service, then restore.\n"
        assert flask("restore", "--force", str(copy), on=elsewhere) == (1, expected)
        assert not list(elsewhere.file.parent.glob("*before-restore*"))
        user.communicate("\n")
        assert flask("restore", "--force", str(copy), on=elsewhere)[0] == 0
