"""`flask backup` and `flask restore`: whole, private, and never in the way of the service."""

import errno
import os
import shutil
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path

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


def scribble(file):
    """Overwrite the middle of a database with what is none."""
    with file.open("r+b") as pages:
        pages.seek(4096 * 4)
        pages.write(b"scribble" * 2048)


def leave_log(file, stale):
    """Leave what a process that was killed had written beside a database."""
    with closing(sqlite.connect(file, isolation_level=None)) as writer:
        writer.execute("PRAGMA journal_mode=WAL")
        writer.execute("UPDATE users SET bio = 'stale'")
        shutil.copy(f"{file}-wal", stale.with_suffix(".kept"))
    for left in (f"{file}-wal", f"{file}-shm"):
        Path(left).unlink(missing_ok=True)
    stale.with_suffix(".kept").rename(stale)


def fill_up(*_):
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.fixture
def database(app):
    """The file of the service's database."""
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
    """A backup of a database in which Alice has written a post and an image."""
    alice.illustrate(post)
    file = folder / "copy.db"
    assert flask("backup", str(file))[0] == 0
    return file


@pytest.fixture
def elsewhere(copy, make_app, tmp_path):
    """Another service with the same rows, in a folder that only it has."""
    path = tmp_path / "elsewhere" / "posting.db"
    path.parent.mkdir()
    shutil.copy(copy, path)
    app = make_app(DATABASE_URL=f"sqlite:///{path}")
    app.file = path
    return app


@on_sqlite
class TestBackup:
    def test_it_is_one_private_file_with_every_row(self, copy, database):
        assert [file.name for file in copy.parent.iterdir()] == [copy.name]
        assert stat.S_IMODE(copy.stat().st_mode) == 0o600
        assert rows(copy) == rows(database)
        assert len(rows(copy)["image_data"]) == 1
        with closing(sqlite.connect(copy)) as connection:
            assert connection.execute("PRAGMA journal_mode").fetchall() == [("delete",)]
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]

    def test_it_waits_for_no_writer_and_has_what_is_committed(self, app, flask, copy, database):
        before, other = rows(database), copy.with_name("other.db")
        with app.app_context(), db.engine.begin() as writer:
            writer.execute(sa.update(User).values(bio="not yet"))
            assert flask("backup", str(other))[0] == 0
        assert rows(other) == before != rows(database)

    def test_a_file_is_replaced_only_by_force(self, flask, alice, copy, database):
        before = rows(copy)
        alice.post_titled("Another")
        code, output = flask("backup", str(copy))
        assert (code, "is there already" in output) == (1, True)
        assert rows(copy) == before
        assert flask("backup", "--force", str(copy))[0] == 0
        assert rows(copy) == rows(database) != before

    @pytest.mark.parametrize("end", backup.SIDES)
    def test_what_is_beside_it_is_never_read_into_it(self, flask, copy, database, end):
        before = rows(copy)
        stale = copy.with_name(copy.name + end)
        leave_log(copy, stale)
        copy.unlink()
        code, output = flask("backup", str(copy))
        assert (code, f"{stale} is there already" in output) == (1, True)
        assert stale.exists()
        assert flask("backup", "--force", str(copy))[0] == 0
        assert not stale.exists()
        assert rows(copy) == rows(database) == before

    @pytest.mark.parametrize("command", ["backup", "restore"])
    def test_what_is_no_ordinary_file_is_refused(self, flask, folder, command):
        pipe = folder / "pipe"
        os.mkfifo(pipe)
        for file in (pipe, Path("/dev/null")):
            code, output = flask(command, "--force", str(file))
            assert (code, f"{file} is no ordinary file" in output) == (1, True)
            assert not file.is_file()

    def test_it_goes_where_a_link_leads(self, flask, copy, database, tmp_path):
        link = tmp_path / "link.db"
        link.symlink_to(copy)
        copy.write_text("older")
        assert flask("backup", str(link))[0] == 1
        assert flask("backup", "--force", str(link))[0] == 0
        assert link.is_symlink()
        assert rows(copy) == rows(database)

    @pytest.mark.parametrize("link", [None, Path.symlink_to, Path.hardlink_to])
    @pytest.mark.parametrize("command", ["backup", "restore"])
    def test_the_database_itself_is_refused(self, flask, database, folder, link, command):
        file = database
        if link:
            file = folder / "link.db"
            link(file, database)
        before = rows(database)
        expected = f"Error: {file} is the database itself.\n"
        assert flask(command, "--force", str(file)) == (1, expected)
        assert rows(database) == before

    def test_who_waits_is_told_what_for(self, flask, elsewhere, copy, monkeypatch):
        told = []
        monkeypatch.setattr(backup, "_say", told.append)
        for command in ("backup", "restore"):
            assert flask(command, "--force", str(copy), on=elsewhere)[0] == 0
        assert told == [
            f"Copying {elsewhere.file} …",
            f"Checking {elsewhere.file} …",
            f"Checking {copy} …",
            "Restoring …",
        ]

    def test_a_failure_leaves_nothing_behind(self, flask, folder, monkeypatch):
        monkeypatch.setattr(files, "_sync", fill_up)
        file = folder / "full.db"
        expected = f"Error: {file} cannot be made (No space left on device).\n"
        assert flask("backup", str(file)) == (1, expected)
        assert list(folder.iterdir()) == []

    def test_a_failure_leaves_an_older_backup(self, flask, copy, monkeypatch):
        monkeypatch.setattr(files, "_sync", fill_up)
        before = copy.read_bytes()
        assert flask("backup", "--force", str(copy))[0] == 1
        assert copy.read_bytes() == before
        assert [file.name for file in copy.parent.iterdir()] == [copy.name]

    def test_a_missing_folder_is_told(self, flask, folder):
        file = folder / "none" / "copy.db"
        expected = f"Error: {file} cannot be made (No such file or directory).\n"
        assert flask("backup", str(file)) == (1, expected)

    def test_a_damaged_database_is_told(self, flask, elsewhere, folder):
        scribble(elsewhere.file)
        code, output = flask("backup", str(folder / "new.db"), on=elsewhere)
        assert (code, output.count("\n")) == (1, 1)
        assert f"{elsewhere.file} is damaged" in output
        assert [file.name for file in folder.iterdir()] == ["copy.db"]

    def test_a_broken_foreign_key_is_told_with_a_cure(self, flask, elsewhere, folder):
        change(elsewhere.file, "DELETE FROM users")
        code, output = flask("backup", str(folder / "new.db"), on=elsewhere)
        assert (code, output.count("\n")) == (1, 1)
        assert "broken foreign keys, as in" in output
        assert "PRAGMA foreign_key_check" in output
        assert [file.name for file in folder.iterdir()] == ["copy.db"]

    @pytest.mark.parametrize(
        "spoil",
        [
            lambda file: os.truncate(file, 0),
            lambda file: change(file, "DROP TABLE alembic_version"),
            lambda file: change(file, "DELETE FROM alembic_version"),
        ],
        ids="empty foreign versionless".split(),
    )
    def test_what_is_none_of_this_service_is_told(self, flask, elsewhere, folder, spoil):
        spoil(elsewhere.file)
        expected = (
            f"Error: {elsewhere.file} is no database of this service: it names no schema version.\n"
        )
        assert flask("backup", str(folder / "new.db"), on=elsewhere) == (1, expected)
        assert [file.name for file in folder.iterdir()] == ["copy.db"]

    def test_a_missing_database_is_not_made(self, flask, elsewhere, folder):
        elsewhere.file.unlink()
        expected = f"Error: There is no database in {elsewhere.file} yet.\n"
        assert flask("backup", str(folder / "new.db"), on=elsewhere) == (1, expected)
        assert not elsewhere.file.exists()


@pytest.mark.parametrize("command", ["backup", "restore"])
def test_a_database_in_memory_is_refused(flask, make_app, tmp_path, command):
    app = make_app(DATABASE_URL="sqlite://")
    code, output = flask(command, str(tmp_path / "file"), on=app)
    assert code == 1
    assert output.startswith("Error: The database is in memory")
    assert list(tmp_path.glob("file*")) == []


@pytest.mark.skipif(not POSTGRES, reason="asks Postgres")
@pytest.mark.parametrize("password", ["", "a secret"])
def test_postgres_has_commands_of_its_own(flask, make_app, database_url, password):
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
    def _nothing_is_kept(self, database):
        yield
        for file in database.parent.glob(f"{database.name}.before-restore-*"):
            file.unlink()

    def test_rows_come_back_and_what_was_there_is_kept(self, flask, alice, copy, database):
        alice.post_titled("Another")
        there = rows(database)
        code, output = flask("restore", "--force", str(copy))
        kept = self.kept(database)
        assert code == 0
        assert output.splitlines() == [
            f"The database is as it was in {copy}.",
            f"What was there before is kept in {kept}",
        ]
        assert rows(database) == rows(copy) != there
        assert rows(kept) == there
        assert stat.S_IMODE(kept.stat().st_mode) == 0o600
        assert len(alice.get("/posts").json) == 1

    def test_nothing_is_overwritten_without_force(self, flask, alice, copy, database):
        alice.post_titled("Another")
        there = rows(database)
        code, output = flask("restore", str(copy))
        assert (code, "--force" in output) == (1, True)
        assert rows(database) == there
        assert not list(database.parent.glob("*before-restore*"))
        alice.post_titled("And another")

    def test_an_empty_database_needs_no_force(self, app, flask, copy, database):
        with app.app_context(), db.engine.begin() as connection:
            for table in reversed(db.metadata.sorted_tables):
                connection.execute(sa.delete(table))
        assert flask("restore", str(copy)) == (0, f"The database is as it was in {copy}.\n")
        assert rows(database) == rows(copy)

    def test_a_missing_database_is_made_for_its_owner(self, flask, elsewhere, copy):
        elsewhere.file.unlink()
        stale = elsewhere.file.with_name("posting.db-wal")
        stale.write_bytes(b"of a database that is gone")
        assert flask("restore", str(copy), on=elsewhere)[0] == 0
        assert not stale.exists()
        assert self.kept(elsewhere.file).read_bytes() == b"of a database that is gone"
        assert rows(elsewhere.file) == rows(copy)
        assert stat.S_IMODE(elsewhere.file.stat().st_mode) == 0o600

    def test_those_who_are_reading_go_on_and_then_write(self, app, flask, alice, copy, database):
        alice.post_titled("Another")
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
        alice.post_titled("After all")

    def test_no_write_falls_between_keeping_and_restoring(self, flask, copy, database, monkeypatch):
        def late_writer(*arguments):
            keep(*arguments)
            with pytest.raises(sqlite.OperationalError, match="locked"):
                change(database, "PRAGMA busy_timeout=1", "UPDATE users SET bio = 'lost'")

        keep = backup._keep
        monkeypatch.setattr(backup, "_keep", late_writer)
        assert flask("restore", "--force", str(copy))[0] == 0

    def test_a_writer_that_does_not_end_is_told(self, flask, copy, database, impatient):
        there = rows(database)
        with impatient.begin() as writer:
            writer.execute(sa.update(User).values(bio="x"))
            code, output = flask("restore", "--force", str(copy))
            writer.rollback()
        assert (code, "locked" in output) == (1, True)
        assert rows(database) == there

    def test_when_it_cannot_be_kept_nothing_changes(
        self, flask, alice, copy, database, monkeypatch
    ):
        alice.post_titled("Another")
        there = rows(database)
        monkeypatch.setattr(backup, "_copy_current", fill_up)
        expected = f"Error: {database} cannot be restored from {copy} (No space left on device).\n"
        assert flask("restore", "--force", str(copy)) == (1, expected)
        assert rows(database) == there
        assert not list(database.parent.glob("*before-restore*"))
        alice.post_titled("And another")

    def test_when_it_cannot_be_written_nothing_changes(self, flask, elsewhere, copy):
        there = rows(elsewhere.file)
        size = elsewhere.file.stat().st_size  # more than its free pages can hold
        change(copy, "CREATE TABLE large (data)", f"INSERT INTO large VALUES (zeroblob({size}))")
        with elsewhere.app_context():
            engine = db.engine
        sa.event.listen(engine, "connect", lambda raw, _: raw.execute("PRAGMA max_page_count=1"))
        engine.dispose()  # connections that were made before
        code, output = flask("restore", "--force", str(copy), on=elsewhere)
        assert (code, "database or disk is full" in output) == (1, True)
        assert rows(elsewhere.file) == there
        assert not list(elsewhere.file.parent.glob("*before-restore*"))

    @pytest.mark.parametrize(
        ("spoil", "told"),
        [
            (Path.unlink, "There is no file"),
            (lambda file: file.write_text("This is no database. " * 99), "file is not a database"),
            (lambda file: os.truncate(file, 0), "names no schema version"),
            (lambda file: os.truncate(file, 50_000), "is damaged"),
            (scribble, "is damaged"),
            (lambda file: change(file, "DROP TABLE alembic_version"), "names no schema version"),
            (lambda file: change(file, "DELETE FROM alembic_version"), "names no schema version"),
            (
                lambda file: change(file, "UPDATE alembic_version SET version_num = '9999'"),
                "has schema version 9999, which this code does not know",
            ),
            (
                lambda file: change(file, "DELETE FROM users"),
                "broken foreign keys, as in",
            ),
        ],
        ids="missing text empty truncated scribble foreign versionless newer orphans".split(),
    )
    def test_a_bad_backup_is_refused(self, flask, copy, database, spoil, told):
        there = rows(database)
        spoil(copy)
        code, output = flask("restore", "--force", str(copy))
        assert (code, output.count("\n")) == (1, 1)
        assert told in output
        assert str(copy) in output
        assert rows(database) == there

    @pytest.mark.parametrize(("size", "other"), [(8192, 4096), (4096, 8192)])
    def test_pages_may_be_of_another_size(self, flask, elsewhere, copy, size, other):
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

    def test_an_older_one_wants_an_upgrade(self, flask, elsewhere, copy):
        change(copy, "UPDATE alembic_version SET version_num = '0003'")
        code, output = flask("restore", "--force", str(copy), on=elsewhere)
        assert code == 0
        assert output.endswith("Its schema is an older one. Run: flask db upgrade\n")

    @pytest.mark.parametrize(
        "damage",
        [
            scribble,
            lambda file: os.truncate(file, 50_000),
            lambda file: file.write_text("This is no database. " * 99),
        ],
        ids="scribble truncated text".split(),
    )
    def test_a_damaged_database_is_kept_and_restored_by_force(self, flask, elsewhere, copy, damage):
        elsewhere.file.chmod(0o640)
        damage(elsewhere.file)
        there = elsewhere.file.read_bytes()
        code, output = flask("restore", str(copy), on=elsewhere)
        assert (code, "--force" in output) == (1, True)
        assert elsewhere.file.read_bytes()[100:] == there[100:]
        code, output = flask("restore", "--force", str(copy), on=elsewhere)
        kept = self.kept(elsewhere.file)
        assert (code, f"kept in {kept}\n" in output) == (0, True)
        assert kept.read_bytes()[100:] == there[100:]  # but counters in the header
        assert rows(elsewhere.file) == rows(copy)
        assert stat.S_IMODE(elsewhere.file.stat().st_mode) == 0o640
        with elsewhere.app_context():
            assert db.session.scalar(sa.select(sa.func.count(Post.id))) == 1

    def test_a_damaged_database_in_use_is_not_replaced(self, flask, elsewhere, copy):
        """Who has it open would delete files of the new one."""
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
