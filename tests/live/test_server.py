"""The server and `flask`, started as documented in a copy of the checkout with an `.env` file."""

import json
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import Timer

import pytest
import requests

from posting.invitations.first_run import COMMAND
from tests.live.conftest import SETTINGS, free_port
from tests.live.sites import ROOT

SERVE = [".venv/bin/python", "deploy/serve.py"]
MAKE_RUN = ["make", "run"]
MAKE_DEV = ["make", "dev"]
MAX_SECONDS = 120
ADA = {"username": "ada", "password": "a long walk by the sea"}


class Checkout:
    """A copy of the checkout that reads its settings from its `.env` file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        shutil.copytree(ROOT / "posting", folder / "posting")
        shutil.copytree(ROOT / "deploy", folder / "deploy")
        for name in ("Makefile", "wsgi.py", "requirements.txt"):
            shutil.copy(ROOT / name, folder)
        self._install(folder / ".venv")
        self.settings(**SETTINGS)

    def _install(self, environment: Path) -> None:
        """Run `make install` with the packages of this environment, and without pip."""
        (environment / "bin").mkdir(parents=True)
        for name in ("lib", "pyvenv.cfg", "bin/python"):
            (environment / name).symlink_to(Path(sys.prefix) / name)
        (environment / "bin" / "pip").symlink_to(shutil.which("true"))
        flask = environment / "bin" / "flask"
        flask.write_text('#!/bin/sh\nexec "$(dirname "$0")/python" -m flask "$@"\n')
        flask.chmod(0o755)
        (environment / "pip").touch()
        assert self.run("make", "install")[0] == 0

    def settings(self, **settings):
        with (self.folder / ".env").open("a") as file:
            file.writelines(f"{name}={value}\n" for name, value in settings.items())

    def popen(self, *command, **environment):
        own = {
            name: value
            for name, value in os.environ.items()
            if "DOTENV" not in name and not name.startswith(("MAKE", "MFLAGS"))
        }
        return subprocess.Popen(
            command,
            cwd=self.folder,
            env=own | environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, *command, **environment):
        """Run a command; return its exit code, stdout and stderr."""
        process = self.popen(*command, **environment)
        try:
            output, errors = process.communicate(timeout=MAX_SECONDS)
        finally:
            kill_all(process)
        return process.returncode, output, errors

    @contextmanager
    def running(self, *command, **environment):
        """Start a command and yield its process, which is killed at the end or if it hangs."""
        with self.popen(*command, **environment) as process:
            deadline = Timer(MAX_SECONDS, kill_all, [process])
            deadline.start()
            try:
                yield process
            finally:
                deadline.cancel()
                kill_all(process)

    @contextmanager
    def serving(self, *command, **environment):
        """Start a server; yield the address that it prints when it is ready."""
        with self.running(*command, **environment) as process:
            lines = iter(process.stdout.readline, "")
            found = (re.match(r"Posting is at (\S+) and its docs", line) for line in lines)
            [address] = [next(filter(None, found), None)]
            assert address, process.stderr.read()
            yield address[1]
            process.terminate()
            process.communicate(timeout=MAX_SECONDS)


def kill_all(process):
    """Kill a process and those that it has started, if they have not ended."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


@pytest.fixture
def checkout(tmp_path):
    return Checkout(tmp_path / "checkout")


@pytest.fixture
def database(checkout, fresh_url):
    """URL of a database, which is set in `.env`."""
    checkout.settings(POSTING_DATABASE_URL=fresh_url)
    return fresh_url


@pytest.mark.parametrize("command", [SERVE, MAKE_RUN], ids=" ".join)
def test_the_server_and_flask_read_the_same_file(checkout, database, command):
    port = str(free_port())
    checkout.settings(PORT=port, POSTING_PASSWORD_MIN="15")
    with checkout.serving(*command) as url:
        assert url == f"http://127.0.0.1:{port}"
        short = requests.post(f"{url}/signup", json=ADA | {"password": "short of 15"}, timeout=9)
        assert short.status_code == 422
        assert requests.post(f"{url}/signup", json=ADA, timeout=9).status_code == 201
        code, output, _ = checkout.run(".venv/bin/flask", "users", "promote", "ada", "--owner")
        assert (code, output) == (0, "ada is an owner now.\n")


def first_link(process):
    """Return the link for the first owner that a server prints."""
    lines = iter(process.stdout.readline, "")
    assert any(line.startswith("There is no owner yet.") for line in lines)
    return next(lines).strip()


def join(link, username):
    """Sign up with a link, and return the response."""
    url, _, code = link.partition("/signup#")
    body = {"username": username, "password": ADA["password"], "invitation": code}
    return requests.post(f"{url}/signup", json=body, timeout=60)


def stop(process):
    """Stop a server, and return what it prints in the meantime."""
    process.terminate()
    return process.communicate(timeout=MAX_SECONDS)[0]


def test_each_start_prints_a_link_until_there_is_an_owner(checkout, database):
    port = free_port()
    checkout.settings(PORT=port, WEB_CONCURRENCY="3")
    with checkout.running(*MAKE_RUN) as process:
        former = first_link(process)
        assert former.startswith(f"http://127.0.0.1:{port}/signup#")
        assert requests.post(f"http://127.0.0.1:{port}/signup", json=ADA, timeout=60).ok
        assert "signup#" not in stop(process)  # one of the workers prints it
    with checkout.running(*SERVE) as process:
        link = first_link(process)
        assert link != former
        # The operator may have sent the link of the former start to somebody.
        created = join(former, "grace")
        assert (created.status_code, created.json()["role"]) == (201, "owner")
        assert join(link, "hedy").status_code == 422
        stop(process)
    with checkout.running(*SERVE) as process:
        assert process.stdout.readline().startswith("Posting is at ")
        assert requests.get(f"http://127.0.0.1:{port}/readyz", timeout=60).ok
        assert stop(process) == ""


def test_the_link_is_the_last_line_of_a_start(checkout, database):
    checkout.settings(PORT=free_port(), WEB_CONCURRENCY="3")
    with checkout.running("sh", "-c", "exec make run 2>&1") as process:
        lines = [process.stdout.readline() for _ in range(5)]
        while "signup#" not in lines[-1]:
            lines.append(process.stdout.readline())
        assert sum("Booting worker" in line for line in lines) == 3
        assert "Booting worker" not in stop(process)


@pytest.mark.parametrize(
    "command",
    [MAKE_DEV, [".venv/bin/flask", "run"], [".venv/bin/flask", "run", "--debug"]],
    ids=" ".join,
)
def test_flasks_own_server_prints_the_link_last_and_once(checkout, database, command):
    assert checkout.run(".venv/bin/flask", "db", "upgrade")[0] == 0
    port = free_port()
    checkout.settings(PORT=port, FLASK_RUN_PORT=port)
    with checkout.running("sh", "-c", f"exec {' '.join(command)} 2>&1") as process:
        link = first_link(process)
        assert link.startswith(f"http://127.0.0.1:{port}/signup#")
        assert join(link, "ada").json()["role"] == "owner"
        rest = stop(process)
        assert "signup#" not in rest
        assert "Running on" not in rest
        assert "Debugger PIN" not in rest


def test_logs_in_json_have_no_link(checkout, database):
    checkout.settings(PORT=str(free_port()), POSTING_LOG_FORMAT="json")
    with checkout.running(*SERVE) as process:
        lines = (json.loads(line)["message"] for line in iter(process.stderr.readline, ""))
        assert COMMAND in lines


def test_two_servers_on_one_host_do_not_end_each_others_sessions(checkout, tmp_path):
    """Browsers send a cookie to all ports of a host, as this client does."""
    with ExitStack() as stack, requests.Session() as ada:
        urls = []
        for command in (SERVE, MAKE_DEV, [".venv/bin/flask", "run"]):
            port = free_port()
            file = f"sqlite:///{tmp_path / f'{port}.db'}"
            settings = {"PORT": str(port), "FLASK_RUN_PORT": str(port)}
            process = stack.enter_context(
                checkout.running(*command, POSTING_DATABASE_URL=file, **settings)
            )
            first_link(process)  # it serves
            urls.append(f"http://127.0.0.1:{port}")
        for url in urls:
            assert ada.post(f"{url}/signup", json=ADA, timeout=60).status_code == 201
            assert ada.post(f"{url}/signin", json=ADA, timeout=60).status_code == 200
        assert {ada.get(f"{url}/users/me", timeout=60).status_code for url in urls} == {200}
        assert len(ada.cookies) == len(urls)


def test_the_environment_overrides_the_file(checkout, database):
    checkout.settings(PORT="9", BIND="192.0.2.1")
    port = str(free_port())
    with checkout.serving(*SERVE, PORT=port, BIND="127.0.0.2") as url:
        assert url == f"http://127.0.0.2:{port}"
        assert requests.get(f"{url}/readyz", timeout=9).status_code == 200


@contextmanager
def serving_on_a_socket(checkout, *command, **environment):
    """Start a server on the socket `sock`; yield the process and the process id of its worker."""
    socket = f"unix:{checkout.folder / 'sock'}"
    with checkout.running(*command, BIND=socket, WEB_CONCURRENCY="1", **environment) as process:
        lines = iter(process.stderr.readline, "")
        found = (re.search(r"Booting worker with pid: (\d+)", line) for line in lines)
        yield process, next(filter(None, found))[1]


def test_no_address_is_printed_for_a_unix_socket(checkout, database):
    with serving_on_a_socket(checkout, *SERVE) as (process, _):
        assert process.stdout.readline() == f"{COMMAND}\n"  # which may come after the worker
        process.terminate()
        output, _ = process.communicate(timeout=MAX_SECONDS)
        assert output == ""


def test_only_the_group_of_the_service_can_connect_to_its_unix_socket(checkout, database):
    """Other users of the machine could name any IP address in X-Forwarded-For."""
    with serving_on_a_socket(checkout, *SERVE):
        assert stat.filemode((checkout.folder / "sock").stat().st_mode) == "srw-rw----"


@pytest.mark.parametrize("command", [SERVE, MAKE_RUN], ids=" ".join)
@pytest.mark.parametrize(("own", "expected"), [({}, "2"), ({"MALLOC_ARENA_MAX": "1"}, "1")])
def test_the_threads_of_a_worker_share_heaps(checkout, database, command, own, expected):
    with serving_on_a_socket(checkout, *command, **own) as (_, worker):
        environment = Path(f"/proc/{worker}/environ").read_text().split("\0")
    assert f"MALLOC_ARENA_MAX={expected}" in environment


@pytest.mark.parametrize(
    ("settings", "options"),
    [({"PORT": "{port}", "BIND": "127.0.0.2"}, []), ({}, ["PORT={port}", "BIND=127.0.0.2"])],
    ids=["in the file", "of make"],
)
def test_the_development_server_listens_where_the_server_would(
    checkout, database, settings, options
):
    port = free_port()
    checkout.settings(**{name: value.format(port=port) for name, value in settings.items()})
    command = [*MAKE_DEV, *(option.format(port=port) for option in options)]
    with checkout.running(*command) as process:
        lines = iter(process.stderr.readline, "")
        assert any(f"Running on http://127.0.0.2:{port}\n" in line for line in lines)
        lines = iter(process.stdout.readline, "")
        assert any("Debug mode: on" in line for line in lines)


def test_each_line_of_the_log_is_json(checkout, database):
    port = str(free_port())
    checkout.settings(POSTING_LOG_FORMAT="json")
    lines = []
    with checkout.running(*SERVE, PORT=port, WEB_CONCURRENCY="1") as process:
        while not lines or "Booting worker" not in lines[-1]:
            lines.append(process.stderr.readline())
        url = f"http://127.0.0.1:{port}"
        assert requests.post(f"{url}/signup", json=ADA, timeout=9).status_code == 201
        assert requests.get(url, headers={"X": "x" * 5000}, timeout=9).status_code == 431
        process.terminate()
        output, errors = process.communicate(timeout=MAX_SECONDS)
    entries = [json.loads(line) for line in (*lines, *errors.splitlines())]
    assert output == ""
    assert all({"time", "level", "logger", "request_id", "message"} <= set(e) for e in entries)
    messages = [entry["message"].partition(" ")[0] for entry in entries]
    for first_word in ("Starting", "Listening", "Booting", "Refused", "Handling", "Shutting"):
        assert messages.count(first_word) == 1, messages
    assert [entry["route"] for entry in entries if "route" in entry] == ["/signup"]


def test_create_app_does_not_read_the_file(checkout):
    checkout.settings(POSTING_PASSWORD_MIN="15")
    code = (
        "from posting import create_app;"
        "app = create_app({'TESTING': True, 'DATABASE_URL': 'sqlite://'});"
        "print(app.config['PASSWORD_MIN'])"
    )
    assert checkout.run(".venv/bin/python", "-c", code) == (0, "8\n", "")


@pytest.mark.parametrize("where", ["in the environment", "in the file"])
@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("WEB_CONCURRENCY", "abc", "must be a whole number from 1 to 1000; it is 'abc'."),
        ("WEB_CONCURRENCY", "0", "must be a whole number from 1 to 1000; it is '0'."),
        ("PORT", "70000", "must be a whole number from 0 to 65535; it is '70000'."),
        (
            "BIND",
            "127.0.0.1:80",
            "must be an address without a port, or unix:/path; it is '127.0.0.1:80'.",
        ),
        ("MAX_REQUESTS", "x", "must be a whole number from 0 to 999999999; it is 'x'."),
        ("POSTING_PASSWORD_MIN", "3", "must be a whole number from 8 to 256; it is '3'."),
        (
            "POSTING_DATABASE_URL",
            "sqlite://",
            "is an in-memory database, and each worker would have its own. "
            "Use a file: sqlite:///posting.db",
        ),
    ],
)
def test_an_invalid_setting_stops_the_server_with_one_line(checkout, name, value, rule, where):
    environment = {name: value} if where == "in the environment" else {}
    if not environment:
        checkout.settings(**{name: value})
    code, output, errors = checkout.run(*SERVE, **environment)
    line = [line for line in errors.splitlines() if "] [INFO] " not in line]
    assert (line, code, output) == ([f"posting: {name} {rule}"], 3, "")


def test_a_command_may_use_an_in_memory_database(checkout):
    checkout.settings(POSTING_DATABASE_URL="sqlite://")
    code, output, _ = checkout.run(".venv/bin/flask", "openapi", "print")
    assert code == 0
    assert json.loads(output)["info"]["title"] == "Posting"


def test_an_empty_number_means_the_default(checkout, database):
    empty = {"PORT": str(free_port()), "WEB_CONCURRENCY": "", "MAX_REQUESTS": ""}
    with checkout.serving(*SERVE, **empty) as url:
        assert requests.get(f"{url}/readyz", timeout=9).status_code == 200


@pytest.mark.parametrize("debug", [[], ["--debug"]], ids=["plain", "debug"])
def test_flask_run_logs_a_request_once(checkout, database, debug):
    port = str(free_port())
    command = [".venv/bin/flask", "run", "--no-reload", "--port", port, *debug]
    with checkout.running(*command) as process:
        log = iter(process.stderr.readline, "")
        assert any(f"Running on http://127.0.0.1:{port}" in line for line in log)
        assert "CTRL+C" in next(log)
        for path in ("posts", "nowhere", "docs/favicon-32x32.png"):
            requests.get(f"http://127.0.0.1:{port}/{path}", timeout=9)
        process.terminate()
        lines = process.communicate(timeout=MAX_SECONDS)[1].splitlines()
    routes = [re.sub(r".* route=(\S+) .*", r"\1", line) for line in lines if "GET" in line]
    assert routes == ["/posts", "none", "/docs/{filename}"]


@pytest.mark.parametrize("command", [SERVE, MAKE_RUN, MAKE_DEV], ids=" ".join)
@pytest.mark.parametrize(
    ("bind", "advice"),
    [
        ("127.0.0.1", "Stop the program that listens there, or set PORT to another."),
        ("192.0.2.1", "Set BIND to an address of this machine."),
    ],
)
def test_a_port_that_cannot_be_used_stops_the_server_with_advice(
    checkout, database, command, bind, advice
):
    with socket.create_server(("127.0.0.1", free_port())) as other:
        port = other.getsockname()[1]
        checkout.settings(PORT=port, BIND=bind)
        code, _, errors = checkout.run(*command)
    [line] = [line for line in errors.splitlines() if line.startswith("posting: ")]
    assert line.startswith(f"posting: The server cannot listen at {bind}, port {port} (")
    assert line.endswith(advice)
    assert code == (1 if command == SERVE else 2)
    assert "Traceback" not in errors


def test_the_path_of_the_checkout_may_have_spaces_and_percent_signs(tmp_path):
    checkout = Checkout(tmp_path / "50% of a checkout %s")
    checkout.settings(PORT=free_port())
    (checkout.folder / "instance").mkdir()
    for command in (["db", "upgrade"], ["db", "current"], ["users", "create", "ada"], ["doctor"]):
        code, _, errors = checkout.run(".venv/bin/flask", *command)
        assert "Traceback" not in errors
        assert code == 0 or command == ["doctor"], errors
    (checkout.folder / "instance" / "posting.db").unlink()
    with checkout.serving(*MAKE_RUN) as url:
        assert requests.get(f"{url}/readyz", timeout=60).status_code == 200


@pytest.mark.parametrize(
    "command",
    [
        SERVE,
        MAKE_RUN,
        MAKE_DEV,
        [".venv/bin/flask", "doctor"],
        [".venv/bin/flask", "run"],
        [".venv/bin/python", "-m", "gunicorn", "-c", "deploy/gunicorn.conf.py", "wsgi:app"],
    ],
    ids=" ".join,
)
def test_a_mistake_in_the_file_stops_every_command_with_one_line(checkout, command):
    file = checkout.folder / ".env"
    mistakes = {b"POSTING_SIGNUP: closed": "is not NAME=value, such as POSTING_SIGNUP=closed. "}
    if ".venv/bin/python" in command:  # Flask's own command ends in a traceback
        mistakes[b"POSTING_NAME=Caf\xe9"] = "is not UTF-8. Save the file as UTF-8."
    for mistake, problem in mistakes.items():
        file.write_bytes(b"# comment\n\n" + mistake + b"\n")
        code, output, errors = checkout.run(*command)
        others = ("make:", "python-dotenv could not parse")
        [line] = [line for line in errors.splitlines() if not line.startswith(others)]
        assert line.startswith(f"posting: {file}, line 3 {problem}")
        assert (code, output) == (2 if command[0] == "make" else 3, "")
