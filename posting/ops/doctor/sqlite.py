"""Checks of an SQLite database by what it says of itself."""

import sqlalchemy as sa

from posting.db.engine import SQLITE_PRAGMAS
from posting.db.models import Post
from posting.db.types import now
from posting.ops.doctor.findings import CLOCK_OFF, RESTORE, SET_CLOCK, Finding, failure, ok, warning
from posting.ops.doctor.schema import check_migrations

LEAST_VERSION = (3, 51, 3)  # older ones can corrupt a database in WAL mode
WRITTEN_IN = 2026  # no clock is right that is before this code
PRAGMA_VALUES = {"WAL": "wal", "FULL": "2", "ON": "1", "OFF": "0"}  # as SQLite tells them


def check_version(connection: sa.Connection) -> Finding:
    version = str(connection.scalar(sa.func.sqlite_version()))
    if tuple(map(int, version.split("."))) >= LEAST_VERSION:
        return ok(f"SQLite {version}")
    cure = "Run: pip install --upgrade pysqlite3"
    return failure(f"SQLite {version} may damage the database", cure)


def check_pragmas(connection: sa.Connection) -> Finding:
    wrong = []
    for pragma in SQLITE_PRAGMAS:
        name, _, value = pragma.partition("=")
        found = str(connection.exec_driver_sql(f"PRAGMA {name}").scalar())
        if found != PRAGMA_VALUES.get(value, value):
            wrong.append(f"{name} is {found} and not {value}")
    if not wrong:
        return ok("SQLite keeps what it has committed, and checks foreign keys")
    return failure(
        f"SQLite does not do as it is told: {', '.join(wrong)}",
        "Set POSTING_DATABASE_URL to a file on a disk of this machine.",
    )


def check_integrity(connection: sa.Connection) -> Finding:
    answer = str(connection.exec_driver_sql("PRAGMA quick_check(1)").scalar())
    orphans = connection.exec_driver_sql("PRAGMA foreign_key_check").all()
    if answer != "ok":
        return failure(f"The database is damaged: {' '.join(answer.split())}", RESTORE)
    if orphans:
        return failure(f"{len(orphans)} foreign keys are broken, as in {orphans[0][0]}", RESTORE)
    return ok("quick_check and foreign_key_check find nothing")


def check_clock(connection: sa.Connection) -> Finding:
    moment = now()
    if moment.year < WRITTEN_IN:
        return warning(f"This clock says that it is {moment:%Y}", SET_CLOCK)
    if sa.inspect(connection).has_table(Post.__tablename__):
        latest = connection.scalar(sa.select(sa.func.max(Post.created_at)))
        if latest and latest > moment + CLOCK_OFF:
            return warning(
                f"There are posts from {latest:%Y-%m-%d %H:%M}, later than now", SET_CLOCK
            )
    return ok(f"The clock says {moment:%Y-%m-%d %H:%M:%S} UTC")


CHECKS = (check_version, check_pragmas, check_migrations, check_integrity, check_clock)
