"""A start waits for a Postgres that may answer later, and for no other."""

from unittest.mock import Mock

import psycopg
import pytest

from posting import create_app
from posting.config import StartError
from posting.db import migrations
from posting.db.migrations.start_errors import DatabaseUnavailableError

UNREACHABLE = "postgresql://postgres@127.0.0.1:9/nothing"


def test_the_service_waits_a_minute_for_postgres(monkeypatch, caplog):
    pauses = []
    monkeypatch.setattr(migrations, "sleep", pauses.append)
    monkeypatch.setattr(migrations, "monotonic", lambda: sum(pauses))
    with pytest.raises(StartError) as error:
        create_app({"DATABASE_URL": f"{UNREACHABLE}?password=hidden"})
    assert error.value.exit_status == 1  # systemd retries
    assert "Check POSTING_DATABASE_URL and that the database is running." in str(error.value)
    assert pauses == [1] * 60
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == 60
    for line in (*lines, str(error.value)):
        assert "The database postgresql://postgres@127.0.0.1:9/nothing cannot be used" in line
        assert "hidden" not in line


@pytest.fixture
def failing_start(monkeypatch):
    """Return a function that starts the service while connections fail with an error.

    It returns the status with which the service ends, and how long it waited before.
    """
    pauses = []
    monkeypatch.setattr(migrations, "sleep", pauses.append)
    monkeypatch.setattr(migrations, "monotonic", lambda: sum(pauses))

    def failing_start(error, url=UNREACHABLE):
        monkeypatch.setattr(psycopg, "connect", Mock(side_effect=error))
        with pytest.raises(StartError) as raised:
            create_app({"DATABASE_URL": url})
        assert str(error) in str(raised.value)
        return raised.value.exit_status, sum(pauses)

    return failing_start


@pytest.mark.parametrize(
    "message",
    [
        'role "me" does not exist',
        'role "me" is not permitted to log in',
        'database "posting" does not exist',
        'permission denied for database "posting"',
        'password authentication failed for user "me"',
        'Peer authentication failed for user "me"',
        'no pg_hba.conf entry for host "10.0.0.1", user "me", database "x", no encryption',
        'pg_hba.conf rejects connection for host "10.0.0.1", user "me", database "x"',
        "no such database: posting",  # the messages of PgBouncer
        "password authentication failed",
    ],
)
def test_a_server_that_refuses_the_user_is_an_error(failing_start, message):
    error = f'connection to server at "10.0.0.2", port 5432 failed: FATAL:  {message}'
    assert failing_start(psycopg.OperationalError(error)) == (3, 0)


def test_a_server_that_asks_for_a_password_is_an_error(failing_start):
    connection = Mock(spec=["needs_password"], needs_password=True)
    error = psycopg.OperationalError("connection failed: no password", pgconn=connection)
    assert failing_start(error) == (3, 0)


@pytest.mark.parametrize(
    "error", [psycopg.errors.InvalidPassword("x"), psycopg.errors.InvalidCatalogName("x")]
)
def test_a_refusal_with_its_code_is_an_error_in_every_language(failing_start, error):
    assert failing_start(error) == (3, 0)


@pytest.mark.parametrize(
    "error",
    [
        psycopg.OperationalError(f"connection failed: FATAL:  {message}")
        for message in (
            "the database system is starting up",
            "the database system is shutting down",
            "sorry, too many clients already",
            'too many connections for role "does not exist"',
            "remaining connection slots are reserved for superusers",
            'LDAP authentication failed for user "me"',  # whose server may be down
        )
    ]
    + [
        psycopg.OperationalError("connection failed: Connection refused"),
        psycopg.errors.CannotConnectNow("x"),
        psycopg.errors.TooManyConnections("x"),
    ],
    ids=str,
)
def test_other_failures_of_postgres_are_waited_for(failing_start, error):
    assert failing_start(error) == (1, 60)


@pytest.mark.parametrize("hosts", ["a,b/x", "/x?host=a&host=b", "/x?host=a,b"])
def test_another_server_of_several_may_accept_the_user(failing_start, hosts):
    """A standby may refuse everyone while the server that is written to is down."""
    error = psycopg.OperationalError("FATAL:  no pg_hba.conf entry for host")
    assert failing_start(error, f"postgresql://{hosts}") == (1, 60)


def test_the_service_starts_as_soon_as_postgres_does(monkeypatch, caplog):
    failures = [DatabaseUnavailableError("It is starting up.")] * 2
    monkeypatch.setattr(migrations, "sleep", lambda _: None)
    monkeypatch.setattr(
        migrations, "ensure_current", Mock(side_effect=[*failures, None, AssertionError])
    )
    create_app({"DATABASE_URL": UNREACHABLE})
    assert [record.getMessage() for record in caplog.records] == [
        "Waiting for the database. It is starting up."
    ] * 2
