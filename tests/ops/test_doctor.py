"""`flask doctor`: each problem is found and has a fix, and no check raises an error."""

import os
import re
import shutil
from collections import namedtuple
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import click
import pytest
import sqlalchemy as sa
from pysqlite3 import dbapi2 as sqlite

from posting import create_app
from posting.db import engine
from posting.db.engine import db, sqlite_file
from posting.db.models import Post
from posting.db.types import now
from posting.ops import doctor
from posting.ops.doctor import disk, nginx, postgres, schema
from posting.ops.doctor import sqlite as sqlite_checks
from posting.ops.doctor.findings import Level, ok
from tests.conftest import POSTGRES
from tests.helpers import ROOT

on_sqlite = pytest.mark.skipif(bool(POSTGRES), reason="uses SQLite")
on_postgres = pytest.mark.skipif(not POSTGRES, reason="uses Postgres")
GOOD = {
    "PASSWORD_HASH": "scrypt:32768:8:3",
    "RATE_LIMITS": "on",
    "PUBLIC_URL": "https://example.org",
    "PROXY_HOPS": 1,
}
MIB = 2**20
Usage = namedtuple("Usage", "total used free")


@pytest.fixture(autouse=True)
def machine(monkeypatch, tmp_path):
    """A machine with two cores, no nginx and, unless a test changes it, space on every disk."""

    def set_space(free, total=10_000 * MIB):
        usage = Usage(total, total - free, free)
        monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)

    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    monkeypatch.setattr(nginx, "FOLDER", tmp_path / "nginx")
    set_space(5000 * MIB)
    return set_space


def examine(app):
    with app.app_context():
        return list(doctor.examine())


def problems(app):
    """Return the level and message of all findings but ok; assert that each has a fix."""
    found = [finding for finding in examine(app) if finding.level is not Level.OK]
    assert all(finding.fix for finding in found)
    return [(str(finding.level), finding.message) for finding in found]


def only_problem(app, level, part):
    """Assert that there is one problem, with `part` in its message; return its fix."""
    [(found, message)] = problems(app)
    assert found == level
    assert part in message
    return next(finding.fix for finding in examine(app) if finding.level is not Level.OK)


@pytest.fixture
def healthy(make_app):
    return make_app(**GOOD)


@pytest.fixture
def own(make_app, tmp_path):
    """A healthy service with a database file of its own, and that file."""
    path = tmp_path / "posting.db"
    app = make_app(DATABASE_URL=f"sqlite:///{path}", **GOOD)
    path.chmod(0o600)
    return app, path


def unstarted(**settings):
    """An app as `flask` creates it for a command, which does not connect to the database."""
    with click.Context(click.Command("flask")):
        return create_app({"TESTING": True} | GOOD | settings)


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


@pytest.mark.parametrize(
    ("settings", "level", "part", "fix"),
    [
        ({"PASSWORD_HASH": "scrypt:32768:8:1"}, "failure", "guessing", "PASSWORD_HASH"),
        ({"RATE_LIMITS": "off"}, "warning", "not limited", "POSTING_RATE_LIMITS"),
        ({"LIMIT_SIGNIN": ""}, "warning", "not limited", "POSTING_LIMIT_SIGNIN"),
        ({"PUBLIC_URL": "", "PROXY_HOPS": 0}, "warning", "no public URL", "POSTING_PUBLIC_URL"),
        ({"PUBLIC_URL": "http://example.org"}, "warning", "can be read on the network", "HTTPS"),
        ({"PROXY_HOPS": 0}, "warning", "share its address", "POSTING_PROXY_HOPS=1"),
    ],
)
def test_unsafe_settings(make_app, settings, level, part, fix):
    assert fix in only_problem(make_app(**GOOD | settings), level, part)


def test_proxies_without_a_public_url(make_app):
    levels = [level for level, _ in problems(make_app(**GOOD | {"PUBLIC_URL": ""}))]
    assert levels == ["warning", "warning"]


@pytest.mark.parametrize("parameters", ["131072:8:1", "65536:8:2", "16384:8:5", "8192:8:10"])
def test_every_hash_on_the_owasp_list_is_ok(make_app, parameters):
    assert problems(make_app(**GOOD | {"PASSWORD_HASH": f"scrypt:{parameters}"})) == []


@pytest.mark.parametrize("url", ["http://localhost:8000", "http://127.0.0.1", "http://[::1]:80"])
def test_http_is_ok_on_loopback(make_app, url):
    assert problems(make_app(**GOOD | {"PUBLIC_URL": url})) == []


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
    assert disk._expected_owner(Path("/folder/file")) == expected


def test_an_unreachable_database_is_one_failure(flask):
    app = unstarted(DATABASE_URL="postgresql://postgres:hidden@127.0.0.1:9/nothing")
    assert "POSTING_DATABASE_URL" in only_problem(app, "failure", "cannot be used")
    code, output = flask("doctor", on=app)
    assert code == 1
    assert "hidden" not in output


def test_a_database_in_memory_is_a_warning(make_app):
    only_problem(make_app(DATABASE_URL="sqlite://", **GOOD), "warning", "in memory")


def test_an_old_schema_is_a_failure(healthy, monkeypatch):
    monkeypatch.setattr(schema, "head_revision", lambda: "9999")
    assert only_problem(healthy, "failure", "not at 9999") == "Run: flask db upgrade"


def test_a_newer_schema_is_a_failure(healthy, monkeypatch):
    monkeypatch.setattr(schema, "head_revision", lambda: "0000")
    monkeypatch.setattr(schema, "known_revisions", lambda: frozenset({"0000"}))
    fix = only_problem(healthy, "failure", "a newer one upgraded it")
    assert ("pg_restore" if POSTGRES else "flask restore --force FILE") in fix


def test_a_database_without_a_schema_is_a_failure(healthy, monkeypatch):
    monkeypatch.setattr(schema, "database_revisions", lambda _: [])
    assert only_problem(healthy, "failure", "at none") == "Run: flask db upgrade"


@on_sqlite
@pytest.mark.parametrize(("free", "level"), [(99, "failure"), (999, "warning")])
def test_little_disk_space_is_found(healthy, machine, free, level):
    machine(free * MIB, 2000 * MIB)
    assert (level, f"{free} MiB free") in [
        (level, message.partition(" has ")[2]) for level, message in problems(healthy)
    ]


@on_sqlite
def test_less_than_a_twentieth_of_a_large_disk_is_a_warning(healthy, machine):
    machine(4000 * MIB, 100_000 * MIB)
    only_problem(healthy, "warning", "4,000 MiB free")


def test_little_space_for_uploads_is_found(healthy, machine):
    machine(99 * MIB)
    assert any("little space for uploads" in message for _, message in problems(healthy))


class TestNginx:
    @pytest.fixture
    def site(self):
        """Write the shipped site with another body limit."""
        shipped = (ROOT / "deploy" / "nginx.conf").read_text()
        folder = nginx.FOLDER / "sites-enabled"
        folder.mkdir(parents=True)
        (nginx.FOLDER / "nginx.conf").write_text("http { client_max_body_size 9m; }")

        def write(limit, text=shipped):
            text, count = re.subn(r"client_max_body_size \d+m;", limit, text)
            assert count
            (folder / "posting").write_text(text)

        return write

    @pytest.mark.parametrize("limit", ["client_max_body_size 6m;", "client_max_body_size 1G;", ""])
    def test_a_sufficient_limit_is_ok(self, healthy, site, limit):
        site(limit)
        assert problems(healthy) == []
        assert ok("nginx accepts forms of 6,291,456 bytes") in examine(healthy)

    @pytest.mark.parametrize(
        ("limit", "found"),
        [
            ("client_max_body_size 6m;", "6,291,456"),
            ("client_max_body_size 9000K ;", "9,216,000"),
            ("# client_max_body_size 90m;", "9,437,184"),
        ],
    )
    def test_a_limit_below_that_of_the_service_is_a_warning(self, make_app, site, limit, found):
        site(limit)
        app = make_app(**GOOD, MAX_IMAGE_BYTES=10 * MIB)
        message = f"nginx rejects bodies over {found} bytes, but forms may have 11,534,336"
        fix = only_problem(app, "warning", message)
        assert fix.startswith(f"Set client_max_body_size 11m; in {nginx.FOLDER}/sites-enabled")

    def test_other_sites_are_ignored(self, make_app, site):
        site("", "server { client_max_body_size 1m; proxy_pass http://other; }")
        assert problems(make_app(**GOOD, MAX_IMAGE_BYTES=10 * MIB)) == []

    def test_other_servers_in_the_same_file_are_ignored(self, healthy, site):
        shipped = (ROOT / "deploy" / "nginx.conf").read_text()
        other = "server { client_max_body_size 1k; location / { proxy_pass http://other; } }\n"
        site("client_max_body_size 6m;", other + shipped + other)
        assert problems(healthy) == []

    def test_the_name_of_the_upstream_is_read_from_the_file(self, make_app, site):
        shipped = (ROOT / "deploy" / "nginx.conf").read_text()
        renamed = shipped.replace("upstream posting ", "upstream community ")
        site("", renamed.replace("http://posting;", "http://community;"))
        app = make_app(**GOOD, MAX_IMAGE_BYTES=10 * MIB)
        only_problem(app, "warning", "nginx rejects bodies over 9,437,184 bytes")

    def test_a_site_that_cannot_be_read_is_ignored(self, healthy, site):
        site("")
        (nginx.FOLDER / "sites-enabled" / "away").symlink_to("/nowhere/at/all")
        assert problems(healthy) == []


@on_sqlite
class TestSqlite:
    def test_a_missing_database_is_a_failure_and_not_created(self, tmp_path):
        app = unstarted(DATABASE_URL=f"sqlite:///{tmp_path / 'posting.db'}")
        assert only_problem(app, "failure", "no database") == "Run: flask db upgrade"
        assert list(tmp_path.iterdir()) == []

    def test_a_missing_folder_is_a_failure(self, own):
        app, file = own
        shutil.rmtree(file.parent)
        assert {level for level, _ in problems(app)} == {"failure"}

    def test_an_empty_file_needs_an_upgrade_and_stays_empty(self, own):
        app, file = own
        file.write_bytes(b"")
        assert only_problem(app, "failure", "no database") == "Run: flask db upgrade"
        assert file.read_bytes() == b""

    def test_a_database_not_in_wal_mode_is_not_converted(self, own):
        app, file = own
        file.unlink()
        with closing(sqlite.connect(file)) as connection:
            connection.execute("CREATE TABLE bookmarks (url)")
        file.chmod(0o600)
        before = file.read_bytes()
        only_problem(app, "warning", f"{file} is not in WAL mode")
        assert file.read_bytes() == before
        assert [each.name for each in file.parent.iterdir()] == [file.name]

    def test_a_folder_is_a_failure(self, own):
        app, file = own
        file.unlink()
        file.mkdir()
        assert "POSTING_DATABASE_URL" in only_problem(app, "failure", f"{file} is a folder")

    def test_a_read_only_url_is_a_failure(self, own):
        _, file = own
        app = unstarted(DATABASE_URL=f"sqlite:///file:{file}?mode=ro&uri=true")
        assert "mode=ro" in only_problem(app, "failure", "read-only")

    def test_a_read_only_file_system_is_a_failure(self, own, monkeypatch):
        app, file = own
        monkeypatch.setattr(os, "access", lambda *_: False)
        monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_flag=os.ST_RDONLY))
        assert f"remount,rw {file.parent}" in only_problem(app, "failure", "read-only")

    def test_a_file_of_another_kind_is_a_failure(self, own, flask):
        app, file = own
        file.write_text("This is no database. " * 99)
        assert "flask restore --force" in only_problem(app, "failure", "file is not a database")
        assert flask("doctor", on=app)[0] == 1

    def test_a_damaged_database_is_a_failure(self, own):
        app, file = own
        with file.open("r+b") as pages:
            pages.seek(4096 * 4)
            pages.write(b"scribble" * 512)
        assert {level for level, _ in problems(app)} == {"failure"}

    def test_broken_foreign_keys_are_a_failure(self, own):
        app, file = own
        with closing(sqlite.connect(file)) as connection:
            connection.execute("INSERT INTO image_data VALUES ('there-is-no-such-one', x'00')")
            connection.commit()
        only_problem(app, "failure", "foreign keys are broken, for example in image_data")

    def test_a_locked_database_is_a_failure(self, own, monkeypatch):
        app, file = own
        impatient = ("busy_timeout=50", *engine.SQLITE_PRAGMAS[1:])
        monkeypatch.setattr(engine, "SQLITE_PRAGMAS", impatient)
        with closing(sqlite.connect(file, isolation_level=None)) as other:
            other.execute("PRAGMA locking_mode=EXCLUSIVE")
            other.execute("BEGIN EXCLUSIVE")
            assert "has it open" in only_problem(app, "failure", "locked")

    def test_checks_do_not_wait_for_a_writer(self, healthy, app):
        with app.app_context(), db.engine.begin():
            assert problems(healthy) == []

    def test_an_old_sqlite_is_a_failure(self, healthy, monkeypatch):
        monkeypatch.setattr(sqlite_checks, "MIN_VERSION", (99, 0, 0))
        assert "pysqlite3" in only_problem(healthy, "failure", "can corrupt")

    def test_an_ignored_pragma_is_a_failure(self, healthy, monkeypatch):
        monkeypatch.setattr(
            sqlite_checks, "SQLITE_PRAGMAS", ("journal_mode=TRUNCATE", "foreign_keys=ON")
        )
        only_problem(healthy, "failure", "settings: journal_mode is wal and not TRUNCATE")

    def test_the_file_is_shown_with_its_mode(self, own):
        app, file = own
        file.chmod(0o640)
        assert ok(f"The database is in {file}, mode 0640") in examine(app)

    def test_a_file_of_another_user_is_a_warning(self, own, monkeypatch):
        app, file = own
        monkeypatch.setattr(disk, "_expected_owner", lambda path: 1 if path == file else None)
        fix = only_problem(app, "warning", f"{file} belongs to another user")
        assert fix == f"Run: chown 1 {file}"

    def test_a_file_that_all_users_can_read_is_a_warning(self, own):
        app, file = own
        file.chmod(0o644)
        assert problems(app) == []  # no other user can enter its folder
        file.parent.chmod(0o755)
        fix = only_problem(app, "warning", "All users of this machine can read")
        assert fix == f"Run: chmod o= {file}*"

    def test_a_file_that_cannot_be_written_is_a_failure(self, own, monkeypatch):
        app, file = own
        monkeypatch.setattr(os, "access", lambda path, _: path != file)
        assert (
            only_problem(app, "failure", "cannot be read and written") == f"Run: chmod u+rw {file}"
        )
        me = os.geteuid() + 1
        monkeypatch.setattr(os, "geteuid", lambda: me)
        fix = next(each.fix for each in examine(app) if "cannot be read" in each.message)
        assert f"chown {me} {file}" in fix

    def test_a_file_that_cannot_be_opened_is_a_failure(self, own, monkeypatch):
        app, file = own

        def refuse(*_, **__):
            raise PermissionError(13, "Permission denied", str(file))

        monkeypatch.setattr(Path, "open", refuse)
        only_problem(app, "failure", f"Permission denied: '{file}'")

    def test_a_large_log_is_a_warning(self, app, healthy, monkeypatch):
        monkeypatch.setattr(disk, "MAX_WAL_BYTES", -1)
        with healthy.app_context(), db.engine.connect():
            log = f"{sqlite_file()}-wal"
            assert "Restart" in only_problem(healthy, "warning", log)

    def test_posts_from_the_future_are_a_warning(self, app, healthy):
        with app.app_context():
            db.session.add(Post(title="x", content="x", created_at=now() + timedelta(days=1)))
            db.session.commit()
        assert "timedatectl" in only_problem(healthy, "warning", "in the future")

    @pytest.mark.parametrize("timestamp", ["zzz", 5])
    def test_an_invalid_value_is_a_failure(self, own, timestamp):
        app, file = own
        with app.app_context():
            db.session.add(Post(title="x", content="x"))
            db.session.commit()
        with closing(sqlite.connect(file)) as connection:
            connection.execute("UPDATE posts SET created_at = ?", [timestamp])
            connection.commit()
        assert "Correct" in only_problem(app, "failure", "holds an invalid value")

    def test_a_reset_clock_is_a_warning(self, healthy, monkeypatch):
        monkeypatch.setattr(sqlite_checks, "now", lambda: now().replace(year=1970))
        only_problem(healthy, "warning", "1970")


@on_postgres
class TestPostgres:
    def test_an_old_server_is_a_failure(self, healthy, monkeypatch):
        monkeypatch.setattr(postgres, "MIN_VERSION", (99,))
        only_problem(healthy, "failure", "too old")

    def test_another_encoding_is_a_failure(self, healthy, monkeypatch):
        real = postgres._setting
        monkeypatch.setattr(
            postgres, "_setting", lambda c, n: "SQL_ASCII" if n == "server_encoding" else real(c, n)
        )
        only_problem(healthy, "failure", "SQL_ASCII")

    @pytest.fixture
    def on_connect(self, healthy):
        """Run a statement on each new connection of the healthy service."""

        def on_connect(statement):
            def listen(connection, _record):
                connection.execute(statement)
                connection.commit()

            with healthy.app_context():
                sa.event.listen(db.engine, "connect", listen)

        return on_connect

    def test_a_read_only_server_is_a_failure(self, healthy, on_connect):
        on_connect("SET default_transaction_read_only = on")
        fix = only_problem(healthy, "failure", "accepts no writes")
        assert "default_transaction_read_only" in fix

    def test_a_standby_is_a_failure(self, healthy):
        def stand_by(_connection, _cursor, statement, parameters, *_):
            return statement.replace("pg_is_in_recovery()", "true"), parameters

        with healthy.app_context():
            sa.event.listen(db.engine, "before_cursor_execute", stand_by, retval=True)
        assert "POSTING_DATABASE_URL" in only_problem(healthy, "failure", "standby")

    def test_missing_privileges_are_a_failure(self, healthy, on_connect):
        on_connect("SET ROLE pg_read_all_data")
        fix = only_problem(healthy, "failure", "pg_read_all_data may not write comments, id")
        assert fix.startswith("As their owner, run: GRANT SELECT, INSERT, UPDATE, DELETE ON com")
        assert fix.endswith(' TO "pg_read_all_data"')

    def test_missing_tables_need_no_privileges(self, empty_url):
        app = unstarted(DATABASE_URL=empty_url)
        assert only_problem(app, "failure", "at none") == "Run: flask db upgrade"
        with app.app_context():
            db.engine.dispose()

    def test_other_timeouts_are_a_warning(self, healthy, monkeypatch):
        monkeypatch.setattr(postgres, "POSTGRES_TIMEOUTS", {"lock_timeout": 1, "work_mem": 4096})
        only_problem(healthy, "warning", "lock_timeout is 5000 ms")

    def test_too_few_connections_are_a_warning(self, healthy, monkeypatch):
        monkeypatch.setattr(os, "cpu_count", lambda: 100_000)
        fix = only_problem(healthy, "warning", "100,000 cores")
        assert "WEB_CONCURRENCY" in fix

    @pytest.mark.parametrize(("seconds", "level"), [(10, "warning"), (100, "failure")])
    def test_clocks_that_differ_are_found(self, healthy, monkeypatch, seconds, level):
        monkeypatch.setattr(postgres, "now", lambda: now() + timedelta(seconds=seconds))
        only_problem(healthy, level, "differ by")

    def test_a_failed_query_hides_no_other_finding(self, healthy, monkeypatch):
        def fail(connection):
            return connection.execute(sa.text("SELECT 1 FROM missing_table"))

        monkeypatch.setattr(postgres, "CHECKS", (fail, *postgres.CHECKS))
        only_problem(healthy, "failure", "A query failed")
        assert ok("Postgres checks its data files itself") in examine(healthy)
