"""The package, installed from a wheel in a virtual environment."""

import os
import shutil
import stat
import subprocess
import sys
import sysconfig
import time

import pytest
import requests

from tests.conftest import POSTGRES
from tests.live.conftest import free_port
from tests.live.sites import ROOT

pytestmark = pytest.mark.skipif(bool(POSTGRES), reason="uses SQLite files")
ADA = {"username": "ada", "password": "a long walk by the sea"}


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """A virtual environment with the wheel and the packages of this environment."""
    folder = tmp_path_factory.mktemp("package")
    code, wheels, environment = folder / "code", folder / "wheels", folder / "environment"
    code.mkdir()
    shutil.copytree(ROOT / "posting", code / "posting")
    for name in ("LICENSE", "README.md", "pyproject.toml", "setup.cfg", "setup.py", "wsgi.py"):
        shutil.copy(ROOT / name, code)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    before = files(code)
    subprocess.run([*pip, "wheel", "--no-deps", "--wheel-dir", wheels, code], check=True)
    assert files(code) == before, "the build has left files in the checkout"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    packages = sysconfig.get_path("purelib", "venv", {"base": environment})
    with open(f"{packages}/others.pth", "w") as others:
        others.write(sysconfig.get_path("purelib"))
    [wheel] = wheels.glob("community_posting-*.whl")
    into = ["--python", environment / "bin" / "python", "install", "--no-deps", "--no-index"]
    subprocess.run([*pip, *into, wheel], check=True)
    return environment


@pytest.fixture
def start(environment, tmp_path):
    """Return a function that starts Python in an empty folder, with the usual umask."""
    excluded = ("POSTING_", "PYTHONPATH", "FLASK_SKIP_DOTENV")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(excluded)}

    def start(*arguments):
        return subprocess.Popen(
            [environment / "bin" / "python", *arguments],
            cwd=tmp_path,
            env=clean,
            umask=0o022,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    return start


@pytest.fixture
def run(start):
    def run(*arguments):
        process = start(*arguments)
        output, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors
        return output

    return run


def files(folder):
    return {path for path in folder.rglob("*") if "__pycache__" not in path.parts}


@pytest.mark.parametrize("app", ["posting", "posting.wsgi"])
def test_data_is_in_the_working_directory_and_private(run, environment, tmp_path, app):
    before = files(environment)
    run("-m", "flask", "--app", app, "db", "upgrade")
    data = tmp_path / "instance"
    assert {path.name for path in data.iterdir()} == {"posting.db"}
    assert {stat.S_IMODE(path.stat().st_mode) for path in data.iterdir()} == {0o600}
    assert files(environment) == before


def test_the_server_reads_the_settings_of_the_folder(environment, start, run, tmp_path):
    port = free_port()
    (tmp_path / ".env").write_text("POSTING_DATABASE_URL=sqlite:///own.db\n")
    address = ("--bind", f"127.0.0.1:{port}")
    server = start("-m", "gunicorn", "--threads", "8", *address, "posting.wsgi:app")
    try:
        for _ in range(1000):
            assert server.poll() is None, server.communicate()
            try:
                requests.get(f"http://127.0.0.1:{port}/readyz", timeout=9)
            except requests.RequestException:
                time.sleep(0.05)
            else:
                break
        signed_up = requests.post(f"http://127.0.0.1:{port}/signup", json=ADA, timeout=9)
        assert signed_up.status_code == 201
        for path in ("/", "/favicon.svg", "/docs"):
            assert requests.get(f"http://127.0.0.1:{port}{path}", timeout=9).status_code == 200
        output = run(environment / "bin" / "posting", "users", "promote", "ada")
        assert output == "ada is a moderator now.\n"
        data = list((tmp_path / "instance").iterdir())
        assert {path.name for path in data} >= {"own.db", "own.db-wal", "own.db-shm"}
        assert {stat.S_IMODE(path.stat().st_mode) for path in data} == {0o600}
    finally:
        server.terminate()
        server.communicate(timeout=30)


def test_the_package_is_typed_and_has_the_name_of_the_distribution(run):
    code = (
        "import importlib.metadata, importlib.resources;"
        "print(importlib.metadata.metadata('community-posting')['Name']);"
        "print(importlib.resources.files('posting').joinpath('py.typed').is_file())"
    )
    assert run("-c", code).split() == ["community-posting", "True"]
    packages = f"{sysconfig.get_path('purelib', 'venv', {'base': '/'})}".lstrip("/")
    assert packages in run("-c", "import posting; print(posting.__file__)")
