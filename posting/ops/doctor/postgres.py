"""Checks of a Postgres database, made with queries."""

import os
from datetime import datetime, timedelta

import sqlalchemy as sa

from posting.db.base import db
from posting.db.engine import POOL
from posting.db.postgres import POSTGRES_TIMEOUTS
from posting.db.types import now
from posting.ops.doctor.findings import MAX_SKEW, SET_CLOCK, Finding, failure, ok, warning
from posting.plurals import count

MIN_VERSION = (13,)
CLOCK_FAILURE = timedelta(seconds=60)
# The existing tables that the role cannot write.
UNWRITABLE_TABLES = sa.text("""
    SELECT DISTINCT name FROM unnest(CAST(:names AS text[])) AS name,
    unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) AS privilege
    WHERE NOT has_table_privilege(to_regclass(name), privilege) ORDER BY name""")


def check_version(connection: sa.Connection) -> Finding:
    version = connection.dialect.server_version_info or ()
    name = f"Postgres {'.'.join(map(str, version))}"
    if version >= MIN_VERSION:
        return ok(name)
    return failure(f"{name} is too old", f"Upgrade it to {MIN_VERSION[0]} or newer.")


def check_encoding(connection: sa.Connection) -> Finding:
    encoding = _setting(connection, "server_encoding")
    if encoding == "UTF8":
        return ok("The encoding of the database is UTF8")
    return failure(
        f"The encoding of the database is {encoding}, which lacks characters",
        "Create another with: createdb --encoding=UTF8 --template=template0 NAME",
    )


def check_usernames(connection: sa.Connection) -> Finding:
    inspector = sa.inspect(connection)
    if not inspector.has_table("users"):
        return ok("There are no usernames yet")
    types = {column["name"]: column["type"] for column in inspector.get_columns("users")}
    collation = getattr(types["username"], "collation", None) or "of the database"
    if collation == "C":
        return ok("Usernames are compared independently of the locale")
    return failure(
        f"Usernames are compared with the collation {collation}, which may allow a name twice",
        'Run in psql: ALTER TABLE users ALTER COLUMN username TYPE varchar(32) COLLATE "C"',
    )


def check_writes(connection: sa.Connection) -> Finding:
    if connection.scalar(sa.select(sa.func.pg_is_in_recovery())):
        return failure(
            "This Postgres server is a standby, which accepts no writes",
            "Set POSTING_DATABASE_URL to the primary server.",
        )
    if _setting(connection, "transaction_read_only") == "on":
        return failure(
            "Postgres accepts no writes: transactions are read-only",
            "Turn default_transaction_read_only off for the server, the database or the role.",
        )
    unwritable = connection.scalars(UNWRITABLE_TABLES, {"names": [*db.metadata.tables]}).all()
    if not unwritable:
        return ok("Postgres accepts writes")
    role, tables = connection.scalar(sa.select(sa.func.current_user())), ", ".join(unwritable)
    return failure(
        f"{role} may not write {tables}",
        f'As their owner, run: GRANT SELECT, INSERT, UPDATE, DELETE ON {tables} TO "{role}"',
    )


def check_timeouts(connection: sa.Connection) -> Finding:
    # The values at the start of the session, since a transaction may have set others.
    rows = connection.execute(sa.text("SELECT name, reset_val FROM pg_settings")).all()
    session = {row.name: row.reset_val for row in rows}
    wrong = [
        f"{name} is {session[name]} ms"
        for name, value in POSTGRES_TIMEOUTS.items()
        if session[name] != str(value)
    ]
    if not wrong:
        return ok("Postgres ends queries and transactions that take too long")
    return warning(
        f"Postgres ignores the timeouts of the service: {', '.join(wrong)}",
        "Make the connection pooler pass on `options`, or set them with ALTER ROLE.",
    )


def check_connections(connection: sa.Connection) -> Finding:
    names = ("max_connections", "superuser_reserved_connections")
    total, reserved = (int(_setting(connection, name)) for name in names)
    each = int(POOL["pool_size"]) + 1  # that of the response cache
    workers, cores = (total - reserved) // each, os.cpu_count() or 1
    message = f"Postgres has connections for {count(workers, 'worker')} on all machines together"
    if cores <= workers:
        return ok(message)
    return warning(
        f"{message}, and the default is one for each of {count(cores, 'core')}",
        f"Raise max_connections, or set WEB_CONCURRENCY to at most {workers}. This check cannot "
        "see WEB_CONCURRENCY: ignore the warning if it is set.",
    )


def check_clock(connection: sa.Connection) -> Finding:
    server_time: datetime = connection.execute(sa.select(sa.func.clock_timestamp())).scalar_one()
    skew = abs(server_time - now())
    message = f"The clocks of Postgres and of this machine differ by {skew.total_seconds():.1f} s"
    if skew > CLOCK_FAILURE:
        return failure(message, SET_CLOCK)
    return warning(message, SET_CLOCK) if skew > MAX_SKEW else ok(message)


def _setting(connection: sa.Connection, name: str) -> str:
    statement = sa.text("SELECT setting FROM pg_settings WHERE name = :name")
    return str(connection.scalar(statement, {"name": name}))


CHECKS = (
    check_version,
    check_encoding,
    check_usernames,
    check_writes,
    check_timeouts,
    check_connections,
    check_clock,
)
