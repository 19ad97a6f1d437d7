"""SQLite on a full disk or in a read-only file: reads continue, and writes recover."""

import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

import pytest

from tests.conftest import POSTGRES
from tests.live.clients import sign_in
from tests.live.load import wait_until

pytestmark = [
    pytest.mark.skipif(bool(POSTGRES), reason="Postgres has its own disk"),
    pytest.mark.skipif(os.getuid() != 0 and "CI" not in os.environ, reason="only root can mount"),
]
SIZE = 8 * 2**20
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
        assert write() == 503
        assert read() == {200}
    subprocess.run(["mount", "-o", f"remount,size={2 * SIZE}", disk], check=True)
    for _ in range(10):
        assert write() == 201
        assert read() == {200}
    assert database.exec_driver_sql("SELECT count(*) FROM posts").scalar() == written + 10
    assert database.exec_driver_sql("PRAGMA integrity_check").scalars().all() == ["ok"]
    figure(f"disk full after {written} posts of 50 KB: writes 503, reads 200; then both again")


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
    took = wait_until(lambda: write() == 201, seconds=5)
    for _ in range(10):
        assert read() == {200}
        assert write() == 201
    figure(f"file read-only: reads 200, writes 503; both again {took:.2f} s after it is writable")
