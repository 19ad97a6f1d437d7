"""The files of an SQLite database: the service leaves them to SQLite, and notices if they move."""

import os
import stat
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

import pytest

from posting.db.base import db
from posting.db.engine import close_connections, sqlite_file
from posting.testbed import sign_in
from tests.conftest import POSTGRES
from tests.helpers import ROOT
from tests.helpers.assertions import assert_problem

pytestmark = pytest.mark.skipif(bool(POSTGRES), reason="is for SQLite")
POST = {"title": "a", "content": "b"}
SIDECARS = ("-wal", "-shm")

# Start a service on a new file, use it by requests and by commands within its process, and print
# the files that Python opens meanwhile and the locks of SQLite that are left at the end.
USE_EVERYTHING = """
import os, sys
from io import BytesIO
from pathlib import Path

FILE = sys.argv[1]
opened = []

def note(event, arguments):
    if event == "open" and isinstance(arguments[0], str | bytes | os.PathLike):
        path = os.path.realpath(os.fsdecode(arguments[0]))
        if path.startswith(FILE):
            opened.append(path)

from posting import create_app, testbed
from tests.helpers import pictures

app = create_app({"TESTING": True, "DATABASE_URL": f"sqlite:///{FILE}", "METRICS": "on"})
sys.addaudithook(note)
app.test_client_class = testbed.Client
ada = testbed.sign_in(app, "ada", role="moderator")
post = {"title": "On engines", "content": "They weave."}
path = ada.post("/posts", json=post).headers["Location"]
image = {"file": (BytesIO(pictures.png()), "picture.png")}
assert ada.post(f"{path}/images", data=image).status_code == 201
for address in ("/", "/posts", path, "/posts?q=weave", "/healthz", "/readyz", "/metrics", "/docs"):
    assert app.test_client().get(address).status_code == 200, address
folder = Path(sys.argv[2])
for command in (
    ["doctor"],
    ["backup", str(folder / "backup")],
    ["export", str(folder / "export")],
    ["search", "rebuild"],
    ["images", "thumbnails"],
    ["users", "show", "ada"],
    ["db", "upgrade"],
):
    result = app.test_cli_runner().invoke(args=command)
    assert result.exit_code == 0 or command == ["doctor"], result.output
assert ada.get("/posts").status_code == 200
print("opened", opened)
status = os.stat(FILE)
number = f":{status.st_ino} "
locks = [line for line in Path("/proc/locks").read_text().splitlines() if number in line]
print("locks", sum(f" {os.getpid()} " in line and "READ" in line for line in locks))
"""


@pytest.fixture(params=["file", "link"])
def own_app(request, make_app, tmp_path):
    """An app on a new database, or on a link to a file that does not exist yet."""
    if request.param == "link":
        (tmp_path / "real").mkdir()
        (tmp_path / "other.db").symlink_to(tmp_path / "real" / "posting.db")
    return make_app(DATABASE_URL=f"sqlite:///{tmp_path / 'other.db'}")


@pytest.fixture
def file(own_app):
    """The file of its database, which it has open."""
    with own_app.app_context():
        return sqlite_file()


@pytest.fixture
def ada(own_app):
    return sign_in(own_app, "ada")


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc/locks")
def test_only_sqlite_opens_the_file_of_a_service(tmp_path):
    """A process that closes a file loses all of its locks on the file, SQLite's as well."""
    command = [sys.executable, "-c", USE_EVERYTHING, str(tmp_path / "posting.db"), str(tmp_path)]
    run = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    assert run.stdout.splitlines() == ["opened []", "locks 1"], run.stderr


@pytest.mark.parametrize("umask", [0o022, 0o000])
def test_a_new_database_is_for_its_owner_alone(tmp_path, umask):
    previous = os.umask(umask)
    try:
        subprocess.run(
            [sys.executable, "-m", "flask", "--app", "posting", "db", "upgrade"],
            cwd=ROOT,
            env=os.environ | {"POSTING_DATABASE_URL": f"sqlite:///{tmp_path / 'posting.db'}"},
            check=True,
            capture_output=True,
        )
    finally:
        os.umask(previous)
    assert stat.S_IMODE((tmp_path / "posting.db").stat().st_mode) == 0o600


def test_the_files_beside_it_are_for_its_owner_alone(ada, file):
    assert ada.post("/posts", json=POST).status_code == 201
    for suffix in ("", *SIDECARS):
        assert stat.S_IMODE(Path(f"{file}{suffix}").stat().st_mode) == 0o600


@pytest.mark.parametrize("name", ["a b.db", "100%.db", "what?.db", "a#b.db", "ü.db"])
def test_a_path_may_contain_any_character(make_app, tmp_path, name):
    app = make_app(DATABASE_URL=f"sqlite:///{quote(str(tmp_path / name))}")
    assert sign_in(app, "ada").post("/posts", json=POST).status_code == 201
    assert (tmp_path / name).exists()


def move(file):
    file.rename(file.with_name("moved.db"))


def delete(file):
    file.unlink()


def delete_all(file):
    for suffix in ("", *SIDECARS):
        Path(f"{file}{suffix}").unlink()


def delete_log(file):
    Path(f"{file}-wal").unlink()


def delete_index(file):
    Path(f"{file}-shm").unlink()


def replace(file):
    """Put a copy in place of the file, as `mv backup.db posting.db` does."""
    copy = file.with_name("copy.db")
    copy.write_bytes(b"x")
    copy.replace(file)


@pytest.mark.parametrize("change", [move, delete, delete_all, delete_log, delete_index, replace])
def test_a_file_that_has_moved_is_not_written_to(own_app, ada, file, caplog, change):
    """SQLite would write into a file that no one can open again."""
    assert ada.post("/posts", json=POST).status_code == 201
    assert ada.get("/readyz").status_code == 200
    change(file)
    assert assert_problem(ada.get("/readyz"), 503)["code"] == "database_moved"
    for _ in range(2):
        response = ada.post("/posts", json=POST)
        assert assert_problem(response, 503)["code"] == "database_moved"
        assert response.headers["Retry-After"] == "60"
    assert "restart the service" in caplog.text
    assert len(ada.get("/posts").json) == 1


def test_no_connection_opens_another_file(own_app, ada, file):
    ada.post("/posts", json=POST)
    with own_app.app_context(), db.engine.connect(), db.engine.connect():
        delete_all(file)
        response = ada.get("/posts")  # on a third connection
    assert assert_problem(response, 503)["code"] == "database_moved"
    assert not file.exists()


def test_a_file_that_is_back_is_written_to(ada, file):
    move(file)
    assert ada.post("/posts", json=POST).status_code == 503
    file.with_name("moved.db").rename(file)
    assert ada.post("/posts", json=POST).status_code == 201


def test_after_all_connections_are_closed_another_file_is_opened(own_app, ada, file):
    ada.post("/posts", json=POST)
    with own_app.app_context():
        close_connections()
    copy = file.with_name("copy.db")
    copy.write_bytes(file.read_bytes())
    copy.replace(file)
    assert ada.post("/posts", json=POST).status_code == 201
