"""`flask restore`: safe while the service runs, and nothing is lost."""

import os
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sa
from pysqlite3 import dbapi2 as sqlite

from posting.accounts.models import User
from posting.db.base import db
from posting.db.transactions import execute, fetch_all, transaction, unit_of_work
from posting.db.types import new_id
from posting.invitations.first_run import describe_first_run
from posting.invitations.models import Invitation
from posting.invitations.store import create_invitation
from posting.ops import backup
from posting.posts.models import Post
from tests.conftest import POSTGRES
from tests.helpers.backups import (
    SERVICE,
    change,
    fail_as_full,
    garble_schema,
    overwrite_pages,
    rows,
)

pytestmark = pytest.mark.skipif(bool(POSTGRES), reason="Postgres has pg_restore")


def find_kept(database):
    [file] = database.parent.glob(f"{database.name}.before-restore-*")
    return file


@pytest.fixture(autouse=True)
def _delete_kept_files(database):
    yield
    for file in database.parent.glob(f"{database.name}.before-restore-*"):
        file.unlink()


def test_a_restore_brings_rows_back_and_keeps_the_previous_ones(flask, alice, copy, database):
    alice.create_post("Another")
    before = rows(database)
    code, output = flask("restore", "--force", str(copy))
    kept = find_kept(database)
    assert code == 0
    assert output.splitlines() == [
        f"The database is restored from {copy}.",
        f"The previous content is kept in {kept}",
    ]
    assert rows(database) == rows(copy) != before
    assert rows(kept) == before
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert len(alice.get("/posts").json) == 1


def test_cursors_of_changes_expire_with_each_restore(flask, anonymous, alice, copy, database):
    """Also those that the backup itself would know, since it was restored before."""
    for _ in range(2):
        cursor = anonymous.get("/changes").json["cursor"]
        assert flask("restore", "--force", str(copy))[0] == 0
        find_kept(database).unlink()  # its name has only seconds
        for _ in range(2):  # before and after the place of the cursor is reached again
            response = anonymous.get(f"/changes?after={cursor}")
            assert (response.status_code, response.json["code"]) == (410, "cursor_expired")
            alice.create_post("Another")
        assert anonymous.get("/changes").status_code == 200


def test_nothing_is_overwritten_without_force(flask, alice, copy, database):
    alice.create_post("Another")
    before = rows(database)
    code, output = flask("restore", str(copy))
    assert (code, "--force" in output) == (1, True)
    assert rows(database) == before
    assert not list(database.parent.glob("*before-restore*"))
    alice.create_post("And another")


def test_an_empty_database_needs_no_force(app, flask, copy, database):
    with app.app_context(), transaction() as connection:
        for table in reversed(db.metadata.sorted_tables):
            connection.execute(sa.delete(table))
    assert flask("restore", str(copy)) == (0, f"The database is restored from {copy}.\n")
    assert rows(database) == rows(copy)


def test_a_service_that_was_started_needs_no_force(app, flask, copy, database):
    with app.app_context(), transaction() as connection:
        for table in reversed(db.metadata.sorted_tables):
            if table.name != "epochs":  # which always has a row
                connection.execute(sa.delete(table))
    assert describe_first_run(app, "http://127.0.0.1:8000", with_link=True)
    assert flask("restore", str(copy)) == (0, f"The database is restored from {copy}.\n")
    assert rows(database) == rows(copy)


@pytest.mark.parametrize("exists", [True, False])
def test_a_restore_brings_no_link_for_the_first_owner(app, flask, elsewhere, folder, exists):
    with app.app_context(), unit_of_work():
        for role in ("owner", "member"):
            create_invitation(None, role=role)
    saved = folder / "with a link.db"
    assert flask("backup", str(saved))[0] == 0
    if not exists:
        elsewhere.file.unlink()
    assert flask("restore", "--force", str(saved), on=elsewhere)[0] == 0
    with closing(sqlite.connect(elsewhere.file)) as connection:
        assert connection.execute("SELECT role FROM invitations").fetchall() == [("member",)]


def test_a_restore_has_no_time_limit(app, flask, elsewhere, folder, monkeypatch):
    """A copy may take minutes, and then a table is searched without an index."""
    with app.app_context(), unit_of_work():
        create_invitation(None, role="owner")
        [first] = fetch_all(sa.select(Invitation.__table__))
        execute(sa.insert(Invitation), [{**first._asdict(), "id": new_id()} for _ in range(5000)])
    saved = folder / "with many links.db"
    assert flask("backup", str(saved))[0] == 0
    monkeypatch.setattr("posting.db.sqlite.READ_SECONDS", -1)
    assert flask("restore", "--force", str(saved), on=elsewhere)[0] == 0
    with closing(sqlite.connect(elsewhere.file)) as connection:
        assert connection.execute("SELECT count(*) FROM invitations").fetchone() == (0,)


def test_a_missing_database_is_created_for_its_owner(flask, elsewhere, copy):
    elsewhere.file.unlink()
    stale = elsewhere.file.with_name("posting.db-wal")
    stale.write_bytes(b"of a deleted database")
    assert flask("restore", str(copy), on=elsewhere)[0] == 0
    assert not stale.exists()
    assert find_kept(elsewhere.file).read_bytes() == b"of a deleted database"
    assert rows(elsewhere.file) == rows(copy)
    assert stat.S_IMODE(elsewhere.file.stat().st_mode) == 0o600


def test_readers_continue_during_a_restore_and_can_write_after_it(
    app, flask, alice, copy, database
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


def test_no_write_is_lost_between_keeping_and_restoring(flask, copy, database, monkeypatch):
    def late_writer(*arguments):
        keep(*arguments)
        with pytest.raises(sqlite.OperationalError, match="locked"):
            change(database, "PRAGMA busy_timeout=1", "UPDATE users SET bio = 'lost'")

    keep = backup._keep
    monkeypatch.setattr(backup, "_keep", late_writer)
    assert flask("restore", "--force", str(copy))[0] == 0


@pytest.mark.usefixtures("short_lock_timeout")
def test_a_locked_database_is_not_restored(app, flask, copy, database):
    before = rows(database)
    with app.app_context(), transaction() as writer:
        writer.execute(sa.update(User).values(bio="x"))
        code, output = flask("restore", "--force", str(copy))
        writer.rollback()
    assert (code, "locked" in output) == (1, True)
    assert rows(database) == before


def test_nothing_changes_if_the_previous_rows_cannot_be_kept(
    flask, alice, copy, database, monkeypatch
):
    alice.create_post("Another")
    before = rows(database)
    monkeypatch.setattr(backup, "_copy_database", fail_as_full)
    expected = f"Error: {database} cannot be restored from {copy} (No space left on device).\n"
    assert flask("restore", "--force", str(copy)) == (1, expected)
    assert rows(database) == before
    assert not list(database.parent.glob("*before-restore*"))
    alice.create_post("And another")


def test_nothing_changes_if_the_disk_is_full(flask, elsewhere, copy):
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
        (lambda file: file.write_text("This is not a database. " * 99), "file is not a database"),
        (lambda file: os.truncate(file, 0), "has no schema version"),
        (lambda file: os.truncate(file, 50_000), "is damaged"),
        (overwrite_pages, "is damaged"),
        (garble_schema, "is damaged"),
        (lambda file: change(file, "DROP TABLE alembic_version"), "has no schema version"),
        (lambda file: change(file, "DELETE FROM alembic_version"), "has no schema version"),
        (
            lambda file: change(file, "UPDATE alembic_version SET version_num = '9999'"),
            "has schema version 9999, which this version does not know",
        ),
        (lambda file: change(file, "DELETE FROM users"), "broken foreign keys, for example in"),
    ],
    ids=(
        "missing text empty truncated overwritten garbled foreign versionless newer orphans".split()
    ),
)
def test_an_invalid_backup_is_refused(flask, copy, database, damage, expected):
    before = rows(database)
    damage(copy)
    code, output = flask("restore", "--force", str(copy))
    assert (code, output.count("\n")) == (1, 1)
    assert expected in output
    assert str(copy) in output
    assert rows(database) == before


@pytest.mark.parametrize(("size", "other"), [(8192, 4096), (4096, 8192)])
def test_a_backup_may_have_another_page_size(flask, elsewhere, copy, size, other):
    for file, bytes_ in ((copy, size), (elsewhere.file, other)):
        change(file, "PRAGMA journal_mode=DELETE", f"PRAGMA page_size={bytes_}", "VACUUM")
    change(copy, "UPDATE users SET bio = 'as it was'")
    assert flask("restore", "--force", str(copy), on=elsewhere)[0] == 0
    find_kept(elsewhere.file)
    assert rows(elsewhere.file) == rows(copy)
    assert {file.name for file in elsewhere.file.parent.glob(".*")} == set()
    with closing(sqlite.connect(elsewhere.file)) as connection:
        assert connection.execute("PRAGMA page_size").fetchone() == (other,)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_an_older_backup_needs_an_upgrade(flask, elsewhere, copy, next_revision):
    code, output = flask("restore", "--force", str(copy), on=elsewhere)
    assert code == 0
    assert output.endswith("The schema of the backup is older. Run: flask db upgrade\n")


def test_a_backup_from_before_the_first_revision_is_refused(flask, elsewhere, copy):
    change(copy, "UPDATE alembic_version SET version_num = '0024'")
    before = elsewhere.file.read_bytes()
    code, output = flask("restore", "--force", str(copy), on=elsewhere)
    assert code == 1
    assert output.endswith(
        f"Error: {copy} has schema version 0024, from before schema 0025. Check out commit "
        f"aad39ff, and run there: flask restore {copy}; flask db upgrade. Then use this version "
        "again.\n"
    )
    assert elsewhere.file.read_bytes() == before


@pytest.mark.parametrize(
    "damage",
    [
        overwrite_pages,
        lambda file: os.truncate(file, 50_000),
        lambda file: file.write_text("This is not a database. " * 99),
        garble_schema,
    ],
    ids="overwritten truncated text garbled".split(),
)
def test_a_damaged_database_is_kept_and_restored_with_force(flask, elsewhere, copy, damage):
    elsewhere.file.chmod(0o640)
    damage(elsewhere.file)
    before = elsewhere.file.read_bytes()
    code, output = flask("restore", str(copy), on=elsewhere)
    assert (code, "--force" in output) == (1, True)
    assert elsewhere.file.read_bytes()[100:] == before[100:]
    code, output = flask("restore", "--force", str(copy), on=elsewhere)
    kept = find_kept(elsewhere.file)
    assert (code, f"kept in {kept}\n" in output) == (0, True)
    assert kept.read_bytes()[100:] == before[100:]  # except for counters in the header
    assert rows(elsewhere.file) == rows(copy)
    assert stat.S_IMODE(elsewhere.file.stat().st_mode) == 0o640
    with elsewhere.app_context():
        assert db.session.scalar(sa.select(sa.func.count(Post.id))) == 1


def test_a_damaged_database_is_replaced_by_one_of_its_owner(flask, elsewhere, copy, owners):
    elsewhere.file.write_text("This is not a database. " * 99)
    assert flask("restore", "--force", str(copy), on=elsewhere)[0] == 0
    assert owners == {"posting.db": SERVICE}


def test_the_previous_content_is_kept_for_the_owner_of_the_database(flask, elsewhere, copy, owners):
    elsewhere.file.chmod(0o640)
    assert flask("restore", "--force", str(copy), on=elsewhere)[0] == 0
    kept = find_kept(elsewhere.file)
    assert owners == {kept.name: SERVICE}
    assert stat.S_IMODE(kept.stat().st_mode) == stat.S_IMODE(elsewhere.file.stat().st_mode) == 0o640


@pytest.mark.parametrize("user", [0, 1234])
def test_only_root_must_be_able_to_set_the_owner(flask, elsewhere, copy, monkeypatch, user):
    def refuse(*_):
        raise PermissionError(1, "Operation not permitted")

    elsewhere.file.unlink()
    monkeypatch.setattr(os, "chown", refuse)
    monkeypatch.setattr(os, "geteuid", lambda: user)
    is_root = user == 0
    assert flask("restore", str(copy), on=elsewhere)[0] == is_root
    assert elsewhere.file.exists() != is_root


def test_a_damaged_database_in_use_is_not_replaced(flask, elsewhere, copy):
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
    elsewhere.file.write_text("This is not a database. " * 99)
    expected = "Error: The database is damaged and in use. Stop the service, then restore.\n"
    assert flask("restore", "--force", str(copy), on=elsewhere) == (1, expected)
    assert not list(elsewhere.file.parent.glob("*before-restore*"))
    user.communicate("\n")
    assert flask("restore", "--force", str(copy), on=elsewhere)[0] == 0
