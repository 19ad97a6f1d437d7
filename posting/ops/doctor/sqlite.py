"""Checks of an SQLite database, made with queries."""

import sqlalchemy as sa

from posting.db.engine import SQLITE_PRAGMAS
from posting.db.models import Post
from posting.db.types import now
from posting.ops.doctor.findings import MAX_SKEW, RESTORE, SET_CLOCK, Finding, failure, ok, warning
from posting.ops.doctor.schema import check_schema

MIN_VERSION = (3, 51, 3)  # older versions can corrupt a database in WAL mode
MIN_YEAR = 2026  # of this code; a clock before it is wrong
PRAGMA_VALUES = {"WAL": "wal", "FULL": "2", "ON": "1", "OFF": "0"}  # as SQLite returns them


def check_version(connection: sa.Connection) -> Finding:
    version = str(connection.scalar(sa.func.sqlite_version()))
    if tuple(map(int, version.split("."))) >= MIN_VERSION:
        return ok(f"SQLite {version}")
    fix = "Run: pip install --upgrade pysqlite3"
    return failure(f"SQLite {version} can corrupt the database", fix)


def check_pragmas(connection: sa.Connection) -> Finding:
    wrong = []
    for pragma in SQLITE_PRAGMAS:
        name, _, value = pragma.partition("=")
        found = str(connection.exec_driver_sql(f"PRAGMA {name}").scalar())
        if found != PRAGMA_VALUES.get(value, value):
            wrong.append(f"{name} is {found} and not {value}")
    if not wrong:
        return ok("SQLite writes commits to disk and enforces foreign keys")
    return failure(
        f"SQLite ignores settings: {', '.join(wrong)}",
        "Set POSTING_DATABASE_URL to a file on a local disk.",
    )


def check_integrity(connection: sa.Connection) -> Finding:
    answer = str(connection.exec_driver_sql("PRAGMA quick_check(1)").scalar())
    orphans = connection.exec_driver_sql("PRAGMA foreign_key_check").mappings().all()
    if answer != "ok":
        return failure(f"The database is damaged: {' '.join(answer.split())}", RESTORE)
    if orphans:
        table = orphans[0]["table"]
        return failure(f"{len(orphans)} foreign keys are broken, for example in {table}", RESTORE)
    return ok("quick_check and foreign_key_check found no errors")


def check_clock(connection: sa.Connection) -> Finding:
    current = now()
    if current.year < MIN_YEAR:
        return warning(f"The clock of this machine is in {current:%Y}", SET_CLOCK)
    if sa.inspect(connection).has_table(Post.__tablename__):
        latest = connection.scalar(sa.select(sa.func.max(Post.created_at)))
        if latest and latest > current + MAX_SKEW:
            message = f"The newest post is from {latest:%Y-%m-%d %H:%M}, which is in the future"
            return warning(message, SET_CLOCK)
    return ok(f"The clock of this machine is at {current:%Y-%m-%d %H:%M:%S} UTC")


CHECKS = (check_version, check_pragmas, check_schema, check_integrity, check_clock)
