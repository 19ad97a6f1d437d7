"""Commands on a database that cannot be used: one line says why and what to do."""

import click
import pytest
import sqlalchemy as sa

from posting.commands import COMMANDS
from posting.db import sqlite
from posting.db.base import db
from posting.db.migrations.start_errors import start_error
from posting.testbed import running_app
from tests.conftest import POSTGRES

WRITING = (
    "users create grace",
    "users reset-link ada",
    "users promote ada",
    "users suspend ada",
    "users restore hedy",
    "users delete ada --content keep --yes",
    "users reset-password ada",
    "invitations create",
    "search rebuild",
    "demo --posts 10 --force",
    "db downgrade --yes",
)
READING = ("users list", "users show ada", "invitations list", "moderation log", "export x")


@pytest.fixture
def locked(fresh_url, monkeypatch):
    """An app whose database another program is writing."""
    monkeypatch.setattr(sqlite, "WRITE_LOCK_SECONDS", 0)
    monkeypatch.setattr(sqlite, "BUSY_TIMEOUT_PRAGMA", "busy_timeout=1")
    with running_app(fresh_url, {}) as app:
        runner = app.test_cli_runner()
        for name in ("ada", "hedy"):
            assert runner.invoke(args=["users", "create", name]).exit_code == 0
        assert runner.invoke(args=["users", "suspend", "hedy"]).exit_code == 0
        with app.app_context(), db.engine.connect() as connection:
            connection.exec_driver_sql("BEGIN IMMEDIATE")
            yield app


def run(app, line):
    result = app.test_cli_runner().invoke(args=line.split(), input="a long walk\na long walk\n")
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.stderr


@pytest.mark.skipif(bool(POSTGRES), reason="takes SQLite's lock")
@pytest.mark.parametrize("line", WRITING)
def test_a_command_that_cannot_write_says_why(locked, line):
    code, errors = run(locked, line)
    assert code == 1
    last = errors.splitlines()[-1]
    assert last.startswith("Error: ")
    assert "lock" in last
    assert "Traceback" not in errors


@pytest.mark.skipif(bool(POSTGRES), reason="takes SQLite's lock")
@pytest.mark.parametrize("line", READING)
def test_a_command_that_reads_does_not_wait(locked, line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(locked, line)[0] == 0


def leaves(command):
    if isinstance(command, click.Group):
        return [leaf for child in command.commands.values() for leaf in leaves(child)]
    return [command]


@pytest.mark.parametrize("command", [leaf for each in COMMANDS for leaf in leaves(each)])
@pytest.mark.parametrize(
    ("error", "message"),
    [
        (PermissionError(13, "Permission denied", "/closed/file"), "/closed/file cannot be used"),
        (OSError(28, "No space left on device", "/full"), r"/full cannot be used \(No space left"),
        (sa.exc.OperationalError("SELECT", {}, Exception("disk is full")), "disk is full"),
        (sa.exc.DatabaseError("SELECT", {}, Exception("image is malformed")), "is malformed"),
    ],
)
def test_each_command_reports_errors(app, monkeypatch, command, error, message):
    def fail():
        raise error

    monkeypatch.setattr(command, "callback", fail)
    monkeypatch.setattr(command, "params", [])
    with app.app_context(), pytest.raises(click.ClickException, match=message):
        command.invoke(click.Context(command))


def test_a_mistake_in_a_statement_is_not_hidden(app, monkeypatch):
    [command] = [each for each in COMMANDS if each.name == "export"]

    def fail():
        raise sa.exc.ProgrammingError("SELEKT", {}, Exception("syntax error"))

    monkeypatch.setattr(command, "callback", fail)
    with pytest.raises(sa.exc.ProgrammingError):
        command.invoke(click.Context(command))


@pytest.mark.skipif(not POSTGRES, reason="has error codes of Postgres")
@pytest.mark.parametrize(
    ("code", "advice"),
    [("55P03", "Try again later."), ("53100", "Free some space."), ("57P01", "is running.")],
)
def test_errors_of_postgres_have_advice(app, code, advice):
    cause = Exception("canceled")
    cause.sqlstate = code
    with app.app_context():
        error = start_error(sa.exc.OperationalError("SELECT", {}, cause))
    assert error.message.endswith(advice)
    assert "(canceled)" in error.message
