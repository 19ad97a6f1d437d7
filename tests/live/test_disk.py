"""SQLite on a full disk or in a read-only file: reads continue, and writes recover."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.conftest import POSTGRES
from tests.live.clients import sign_in
from tests.live.conftest import SETTINGS
from tests.live.load import wait_until
from tests.live.sites import ROOT

pytestmark = [
    pytest.mark.skipif(bool(POSTGRES), reason="Postgres has its own disk"),
    pytest.mark.skipif(os.getuid() != 0 and "CI" not in os.environ, reason="only root can mount"),
]
SIZE = 8 * 2**20
CONNECTIONS = 4  # to the database, of two workers with two threads
# Run as root without the capabilities that ignore file permissions.
WITHOUT_OVERRIDE = ("setpriv", "--bounding-set=-dac_override,-dac_read_search")


@pytest.fixture
def disk():
    """A small disk for the database."""
    with tempfile.TemporaryDirectory() as folder:
        mount = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "posting", folder]
        subprocess.run(mount, check=True)
        yield Path(folder)
        subprocess.run(["umount", "--lazy", folder], check=True)


@pytest.fixture
def fresh_url(disk):
    return f"sqlite:///{disk / 'posting.db'}"


@pytest.fixture
def service(serve):
    server = serve(*WITHOUT_OVERRIDE, WEB_CONCURRENCY="2", GUNICORN_CMD_ARGS="--threads 2")
    server.database_answers = False
    return server


@pytest.fixture
def ada(service):
    return sign_in(service.url, "ada")


@pytest.fixture
def write(service, ada):
    body = {"title": "x", "content": "x" * 50_000}
    return lambda: ada.post(f"{service.url}/posts", json=body, timeout=20).status_code


@pytest.fixture
def read(service, ada):
    """Read a public path and one that needs a session; return the statuses."""
    paths = ("/posts?limit=100", "/users/me")
    return lambda: {ada.get(service.url + path, timeout=20).status_code for path in paths}


def test_reads_continue_on_a_full_disk(write, read, disk, database, figure):
    written = 0
    while write() == 201:
        written += 1
    (disk / "ballast").write_bytes(b"x" * (shutil.disk_usage(disk).free // 2))
    for _ in range(10):
        assert write() == 507
        assert read() == {200}
    subprocess.run(["mount", "-o", f"remount,size={2 * SIZE}", disk], check=True)
    for _ in range(10):
        assert write() == 201
        assert read() == {200}
    assert database.exec_driver_sql("SELECT count(*) FROM posts").scalar() == written + 10
    assert database.exec_driver_sql("PRAGMA integrity_check").scalars().all() == ["ok"]
    figure(f"disk full after {written} posts of 50 KB: writes 507, reads 200; then both again")


def test_reads_continue_on_a_read_only_file(service, write, read, disk, figure):
    assert write() == 201
    (disk / "posting.db").chmod(0o444)
    log = service.log.read_text()
    service.process.send_signal(signal.SIGHUP)  # starts workers that open the file read-only
    wait_until(lambda: service.log.read_text().removeprefix(log).count("Worker exiting") == 2)
    for _ in range(10):
        assert read() == {200}
        assert write() == 503
    (disk / "posting.db").chmod(0o644)
    refused = 0
    while write() == 503:
        refused += 1
        assert refused <= CONNECTIONS
    for _ in range(10):
        assert read() == {200}
        assert write() == 201
    figure(f"file read-only: reads 200, writes 503; both again {refused} writes after the change")


@pytest.fixture
def start(disk):
    """Start the service on a database on the disk; return its exit code and the line it prints."""

    def start(file="posting.db", command=("deploy/serve.py",)):
        url = {"POSTING_DATABASE_URL": f"sqlite:///{disk / file}", "PORT": "0"}
        done = subprocess.run(
            [*WITHOUT_OVERRIDE, sys.executable, *command],
            cwd=ROOT,
            env=os.environ | SETTINGS | url,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        [line] = [line for line in done.stderr.splitlines() if " INFO " not in line]
        return done.returncode, line.removeprefix("posting: ")

    return start


UPGRADE = ("-m", "flask", "db", "upgrade")


def test_a_start_with_files_that_cannot_be_written_fails_with_advice(start, disk):
    (disk / "new").mkdir(mode=0o500)
    code, line = start("new/posting.db")
    assert code == 3  # systemd does not restart the service
    assert line == (
        f"SQLite cannot read and write {disk}/new/posting.db (unable to open database file). "
        "Check that user 0 may write this file and its folder."
    )
    assert start("new/posting.db", UPGRADE) == (1, f"Error: {line}")
    (disk / "posting.db").touch(mode=0o400)
    code, line = start()
    assert code == 3
    assert line.startswith(f"SQLite cannot read and write {disk}/posting.db (")
    (disk / "closed" / "inner").mkdir(parents=True)
    (disk / "closed").chmod(0)
    code, line = start("closed/inner/posting.db")
    assert code == 3
    assert line.startswith(f"SQLite cannot read and write {disk}/closed/inner/posting.db (")


def test_a_start_on_a_full_disk_fails_with_advice(start, disk, database):
    (disk / "ballast").write_bytes(b"x" * shutil.disk_usage(disk).free)
    database.close()
    for name in ("posting.db", "new.db"):
        code, line = start(name)
        assert (code, line.partition(" (")[0]) == (3, f"The disk of {disk} is full")
        assert line.endswith("). Free some space.")
        code, line = start(name, UPGRADE)
        assert (code, line.partition(" (")[0]) == (1, f"Error: The disk of {disk} is full")


def test_a_start_on_a_read_only_disk_fails_with_advice(start, disk):
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
    code, line = start()
    assert code == 3
    assert line.startswith(f"{disk} is on a read-only file system (")
    assert line.endswith("). Check the disk for errors.")


COMMANDS = ("users create ada", "users list", "invitations create", "demo", "export {disk}/new/x")


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_on_a_full_disk_fails_with_advice(start, disk, command):
    """The disk has no room for the files that SQLite needs beside the database."""
    url = {"POSTING_DATABASE_URL": f"sqlite:///{disk}/posting.db"}
    upgrade = [sys.executable, *UPGRADE]
    subprocess.run(upgrade, cwd=ROOT, env=os.environ | url, capture_output=True, check=True)
    (disk / "ballast").write_bytes(b"x" * shutil.disk_usage(disk).free)
    code, line = start(command=("-m", "flask", *command.format(disk=disk).split()))
    assert (code, line.partition(" (")[0]) == (1, f"Error: The disk of {disk} is full")


@pytest.mark.parametrize(
    "command",
    [
        "backup {folder}/",
        "backup {folder}/new/",
        "backup {folder}/x",
        "restore {folder}/inner",
        "backup {folder}/inner/",
    ],
)
def test_a_folder_that_may_not_be_entered_is_reported(start, disk, command):
    folder = disk / "closed"
    (folder / "inner").mkdir(parents=True)
    folder.chmod(0)
    arguments = command.format(folder=folder).split()
    code, line = start(command=("-m", "flask", *arguments))
    assert code == 1
    assert line.startswith("Error: ")
    assert str(folder) in line
    assert "Permission denied" in line
