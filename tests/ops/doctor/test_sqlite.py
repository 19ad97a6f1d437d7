"""The file of an SQLite database, and its content."""

import os
import re
import shutil
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
import sqlalchemy as sa
from pysqlite3 import dbapi2

from posting.accounts.models import User
from posting.db.base import db
from posting.db.engine import close_connections, sqlite_file
from posting.db.transactions import transaction
from posting.db.types import now
from posting.ops.doctor import sqlite
from posting.ops.doctor.findings import failure, ok
from tests.conftest import POSTGRES
from tests.helpers.backups import change, garble_schema, overwrite_pages
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
    for url in (f"sqlite:///{tmp_path / 'posting.db'}", "sqlite:///posting.db"):
        app = unstarted(DATABASE_URL=url, INSTANCE_PATH=str(tmp_path / "instance"))
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


@pytest.fixture
def at_rest(own):
    """The file of a healthy service, in WAL mode, that no process has open."""
    app, file = own
    with app.app_context():
        close_connections()
    assert sqlite.is_wal(file)
    return file


@pytest.fixture
def converted(at_rest):
    """The same file in another mode, as after `flask restore` into a new folder."""
    change(at_rest, "PRAGMA journal_mode=DELETE")
    assert not sqlite.is_wal(at_rest)
    return at_rest


def contents(folder):
    """Return the content of each file in a folder."""
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def change_an_index(file):
    """Change an entry of the index of usernames, which leaves its page well-formed."""
    with closing(dbapi2.connect(file)) as connection:
        query = "SELECT rootpage FROM sqlite_master WHERE name = 'uq_users_username'"
        [(number,)] = connection.execute(query).fetchall()
    with file.open("r+b") as pages:
        pages.seek(4096 * (number - 1))
        page = pages.read(4096)
        assert page.count(b"ada") == 1
        pages.seek(4096 * (number - 1))
        pages.write(page.replace(b"ada", b"adb"))


DAMAGES = {
    "pages": (overwrite_pages, "The database is damaged|A query failed|cannot be used"),
    "index": (change_an_index, "The database is damaged: .*missing from index uq_users_username"),
    "user": (
        lambda file: change(file, "DELETE FROM users"),
        "1 broken foreign key, for example in posts",
    ),
    "garbled schema": (garble_schema, "The database cannot be used"),
    "newer schema": (
        lambda file: change(file, "UPDATE alembic_version SET version_num = '0099'"),
        "The schema is at 0099, which this version does not know",
    ),
    "older schema": (
        lambda file: change(file, "UPDATE alembic_version SET version_num = '0007'"),
        "The schema is at 0007, from before schema 0025",
    ),
}


@pytest.mark.parametrize("mode", ["at_rest", "converted"])
@pytest.mark.parametrize("kind", DAMAGES)
def test_damage_is_a_failure_in_either_mode(own, request, flask, mode, kind):
    app, file = own
    damage, expected = DAMAGES[kind]
    with app.app_context():
        ada = User(username="ada", password_hash="x")
        db.session.add(ada)
        db.session.commit()
        user_id = ada.id
    add_post(app, author_id=user_id)
    request.getfixturevalue(mode)
    damage(file)
    before = contents(file.parent)
    failures = [message for level, message in problems(app) if level == "failure"]
    assert failures
    assert re.search(expected, failures[0])
    assert flask("doctor", on=app)[0] == 1
    assert contents(file.parent) == before


@pytest.mark.parametrize("mode", ["at_rest", "converted"])
def test_a_database_is_checked_without_another_file(own, request, mode, monkeypatch):
    app, file = own
    add_post(app)
    request.getfixturevalue(mode)
    before, during = contents(file.parent), []

    def look(connection):
        connection.execute(sa.text("SELECT count(*) FROM posts"))
        during.append(contents(file.parent))
        return ok("looked")

    monkeypatch.setattr(sqlite, "CHECKS", (*sqlite.CHECKS, look))
    if mode == "at_rest":
        assert problems(app) == []
    else:
        only_problem(app, "warning", f"{file} is not in WAL mode")
    assert during
    assert all(each == before for each in during)
    assert contents(file.parent) == before


def test_a_check_that_fails_while_another_process_writes_is_repeated(own, monkeypatch):
    """Without a log the file is read without locks, and the service may start meanwhile."""
    app, file = own
    services = []

    def check(_connection):
        if services:
            return ok("The service has started")
        services.append(dbapi2.connect(file, isolation_level=None))
        services[0].execute("CREATE TABLE bookmarks (url)")
        return failure("The pages do not match", "Restore a backup.")

    monkeypatch.setattr(sqlite, "CHECKS", (check,))
    with app.app_context():
        close_connections()
    try:
        assert problems(app) == []
    finally:
        services[0].close()


def test_what_is_only_in_the_log_is_checked(own):
    app, file = own
    add_post(app)
    with closing(dbapi2.connect(file, isolation_level=None)) as service:
        service.execute("UPDATE posts SET comment_count = 7")
        assert Path(f"{file}-wal").stat().st_size
        only_problem(app, "failure", "the comment_count of post")


def test_a_log_without_its_index_is_a_failure(own, at_rest):
    """As in a copy of both files of a database in use."""
    app, file = own
    log = Path(f"{file}-wal")
    with closing(dbapi2.connect(file, isolation_level=None)) as service:
        service.execute("CREATE TABLE bookmarks (url)")
        copies = file.read_bytes(), log.read_bytes()
    file.write_bytes(copies[0])
    log.write_bytes(copies[1])
    before = contents(file.parent)
    fix = only_problem(app, "failure", "cannot be used")
    assert f"a killed process left what it wrote in {log}." in fix
    assert "flask db upgrade" in fix
    assert contents(file.parent) == before


def test_a_transaction_to_be_undone_is_a_failure(own, converted):
    """As after a power failure in the middle of a commit."""
    app, file = own
    journal = Path(f"{file}-journal")
    with closing(dbapi2.connect(file, isolation_level=None)) as service:
        service.execute("PRAGMA cache_size=1")
        service.execute("BEGIN")
        service.execute("CREATE TABLE bookmarks (url)")
        service.execute("INSERT INTO bookmarks VALUES (zeroblob(100000))")
        copies = file.read_bytes(), journal.read_bytes()
    file.write_bytes(copies[0])
    journal.write_bytes(copies[1])
    before = contents(file.parent)
    [_, (level, message)] = problems(app)
    assert (level, "cannot be used" in message) == ("failure", True)
    assert str(journal) in [finding.fix for finding in examine(app) if finding.fix][-1]
    assert contents(file.parent) == before


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
    access = os.access
    monkeypatch.setattr(
        os, "access", lambda path, mode: path not in {file, file.parent} and access(path, mode)
    )
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_flag=os.ST_RDONLY))
    assert f"remount,rw {file.parent}" in only_problem(app, "failure", "read-only")


def test_a_file_of_another_kind_is_a_failure(own, flask):
    app, file = own
    file.write_text("This is not a database. " * 99)
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
    only_problem(app, "failure", "1 broken foreign key, for example in image_data")


def test_a_locked_database_is_a_failure(own, monkeypatch):
    app, file = own
    impatient = ("busy_timeout=50", *sqlite.SQLITE_PRAGMAS[1:])
    monkeypatch.setattr(sqlite, "SQLITE_PRAGMAS", impatient)
    with closing(dbapi2.connect(file, isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode=EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        assert "has it open" in only_problem(app, "failure", "locked")


def test_checks_do_not_wait_for_a_writer(healthy, app):
    with app.app_context(), transaction():
        assert problems(healthy) == []


def test_an_old_sqlite_is_a_failure(healthy, monkeypatch):
    monkeypatch.setattr(sqlite, "MIN_VERSION", (99, 0, 0))
    assert "pysqlite3" in only_problem(healthy, "failure", "can corrupt")


def test_an_ignored_pragma_is_a_failure(healthy, monkeypatch):
    monkeypatch.setitem(sqlite.PRAGMA_VALUES, "FULL", "another number")
    only_problem(healthy, "failure", "settings: synchronous is 2 and not FULL")


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
    assert fix == f"Run: chmod go= {file}*"
    file.chmod(0o640)
    fix = only_problem(app, "warning", f"The group of {file} can read it")
    assert fix == f"Run: chmod g= {file}*"
    file.chmod(0o600)
    assert problems(app) == []


def test_a_log_that_all_users_can_read_is_a_warning(own):
    app, file = own
    file.parent.chmod(0o755)
    with app.app_context(), db.engine.connect() as connection:
        connection.execute(sa.text("SELECT count(*) FROM posts"))
        Path(f"{file}-wal").chmod(0o644)
        assert problems(app) == [("warning", f"All users of this machine can read {file}")]


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
