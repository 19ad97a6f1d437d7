"""The file of an SQLite database, and its content."""

import os
import shutil
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
from pysqlite3 import dbapi2

from posting.db import engine
from posting.db.engine import db, sqlite_file
from posting.db.types import now
from posting.ops.doctor import sqlite
from posting.ops.doctor.findings import ok
from tests.conftest import POSTGRES
from tests.helpers.doctor import MIB, add_post, examine, only_problem, problems, unstarted

pytestmark = pytest.mark.skipif(bool(POSTGRES), reason="uses SQLite")


@pytest.mark.parametrize(
    ("user", "owner", "folder_owner", "expected"),
    [
        (1000, 1000, 1000, None),
        (1000, 0, 1000, None),
        (1000, 1001, 1000, 1000),
        (0, 1001, 1001, None),
        (0, 1001, 0, None),
        (0, 0, 1001, 1001),
    ],
)
def test_the_expected_owner_of_a_file(monkeypatch, user, owner, folder_owner, expected):
    def status(path):
        uid = owner if path.name == "file" else folder_owner
        return os.stat_result((0o100600, 0, 0, 1, uid, 0, 0, 0, 0, 0))

    monkeypatch.setattr(os, "geteuid", lambda: user)
    monkeypatch.setattr(Path, "stat", status)
    assert sqlite._expected_owner(Path("/folder/file")) == expected


@pytest.mark.parametrize(("free", "level"), [(99, "failure"), (999, "warning")])
def test_little_disk_space_is_found(healthy, machine, free, level):
    machine(free * MIB, 2000 * MIB)
    assert (level, f"{free} MiB free") in [
        (level, message.partition(" has ")[2]) for level, message in problems(healthy)
    ]


def test_less_than_a_twentieth_of_a_large_disk_is_a_warning(healthy, machine):
    machine(4000 * MIB, 100_000 * MIB)
    only_problem(healthy, "warning", "4,000 MiB free")


def test_a_missing_database_is_a_failure_and_not_created(tmp_path):
    app = unstarted(DATABASE_URL=f"sqlite:///{tmp_path / 'posting.db'}")
    assert only_problem(app, "failure", "no database") == "Run: flask db upgrade"
    assert list(tmp_path.iterdir()) == []


def test_a_missing_folder_is_a_failure(own):
    app, file = own
    shutil.rmtree(file.parent)
    assert {level for level, _ in problems(app)} == {"failure"}


def test_an_empty_file_needs_an_upgrade_and_stays_empty(own):
    app, file = own
    file.write_bytes(b"")
    assert only_problem(app, "failure", "no database") == "Run: flask db upgrade"
    assert file.read_bytes() == b""


def test_a_database_not_in_wal_mode_is_not_converted(own):
    app, file = own
    file.unlink()
    with closing(dbapi2.connect(file)) as connection:
        connection.execute("CREATE TABLE bookmarks (url)")
    file.chmod(0o600)
    before = file.read_bytes()
    only_problem(app, "warning", f"{file} is not in WAL mode")
    assert file.read_bytes() == before
    assert [each.name for each in file.parent.iterdir()] == [file.name]


def test_a_folder_is_a_failure(own):
    app, file = own
    file.unlink()
    file.mkdir()
    assert "POSTING_DATABASE_URL" in only_problem(app, "failure", f"{file} is a folder")


def test_a_read_only_url_is_a_failure(own):
    _, file = own
    app = unstarted(DATABASE_URL=f"sqlite:///file:{file}?mode=ro&uri=true")
    assert "mode=ro" in only_problem(app, "failure", "read-only")


def test_a_read_only_file_system_is_a_failure(own, monkeypatch):
    app, file = own
    monkeypatch.setattr(os, "access", lambda *_: False)
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_flag=os.ST_RDONLY))
    assert f"remount,rw {file.parent}" in only_problem(app, "failure", "read-only")


def test_a_file_of_another_kind_is_a_failure(own, flask):
    app, file = own
    file.write_text("This is no database. " * 99)
    assert "flask restore --force" in only_problem(app, "failure", "file is not a database")
    assert flask("doctor", on=app)[0] == 1


def test_a_damaged_database_is_a_failure(own):
    app, file = own
    with file.open("r+b") as pages:
        pages.seek(4096 * 4)
        pages.write(b"scribble" * 512)
    assert {level for level, _ in problems(app)} == {"failure"}


def test_broken_foreign_keys_are_a_failure(own):
    app, file = own
    with closing(dbapi2.connect(file)) as connection:
        connection.execute("INSERT INTO image_data VALUES ('there-is-no-such-one', x'00')")
        connection.commit()
    only_problem(app, "failure", "foreign keys are broken, for example in image_data")


def test_a_locked_database_is_a_failure(own, monkeypatch):
    app, file = own
    impatient = ("busy_timeout=50", *engine.SQLITE_PRAGMAS[1:])
    monkeypatch.setattr(engine, "SQLITE_PRAGMAS", impatient)
    with closing(dbapi2.connect(file, isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode=EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        assert "has it open" in only_problem(app, "failure", "locked")


def test_checks_do_not_wait_for_a_writer(healthy, app):
    with app.app_context(), db.engine.begin():
        assert problems(healthy) == []


def test_an_old_sqlite_is_a_failure(healthy, monkeypatch):
    monkeypatch.setattr(sqlite, "MIN_VERSION", (99, 0, 0))
    assert "pysqlite3" in only_problem(healthy, "failure", "can corrupt")


def test_an_ignored_pragma_is_a_failure(healthy, monkeypatch):
    monkeypatch.setattr(sqlite, "SQLITE_PRAGMAS", ("journal_mode=TRUNCATE", "foreign_keys=ON"))
    only_problem(healthy, "failure", "settings: journal_mode is wal and not TRUNCATE")


def test_the_file_is_shown_with_its_mode(own):
    app, file = own
    file.chmod(0o640)
    assert ok(f"The database is in {file}, mode 0640") in examine(app)


def test_a_file_of_another_user_is_a_warning(own, monkeypatch):
    app, file = own
    monkeypatch.setattr(sqlite, "_expected_owner", lambda path: 1 if path == file else None)
    fix = only_problem(app, "warning", f"{file} belongs to another user")
    assert fix == f"Run: chown 1 {file}"


def test_a_file_that_all_users_can_read_is_a_warning(own):
    app, file = own
    file.chmod(0o644)
    assert problems(app) == []  # no other user can enter its folder
    file.parent.chmod(0o755)
    fix = only_problem(app, "warning", "All users of this machine can read")
    assert fix == f"Run: chmod o= {file}*"


def test_a_file_that_cannot_be_written_is_a_failure(own, monkeypatch):
    app, file = own
    monkeypatch.setattr(os, "access", lambda path, _: path != file)
    assert only_problem(app, "failure", "cannot be read and written") == f"Run: chmod u+rw {file}"
    me = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: me)
    fix = next(each.fix for each in examine(app) if "cannot be read" in each.message)
    assert f"chown {me} {file}" in fix


def test_a_file_that_cannot_be_opened_is_a_failure(own, monkeypatch):
    app, file = own

    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied", str(file))

    monkeypatch.setattr(Path, "open", refuse)
    only_problem(app, "failure", f"Permission denied: '{file}'")


def test_a_large_log_is_a_warning(app, healthy, monkeypatch):
    monkeypatch.setattr(sqlite, "MAX_WAL_BYTES", -1)
    with healthy.app_context(), db.engine.connect():
        log = f"{sqlite_file()}-wal"
        assert "Restart" in only_problem(healthy, "warning", log)


def test_posts_from_the_future_are_a_warning(app, healthy):
    add_post(app, created_at=now() + timedelta(days=1))
    assert "timedatectl" in only_problem(healthy, "warning", "in the future")


@pytest.mark.parametrize("timestamp", ["zzz", 5])
def test_an_invalid_value_is_a_failure(own, timestamp):
    app, file = own
    add_post(app)
    with closing(dbapi2.connect(file)) as connection:
        connection.execute("UPDATE posts SET created_at = ?", [timestamp])
        connection.commit()
    assert "Correct" in only_problem(app, "failure", "holds an invalid value")


def test_a_reset_clock_is_a_warning(healthy, monkeypatch):
    monkeypatch.setattr(sqlite, "now", lambda: now().replace(year=1970))
    only_problem(healthy, "warning", "1970")
