"""Checks of a Postgres database by what it says of itself."""

import os
from datetime import datetime, timedelta

import sqlalchemy as sa

from posting.db.engine import POOL, POSTGRES_TIMEOUTS, db
from posting.db.types import now
from posting.ops.doctor.findings import CLOCK_OFF, SET_CLOCK, Finding, failure, ok, warning
from posting.ops.doctor.schema import check_migrations

LEAST_VERSION = (13,)
CLOCK_WRONG = timedelta(seconds=60)
NOT_PERMITTED = sa.text("""
    SELECT name FROM unnest(CAST(:names AS text[])) AS name WHERE NOT (
        has_table_privilege(to_regclass(name), 'SELECT')
        AND has_table_privilege(to_regclass(name), 'INSERT')
        AND has_table_privilege(to_regclass(name), 'UPDATE')
        AND has_table_privilege(to_regclass(name), 'DELETE')
    )""")  # of no table that is not there yet


def check_version(connection: sa.Connection) -> Finding:
    version = connection.dialect.server_version_info or ()
    name = f"Postgres {'.'.join(map(str, version))}"
    if version >= LEAST_VERSION:
        return ok(name)
    return failure(f"{name} is too old", f"Upgrade it to {LEAST_VERSION[0]} or newer.")


def check_encoding(connection: sa.Connection) -> Finding:
    encoding = _setting(connection, "server_encoding")
    if encoding == "UTF8":
        return ok("The database holds texts as UTF8")
    return failure(
        f"The database holds texts as {encoding}, which lacks letters",
        "Make one with: createdb --encoding=UTF8 --template=template0 NAME",
    )


def check_usernames(connection: sa.Connection) -> Finding:
    if not sa.inspect(connection).has_table("users"):
        return ok("There are no usernames yet")
    statement = sa.text(
        "SELECT collation_name FROM information_schema.columns WHERE table_name = 'users' "
        "AND column_name = 'username' AND table_schema = ANY(current_schemas(false))"
    )
    collation = connection.scalar(statement) or "the database's"
    if collation == "C":
        return ok("Usernames are compared independently of the locale")
    return failure(
        f"Usernames are compared by the collation {collation}, by which one may be taken twice",
        "Run: flask db upgrade. If the schema is current, run in psql: "
        'ALTER TABLE users ALTER COLUMN username TYPE varchar(32) COLLATE "C"',
    )


def check_writing(connection: sa.Connection) -> Finding:
    if connection.scalar(sa.select(sa.func.pg_is_in_recovery())):
        return failure(
            "This Postgres is a standby, which takes no writes",
            "Set POSTING_DATABASE_URL to the primary server.",
        )
    if _setting(connection, "transaction_read_only") == "on":
        return failure(
            "Postgres takes no writes here",
            "Turn default_transaction_read_only off, where the server, the database or the role "
            "sets it.",
        )
    names = {"names": sorted(db.metadata.tables)}
    if not (refused := connection.scalars(NOT_PERMITTED, names).all()):
        return ok("Postgres takes writes")
    user, tables = connection.scalar(sa.select(sa.func.current_user())), ", ".join(refused)
    return failure(
        f"{user} may not write {tables}",
        f'As their owner run: GRANT SELECT, INSERT, UPDATE, DELETE ON {tables} TO "{user}"',
    )


def check_timeouts(connection: sa.Connection) -> Finding:
    found = {name: _setting(connection, name) for name in POSTGRES_TIMEOUTS}
    wrong = [name for name, value in POSTGRES_TIMEOUTS.items() if found[name] != str(value)]
    if not wrong:
        return ok("Postgres ends what takes too long")
    shown = ", ".join(f"{name} is {found[name]} ms" for name in wrong)
    cure = "Let the pooler in between pass on `options`, or set them with ALTER ROLE."
    return warning(f"Postgres was told other limits of time: {shown}", cure)


def check_connections(connection: sa.Connection) -> Finding:
    names = ("max_connections", "superuser_reserved_connections")
    most, reserved = (int(_setting(connection, name)) for name in names)
    workers, cores = (most - reserved) // int(POOL["pool_size"]), os.cpu_count() or 1
    what = f"Postgres takes the connections of {workers} workers, all machines together"
    if cores <= workers:
        return ok(what)
    return warning(
        f"{what}, and there would be one for each of {cores:,} cores",
        f"Raise max_connections. Or start at most {workers}, by WEB_CONCURRENCY, which is not seen "
        "from here: this line is then no matter.",
    )


def _setting(connection: sa.Connection, name: str) -> str:
    statement = sa.text("SELECT setting FROM pg_settings WHERE name = :name")
    return str(connection.scalar(statement, {"name": name}))


def check_integrity(_connection: sa.Connection) -> Finding:
    return ok("Postgres looks after its own pages")


def check_clock(connection: sa.Connection) -> Finding:
    theirs: datetime = connection.execute(sa.select(sa.func.clock_timestamp())).scalar_one()
    off = abs(theirs - now())
    what = f"The clocks of Postgres and of this machine differ by {off.total_seconds():.1f} s"
    if off > CLOCK_WRONG:
        return failure(what, SET_CLOCK)
    return warning(what, SET_CLOCK) if off > CLOCK_OFF else ok(what)


CHECKS = (
    check_version,
    check_encoding,
    check_usernames,
    check_writing,
    check_timeouts,
    check_connections,
    check_migrations,
    check_integrity,
    check_clock,
)
