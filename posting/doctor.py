"""What may be wrong with an installation, and what to do about it: `flask doctor` prints it."""

import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path
from urllib.parse import urlsplit

import sqlalchemy as sa
from flask import current_app

from posting.database import (
    POOL,
    POSTGRES_TIMEOUTS,
    SQLITE_PRAGMAS,
    db,
    in_memory,
    reason,
    sqlite_file,
)
from posting.migrations import known, newest, revisions
from posting.models import Post
from posting.moments import now
from posting.protocol.hosts import LOOPBACK

MIB = 2**20
LEAST_HASH_COST = 2**14 * 8 * 5  # the least N * r * p of what OWASP's password storage sheet lists
LEAST_SQLITE = (3, 51, 3)  # older ones can corrupt a database in WAL mode
LEAST_POSTGRES = (13,)
LARGE_WAL = 256 * MIB
LITTLE_SPACE, NO_SPACE = 1024 * MIB, 100 * MIB
CLOCK_OFF, CLOCK_WRONG = timedelta(seconds=2), timedelta(seconds=60)
WRITTEN_IN = 2026  # no clock is right that is before this code
SET_CLOCK = "Let the system keep time, such as by: timedatectl set-ntp true"
SQLITE = b"SQLite format 3\0"  # the first bytes of a file, as sqlite.org/fileformat.html says
WAL_MODE = b"\2\2"
MEND = "Mend that value, or put back a backup."
RESTORE = "See who holds it open; if it is damaged: flask restore --force FILE"
NOT_PERMITTED = sa.text("""
    SELECT name FROM unnest(CAST(:names AS text[])) AS name WHERE NOT (
        has_table_privilege(to_regclass(name), 'SELECT')
        AND has_table_privilege(to_regclass(name), 'INSERT')
        AND has_table_privilege(to_regclass(name), 'UPDATE')
        AND has_table_privilege(to_regclass(name), 'DELETE')
    )""")  # of no table that is not there yet
PRAGMA_VALUES = {"WAL": "wal", "FULL": "2", "ON": "1", "OFF": "0"}  # as SQLite tells them


class Level(StrEnum):
    """How bad it is."""

    OK = "ok"
    WARNING = "warning"
    FAILURE = "failure"


@dataclass(frozen=True)
class Finding:
    """What a check has seen, and what to do if that is not good."""

    level: Level
    what: str
    cure: str = ""


Findings = Iterator[Finding]


def ok(what: str) -> Finding:
    return Finding(Level.OK, what)


def warning(what: str, cure: str) -> Finding:
    return Finding(Level.WARNING, what, cure)


def failure(what: str, cure: str) -> Finding:
    return Finding(Level.FAILURE, what, cure)


def examine() -> Findings:
    """Yield what all checks find. What cannot be looked at is a failure, and no error."""
    for check in (*CHECKS, _examine_database):
        try:
            yield from check()
        except OSError as error:
            yield failure(f"A check could not be made ({error})", "Check that folder's rights.")


def _examine_database() -> Findings:
    """Yield what the database says of itself, if it is there: looking makes none.

    To connect is to put a database into WAL mode. So nobody connects to what is not in it.
    """
    on_sqlite = db.engine.dialect.name == "sqlite"
    if in_memory():
        cure = "Set POSTING_DATABASE_URL to a file or a Postgres server, or remove it."
        yield warning("The database is in memory, and ends with its process", cure)
        return
    if (file := sqlite_file()) and (obstacle := _obstacle(file)):
        yield obstacle
        return
    cure = RESTORE if on_sqlite else "Check POSTING_DATABASE_URL and that the server is up."
    try:
        db.engine.connect().close()
    except sa.exc.SQLAlchemyError as error:
        yield failure(f"The database cannot be used ({reason(error)})", cure)
        return
    for check in SQLITE_CHECKS if on_sqlite else POSTGRES_CHECKS:
        try:
            with db.engine.connect().execution_options(writes=False) as connection:
                yield check(connection)
        except sa.exc.SQLAlchemyError as error:
            yield failure(f"The database does not answer ({reason(error)})", cure)
        except (TypeError, ValueError) as error:
            yield failure(f"The database holds what cannot be read ({error})", MEND)


def _obstacle(file: Path) -> Finding | None:
    """Return why a file is not to be opened as a database."""
    if file.is_dir():
        return failure(f"{file} is a folder", "Name a file in it with POSTING_DATABASE_URL.")
    if not file.exists() or not file.stat().st_size:
        return failure(f"There is no database in {file} yet", "Run: flask db upgrade")
    with file.open("rb") as pages:
        header = pages.read(20)
    if header[:16] != SQLITE or header[18:] == WAL_MODE:
        return None
    return warning(
        f"The service has not used {file} yet, or its disk does not let it",
        "Start the service, if this is its database. It has to be on a disk of this machine.",
    )


def check_passwords() -> Findings:
    shortest = current_app.config["PASSWORD_MIN"]
    advice = "" if shortest >= 15 else "; 15 is better"
    yield ok(f"Passwords have {shortest} characters or more{advice}")
    chosen = current_app.config["PASSWORD_HASH"]
    n, r, p = map(int, chosen.split(":")[1:])
    if n * r * p >= LEAST_HASH_COST:
        yield ok(f"Passwords are hashed with {chosen}")
    else:
        yield failure(
            f"Passwords are hashed with {chosen}, which makes guessing cheap",
            "Remove POSTING_PASSWORD_HASH, for scrypt:32768:8:3; sign-ins renew the hashes.",
        )


def check_limits() -> Findings:
    wrong = "Nothing limits who guesses passwords"
    if current_app.config["RATE_LIMITS"] == "off":
        yield warning(wrong, "Remove POSTING_RATE_LIMITS.")
    elif current_app.config["LIMIT_SIGNIN"] is None:
        yield warning(wrong, "Remove POSTING_LIMIT_SIGNIN.")
    else:
        yield ok("Guesses of passwords are limited")


def check_public_url() -> Findings:
    url = current_app.config["PUBLIC_URL"]
    if not url:
        yield warning(
            "There is no public URL: any host is answered, and cookies are not Secure",
            "Set POSTING_PUBLIC_URL to what browsers see, such as https://example.org",
        )
    elif url.startswith("http:") and not _is_loopback(url):
        yield warning(
            f"Whoever is on the way to {url} can read passwords and cookies",
            "Serve it by https, and set POSTING_PUBLIC_URL to that.",
        )
    else:
        yield ok(f"The public URL is {url}")


def _is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname
    return host in LOOPBACK or f"[{host}]" in LOOPBACK


def check_proxy_hops() -> Findings:
    url, hops = current_app.config["PUBLIC_URL"] or "", current_app.config["PROXY_HOPS"]
    if url.startswith("https:") and not hops:
        yield warning(
            "No proxy is believed: behind one, all clients share its address and its limits",
            "Set POSTING_PROXY_HOPS=1, and let the proxy set X-Forwarded-For and -Proto.",
        )
    elif hops and not url:
        yield warning(
            f"Proxies that are believed: {hops}, whatever host they name",
            "Set POSTING_PUBLIC_URL to what browsers see, such as https://example.org",
        )
    else:
        yield ok(f"Proxies that are believed: {hops}")


def check_secret_key() -> Findings:
    name = current_app.config["SECRET_KEY_FILE"]
    if not name:
        yield ok("The secret key is in no file")
        return
    status = Path(name).stat()
    if status.st_mode & stat.S_IWGRP:
        yield warning(f"A group may write the secret key in {name}", f"Run: chmod g-w {name}")
    elif owner := _owner_wanted(Path(name)):
        yield _disowned(name, owner)
    else:
        yield ok(f"The secret key is in {name}, mode {_mode(status)}")


def check_database_file() -> Findings:
    file = sqlite_file()
    if not file:
        return
    folder = file.parent
    yield _space(folder)
    if not file.is_file():
        return  # which the examination of the database tells
    status = file.stat()
    if shut := next((p for p in (folder, file) if not os.access(p, os.R_OK | os.W_OK)), None):
        yield _unwritable(shut)
    elif db.engine.url.query.get("mode") == "ro":
        yield failure("The database is opened for reading only", "Remove mode=ro from its URL.")
    elif owner := _owner_wanted(file):
        yield _disowned(file, owner)
    if status.st_mode & stat.S_IROTH and folder.stat().st_mode & stat.S_IXOTH:
        yield warning(f"Everybody on this machine may read {file}", f"Run: chmod o= {file}*")
    else:
        yield ok(f"The database is in {file}, mode {_mode(status)}")
    log = file.with_name(f"{file.name}-wal")
    if log.exists() and (size := log.stat().st_size) > LARGE_WAL:
        yield warning(
            f"{log} has {size / MIB:,.0f} MiB: somebody reads and does not end",
            "Restart the service, and what else has the database open.",
        )


def _unwritable(path: Path) -> Finding:
    """Return why a file or folder that is there cannot be read and written."""
    if os.statvfs(path).f_flag & os.ST_RDONLY:
        return failure(
            f"{path} is on a file system for reading only",
            f"See if its disk fails; if not: mount -o remount,rw {path}",
        )
    me = os.geteuid()
    own = f"Run: chmod u+rw {path}"
    other = f"Run this as the service's user. If user {me} is that: chown {me} {path}"
    return failure(f"{path} cannot be written", own if path.stat().st_uid == me else other)


def _owner_wanted(file: Path) -> int | None:
    """Return who should own a file, if that is another user than does.

    Root's files may be meant to be only read. But when root asks, who cannot see what others may
    do, they are taken for made by mistake where root does not own their folder.
    """
    owner, me = file.stat().st_uid, os.geteuid()
    if me:
        return None if owner in {0, me} else me
    wanted = file.parent.stat().st_uid
    return None if owner or not wanted else wanted


def _disowned(path: object, owner: int) -> Finding:
    return warning(f"{path} belongs to another user", f"Run: chown {owner} {path}")


def _mode(status: os.stat_result) -> str:
    return f"{stat.S_IMODE(status.st_mode):04o}"


def _space(folder: Path) -> Finding:
    usage = shutil.disk_usage(folder)
    what, cure = f"{folder} has {usage.free / MIB:,.0f} MiB free", f"Make room in {folder}"
    if usage.free < NO_SPACE:
        return failure(what, cure)
    if usage.free < LITTLE_SPACE or usage.free < usage.total / 20:
        return warning(what, cure)
    return ok(what)


def check_temporary_folder() -> Findings:
    folder = tempfile.gettempdir()  # where larger forms wait while they arrive
    if shutil.disk_usage(folder).free >= NO_SPACE:
        yield ok(f"{folder} has room for uploads")
    else:
        yield warning(f"{folder} has little room for uploads", f"Make room in {folder}")


def check_sqlite_version(connection: sa.Connection) -> Finding:
    version = str(connection.scalar(sa.func.sqlite_version()))
    if tuple(map(int, version.split("."))) >= LEAST_SQLITE:
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


def check_migrations(connection: sa.Connection) -> Finding:
    found = revisions(connection)
    if found == [newest()]:
        return ok(f"The schema is current, at {newest()}")
    if set(found) <= known():
        was = found[0] if found else "none"
        return failure(f"The schema is at {was} and not at {newest()}", "Run: flask db upgrade")
    on_sqlite = connection.dialect.name == "sqlite"
    command = "flask restore --force FILE" if on_sqlite else "pg_restore"
    return failure(
        f"The schema is at {found[0]}, which this version does not know: newer code made it",
        f"Install that version again, or put back a backup from before: {command}",
    )


def check_sqlite_integrity(connection: sa.Connection) -> Finding:
    answer = str(connection.exec_driver_sql("PRAGMA quick_check(1)").scalar())
    orphans = connection.exec_driver_sql("PRAGMA foreign_key_check").all()
    if answer != "ok":
        return failure(f"The database is damaged: {' '.join(answer.split())}", RESTORE)
    if orphans:
        return failure(f"{len(orphans)} foreign keys are broken, as in {orphans[0][0]}", RESTORE)
    return ok("quick_check and foreign_key_check find nothing")


def check_sqlite_clock(connection: sa.Connection) -> Finding:
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


def check_postgres_version(connection: sa.Connection) -> Finding:
    version = connection.dialect.server_version_info or ()
    name = f"Postgres {'.'.join(map(str, version))}"
    if version >= LEAST_POSTGRES:
        return ok(name)
    return failure(f"{name} is too old", f"Upgrade it to {LEAST_POSTGRES[0]} or newer.")


def check_encoding(connection: sa.Connection) -> Finding:
    encoding = _setting(connection, "server_encoding")
    if encoding == "UTF8":
        return ok("The database holds texts as UTF8")
    return failure(
        f"The database holds texts as {encoding}, which lacks letters",
        "Make one with: createdb --encoding=UTF8 --template=template0 NAME",
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


def check_postgres_integrity(_connection: sa.Connection) -> Finding:
    return ok("Postgres looks after its own pages")


def check_postgres_clock(connection: sa.Connection) -> Finding:
    theirs: datetime = connection.execute(sa.select(sa.func.clock_timestamp())).scalar_one()
    off = abs(theirs - now())
    what = f"The clocks of Postgres and of this machine differ by {off.total_seconds():.1f} s"
    if off > CLOCK_WRONG:
        return failure(what, SET_CLOCK)
    return warning(what, SET_CLOCK) if off > CLOCK_OFF else ok(what)


CHECKS: tuple[Callable[[], Findings], ...] = (
    check_passwords,
    check_limits,
    check_public_url,
    check_proxy_hops,
    check_secret_key,
    check_temporary_folder,
    check_database_file,
)
DatabaseChecks = tuple[Callable[[sa.Connection], Finding], ...]
SQLITE_CHECKS: DatabaseChecks = (
    check_sqlite_version,
    check_pragmas,
    check_migrations,
    check_sqlite_integrity,
    check_sqlite_clock,
)
POSTGRES_CHECKS: DatabaseChecks = (
    check_postgres_version,
    check_encoding,
    check_writing,
    check_timeouts,
    check_connections,
    check_migrations,
    check_postgres_integrity,
    check_postgres_clock,
)
