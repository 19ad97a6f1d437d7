"""`flask doctor`: it finds what is wrong, names the cure, and never fails itself."""

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

on_sqlite = pytest.mark.skipif(bool(POSTGRES), reason="asks SQLite")
on_postgres = pytest.mark.skipif(not POSTGRES, reason="asks Postgres")
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
    """A machine with two cores and, unless a test says else, room on every disk, and no nginx."""

    def room(free, total=10_000 * MIB):
        usage = Usage(total, total - free, free)
        monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)

    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    monkeypatch.setattr(nginx, "FOLDER", tmp_path / "nginx")
    room(5000 * MIB)
    return room


def examine(app):
    with app.app_context():
        return list(doctor.examine())


def troubles(app):
    """Return what is not ok, and make sure that it has a cure."""
    found = [finding for finding in examine(app) if finding.level is not Level.OK]
    assert all(finding.cure for finding in found)
    return [(str(finding.level), finding.what) for finding in found]


def trouble(app, level, part):
    """Assert that one thing alone is wrong; return its cure."""
    [(found, what)] = troubles(app)
    assert found == level
    assert part in what
    return next(finding.cure for finding in examine(app) if finding.level is not Level.OK)


@pytest.fixture
def healthy(make_app):
    return make_app(**GOOD)


@pytest.fixture
def own(make_app, tmp_path):
    """A healthy service with a database file that only this test has; that file."""
    path = tmp_path / "posting.db"
    app = make_app(DATABASE_URL=f"sqlite:///{path}", **GOOD)
    path.chmod(0o600)
    return app, path


def unstarted(**settings):
    """An app as `flask` makes it for a command, which does not look at the database yet."""
    with click.Context(click.Command("flask")):
        return create_app({"TESTING": True} | GOOD | settings)


def test_nothing_is_wrong(healthy, flask):
    assert troubles(healthy) == []
    code, output = flask("doctor", on=healthy)
    assert code == 0
    assert all(line.startswith("ok       ") for line in output.splitlines())


def test_warnings_are_no_failure_and_have_their_cure_below(make_app, flask):
    code, output = flask("doctor", on=make_app(**GOOD | {"RATE_LIMITS": "off"}))
    assert code == 0
    expected = (
        "warning  Nothing limits who guesses passwords\n         Remove POSTING_RATE_LIMITS.\n"
    )
    assert expected in output


def test_a_failure_is_told_by_the_exit_code(make_app, flask):
    code, output = flask("doctor", on=make_app(**GOOD | {"PASSWORD_HASH": "scrypt:1024:8:1"}))
    assert code == 1
    assert "\nfailure  Passwords are hashed with scrypt:1024:8:1" in output


@pytest.mark.parametrize(
    ("settings", "level", "part", "cure"),
    [
        ({"PASSWORD_HASH": "scrypt:32768:8:1"}, "failure", "guessing", "PASSWORD_HASH"),
        ({"RATE_LIMITS": "off"}, "warning", "Nothing limits", "POSTING_RATE_LIMITS"),
        ({"LIMIT_SIGNIN": ""}, "warning", "Nothing limits", "POSTING_LIMIT_SIGNIN"),
        ({"PUBLIC_URL": "", "PROXY_HOPS": 0}, "warning", "no public URL", "POSTING_PUBLIC_URL"),
        ({"PUBLIC_URL": "http://example.org"}, "warning", "on the way", "https"),
        ({"PROXY_HOPS": 0}, "warning", "share its address", "POSTING_PROXY_HOPS=1"),
    ],
)
def test_settings_that_are_unwise(make_app, settings, level, part, cure):
    assert cure in trouble(make_app(**GOOD | settings), level, part)


def test_proxies_without_a_public_url(make_app):
    levels = [level for level, _ in troubles(make_app(**GOOD | {"PUBLIC_URL": ""}))]
    assert levels == ["warning", "warning"]


@pytest.mark.parametrize("parameters", ["131072:8:1", "65536:8:2", "16384:8:5", "8192:8:10"])
def test_every_hash_that_owasp_lists_is_good(make_app, parameters):
    assert troubles(make_app(**GOOD | {"PASSWORD_HASH": f"scrypt:{parameters}"})) == []


@pytest.mark.parametrize("url", ["http://localhost:8000", "http://127.0.0.1", "http://[::1]:80"])
def test_http_is_good_for_oneself(make_app, url):
    assert troubles(make_app(**GOOD | {"PUBLIC_URL": url})) == []


@pytest.mark.parametrize(
    ("asks", "owner", "folder", "wanted"),
    [
        (1000, 1000, 1000, None),
        (1000, 0, 1000, None),
        (1000, 1001, 1000, 1000),
        (0, 1001, 1001, None),
        (0, 1001, 0, None),
        (0, 0, 1001, 1001),
    ],
)
def test_who_should_own_a_file(monkeypatch, asks, owner, folder, wanted):
    def status(path):
        uid = owner if path.name == "posting.db" else folder
        return os.stat_result((0o100600, 0, 0, 1, uid, 0, 0, 0, 0, 0))

    monkeypatch.setattr(os, "geteuid", lambda: asks)
    monkeypatch.setattr(Path, "stat", status)
    assert disk._owner_wanted(Path("/folder/posting.db")) == wanted


def test_a_database_that_is_away_is_one_failure(flask):
    app = unstarted(DATABASE_URL="postgresql://postgres:hidden@127.0.0.1:9/nothing")
    assert "POSTING_DATABASE_URL" in trouble(app, "failure", "cannot be used")
    code, output = flask("doctor", on=app)
    assert code == 1
    assert "hidden" not in output


def test_a_database_in_memory_is_told(make_app):
    trouble(make_app(DATABASE_URL="sqlite://", **GOOD), "warning", "in memory")


def test_an_old_schema_is_told(healthy, monkeypatch):
    monkeypatch.setattr(schema, "newest", lambda: "9999")
    assert trouble(healthy, "failure", "not at 9999") == "Run: flask db upgrade"


def test_a_newer_schema_is_told(healthy, monkeypatch):
    monkeypatch.setattr(schema, "newest", lambda: "0000")
    monkeypatch.setattr(schema, "known", lambda: frozenset({"0000"}))
    cure = trouble(healthy, "failure", "newer code made it")
    assert ("pg_restore" if POSTGRES else "flask restore --force FILE") in cure


def test_a_database_that_was_never_migrated(healthy, monkeypatch):
    monkeypatch.setattr(schema, "revisions", lambda _: [])
    assert trouble(healthy, "failure", "at none") == "Run: flask db upgrade"


@on_sqlite
@pytest.mark.parametrize(("free", "level"), [(99, "failure"), (999, "warning")])
def test_a_full_disk_is_told(healthy, machine, free, level):
    machine(free * MIB, 2000 * MIB)
    assert (level, f"{free} MiB free") in [
        (level, what.partition(" has ")[2]) for level, what in troubles(healthy)
    ]


@on_sqlite
def test_a_large_disk_is_full_at_a_twentieth(healthy, machine):
    machine(4000 * MIB, 100_000 * MIB)
    trouble(healthy, "warning", "4,000 MiB free")


def test_room_for_uploads_is_looked_at(healthy, machine):
    machine(99 * MIB)
    assert any("little room for uploads" in what for _, what in troubles(healthy))


class TestNginx:
    @pytest.fixture
    def site(self):
        """Write the shipped site with another limit of bodies than it has."""
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
    def test_a_limit_that_fits_is_well(self, healthy, site, limit):
        site(limit)
        assert troubles(healthy) == []
        assert "nginx takes forms of 6,291,456 bytes" in [each.what for each in examine(healthy)]

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
        what = f"nginx refuses bodies over {found} bytes, and forms may have 11,534,336"
        cure = trouble(app, "warning", what)
        assert cure.startswith(f"Write client_max_body_size 11m; into {nginx.FOLDER}/sites-enabled")

    def test_other_sites_are_none_of_ours(self, make_app, site):
        site("", "server { client_max_body_size 1m; proxy_pass http://other; }")
        assert troubles(make_app(**GOOD, MAX_IMAGE_BYTES=10 * MIB)) == []

    def test_a_site_that_cannot_be_read_is_passed_over(self, healthy, site):
        site("")
        (nginx.FOLDER / "sites-enabled" / "away").symlink_to("/nowhere/at/all")
        assert troubles(healthy) == []


@on_sqlite
class TestSqlite:
    def test_a_missing_database_is_told_and_not_made(self, tmp_path):
        app = unstarted(DATABASE_URL=f"sqlite:///{tmp_path / 'posting.db'}")
        assert trouble(app, "failure", "no database") == "Run: flask db upgrade"
        assert list(tmp_path.iterdir()) == []

    def test_a_missing_folder_is_told(self, own):
        app, file = own
        shutil.rmtree(file.parent)
        assert {level for level, _ in troubles(app)} == {"failure"}

    def test_an_empty_file_wants_an_upgrade_and_stays_empty(self, own):
        app, file = own
        file.write_bytes(b"")
        assert trouble(app, "failure", "no database") == "Run: flask db upgrade"
        assert file.read_bytes() == b""

    def test_a_database_that_the_service_has_not_used_stays_as_it_is(self, own):
        app, file = own
        file.unlink()
        with closing(sqlite.connect(file)) as connection:
            connection.execute("CREATE TABLE bookmarks (url)")
        file.chmod(0o600)
        before = file.read_bytes()
        trouble(app, "warning", f"The service has not used {file} yet")
        assert file.read_bytes() == before
        assert [each.name for each in file.parent.iterdir()] == [file.name]

    def test_a_folder_is_no_database(self, own):
        app, file = own
        file.unlink()
        file.mkdir()
        assert "POSTING_DATABASE_URL" in trouble(app, "failure", f"{file} is a folder")

    def test_a_url_for_reading_only_is_told(self, own):
        _, file = own
        app = unstarted(DATABASE_URL=f"sqlite:///file:{file}?mode=ro&uri=true")
        assert "mode=ro" in trouble(app, "failure", "for reading only")

    def test_a_file_system_for_reading_only_is_told(self, own, monkeypatch):
        app, file = own
        monkeypatch.setattr(os, "access", lambda *_: False)
        monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_flag=os.ST_RDONLY))
        assert f"remount,rw {file.parent}" in trouble(app, "failure", "for reading only")

    def test_a_file_that_is_no_database_is_told(self, own, flask):
        app, file = own
        file.write_text("This is no database. " * 99)
        assert "flask restore --force" in trouble(app, "failure", "file is not a database")
        assert flask("doctor", on=app)[0] == 1

    def test_damage_is_told(self, own):
        app, file = own
        with file.open("r+b") as pages:
            pages.seek(4096 * 4)
            pages.write(b"scribble" * 512)
        assert {level for level, _ in troubles(app)} == {"failure"}

    def test_orphans_are_told(self, own):
        app, file = own
        with closing(sqlite.connect(file)) as connection:
            connection.execute("INSERT INTO image_data VALUES ('there-is-no-such-one', x'00')")
            connection.commit()
        trouble(app, "failure", "foreign keys are broken, as in image_data")

    def test_a_lock_that_stays_is_told(self, own, monkeypatch):
        app, file = own
        hurry = ("busy_timeout=50", *engine.SQLITE_PRAGMAS[1:])
        monkeypatch.setattr(engine, "SQLITE_PRAGMAS", hurry)
        with closing(sqlite.connect(file, isolation_level=None)) as other:
            other.execute("PRAGMA locking_mode=EXCLUSIVE")
            other.execute("BEGIN EXCLUSIVE")
            assert "holds it open" in trouble(app, "failure", "locked")

    def test_a_writer_is_waited_for_by_nobody(self, healthy, app):
        with app.app_context(), db.engine.begin():
            assert troubles(healthy) == []

    def test_an_old_library_is_told(self, healthy, monkeypatch):
        monkeypatch.setattr(sqlite_checks, "LEAST_VERSION", (99, 0, 0))
        assert "pysqlite3" in trouble(healthy, "failure", "may damage")

    def test_a_pragma_without_effect_is_told(self, healthy, monkeypatch):
        monkeypatch.setattr(
            sqlite_checks, "SQLITE_PRAGMAS", ("journal_mode=TRUNCATE", "foreign_keys=ON")
        )
        trouble(healthy, "failure", "told: journal_mode is wal and not TRUNCATE")

    def test_a_file_that_everybody_may_read_is_told(self, own):
        app, file = own
        file.chmod(0o644)
        assert troubles(app) == []  # nobody else may enter its folder
        file.parent.chmod(0o755)
        cure = trouble(app, "warning", "Everybody on this machine may read")
        assert cure == f"Run: chmod o= {file}*"

    def test_a_file_of_another_user_is_a_warning(self, own, monkeypatch):
        app, file = own
        monkeypatch.setattr(disk, "_owner_wanted", lambda path: 1 if path == file else None)
        assert trouble(app, "warning", "belongs to another user") == f"Run: chown 1 {file}"

    def test_a_file_that_cannot_be_written_is_told(self, own, monkeypatch):
        app, file = own
        monkeypatch.setattr(os, "access", lambda path, _: path != file)
        assert trouble(app, "failure", "cannot be written") == f"Run: chmod u+rw {file}"
        me = os.geteuid() + 1
        monkeypatch.setattr(os, "geteuid", lambda: me)
        cure = next(each.cure for each in examine(app) if "cannot be written" in each.what)
        assert f"chown {me} {file}" in cure

    def test_a_file_that_cannot_be_opened_is_told(self, own, monkeypatch):
        app, file = own

        def refuse(*_):
            raise PermissionError(13, "Permission denied", str(file))

        monkeypatch.setattr(Path, "open", refuse)
        trouble(app, "failure", f"Permission denied: '{file}'")

    def test_a_large_log_is_told(self, app, healthy, monkeypatch):
        monkeypatch.setattr(disk, "LARGE_WAL", -1)
        with healthy.app_context(), db.engine.connect():
            log = f"{sqlite_file()}-wal"
            assert "Restart" in trouble(healthy, "warning", log)

    def test_posts_of_the_future_are_told(self, app, healthy):
        with app.app_context():
            db.session.add(Post(title="x", content="x", created_at=now() + timedelta(days=1)))
            db.session.commit()
        assert "timedatectl" in trouble(healthy, "warning", "later than now")

    @pytest.mark.parametrize("moment", ["zzz", 5])
    def test_a_value_that_cannot_be_read_is_told(self, own, moment):
        app, file = own
        with app.app_context():
            db.session.add(Post(title="x", content="x"))
            db.session.commit()
        with closing(sqlite.connect(file)) as connection:
            connection.execute("UPDATE posts SET created_at = ?", [moment])
            connection.commit()
        assert "Mend" in trouble(app, "failure", "holds what cannot be read")

    def test_a_clock_that_began_anew_is_told(self, healthy, monkeypatch):
        monkeypatch.setattr(sqlite_checks, "now", lambda: now().replace(year=1970))
        trouble(healthy, "warning", "1970")


@on_postgres
class TestPostgres:
    def test_an_old_server_is_told(self, healthy, monkeypatch):
        monkeypatch.setattr(postgres, "LEAST_VERSION", (99,))
        trouble(healthy, "failure", "too old")

    def test_another_encoding_is_told(self, healthy, monkeypatch):
        real = postgres._setting
        monkeypatch.setattr(
            postgres, "_setting", lambda c, n: "SQL_ASCII" if n == "server_encoding" else real(c, n)
        )
        trouble(healthy, "failure", "SQL_ASCII")

    @pytest.fixture
    def tell(self, healthy):
        """Tell each new connection of the healthy service something."""

        def tell(statement):
            def listen(connection, _record):
                connection.execute(statement)
                connection.commit()

            with healthy.app_context():
                sa.event.listen(db.engine, "connect", listen)

        return tell

    def test_a_server_for_reading_only_is_told(self, healthy, tell):
        tell("SET default_transaction_read_only = on")
        cure = trouble(healthy, "failure", "takes no writes")
        assert "default_transaction_read_only" in cure

    def test_a_standby_is_told(self, healthy):
        def stand_by(_connection, _cursor, statement, parameters, *_):
            return statement.replace("pg_is_in_recovery()", "true"), parameters

        with healthy.app_context():
            sa.event.listen(db.engine, "before_cursor_execute", stand_by, retval=True)
        assert "POSTING_DATABASE_URL" in trouble(healthy, "failure", "standby")

    def test_tables_that_may_not_be_written_are_told(self, healthy, tell):
        tell("SET ROLE pg_read_all_data")
        cure = trouble(healthy, "failure", "pg_read_all_data may not write comments, id")
        assert cure.startswith("As their owner run: GRANT SELECT, INSERT, UPDATE, DELETE ON com")
        assert cure.endswith(' TO "pg_read_all_data"')

    def test_a_schema_that_is_not_there_has_nothing_to_be_written(self, empty_url):
        app = unstarted(DATABASE_URL=empty_url)
        assert trouble(app, "failure", "at none") == "Run: flask db upgrade"
        with app.app_context():
            db.engine.dispose()

    def test_other_timeouts_are_told(self, healthy, monkeypatch):
        monkeypatch.setattr(postgres, "POSTGRES_TIMEOUTS", {"lock_timeout": 1, "work_mem": 4096})
        trouble(healthy, "warning", "lock_timeout is 5000 ms")

    def test_too_few_connections_are_told(self, healthy, monkeypatch):
        monkeypatch.setattr(os, "cpu_count", lambda: 100_000)
        cure = trouble(healthy, "warning", "100,000 cores")
        assert "WEB_CONCURRENCY" in cure

    @pytest.mark.parametrize(("seconds", "level"), [(10, "warning"), (100, "failure")])
    def test_clocks_that_differ_are_told(self, healthy, monkeypatch, seconds, level):
        monkeypatch.setattr(postgres, "now", lambda: now() + timedelta(seconds=seconds))
        trouble(healthy, level, "differ by")

    def test_a_query_that_fails_hides_no_other_finding(self, healthy, monkeypatch):
        def fails(connection):
            return connection.execute(sa.text("SELECT 1 FROM there_is_none"))

        monkeypatch.setattr(postgres, "CHECKS", (fails, *postgres.CHECKS))
        trouble(healthy, "failure", "does not answer")
        assert ok("Postgres looks after its own pages") in examine(healthy)
