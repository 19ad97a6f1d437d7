"""The schema's versions: is the database at the newest, and how it gets there."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import click
import flask_migrate
import sqlalchemy as sa
from alembic.script import ScriptDirectory
from flask import Flask

from posting.config import StartError
from posting.db.engine import db, error_reason, is_in_memory, sqlite_file

FOLDER = Path(__file__).parent
VERSIONS = sa.table("alembic_version", sa.column("version_num", sa.String(32)))
UPGRADE_LOCK = 7_067_873_716  # any number that nothing else on the Postgres server locks


class DatabaseAwayError(StartError):
    """The database does not answer, which may be over in a moment."""


@cache
def newest() -> str | None:
    """Return the revision that this code needs."""
    return ScriptDirectory(str(FOLDER)).get_current_head()


@cache
def known() -> frozenset[str]:
    """Return all revisions that this code knows, each of which it can upgrade."""
    return frozenset(each.revision for each in ScriptDirectory(str(FOLDER)).walk_revisions())


def revisions(connection: sa.Connection) -> list[str]:
    """Return the revision that a database is at, alone in a list; none before its first upgrade."""
    if not sa.inspect(connection).has_table(VERSIONS.name):
        return []
    return list(connection.scalars(sa.select(VERSIONS.c.version_num)))


def is_current() -> bool:
    """Tell whether the database is as this code needs it. Error: as any query when it is away."""
    return revisions(db.session.connection()) == [newest()]


def init_app(app: Flask) -> None:
    """Register `flask db`, and see to it that what serves requests has a current schema.

    Errors: as `ensure_current`.
    """
    flask_migrate.Migrate(app, db, directory=FOLDER)
    # While `flask` looks its command up it may yet be `flask db`, which upgrades an old schema.
    command = click.get_current_context(silent=True)
    if command is None or command.info_name == "run":
        with app.app_context():
            ensure_current()


def ensure_current() -> None:
    """Make the schema of a new SQLite database; of any other, make sure that it is current.

    Errors: DatabaseAwayError when it does not answer, StartError when it is no database, is not
    current and not new, or was made by newer code.
    """
    try:
        _ensure_current()
    except sa.exc.SQLAlchemyError as error:
        raise _unusable(error) from None
    finally:
        db.session.remove()
        if not is_in_memory():
            db.engine.dispose()  # workers that are forked later must not share a connection


def _unusable(error: sa.exc.SQLAlchemyError) -> StartError:
    file = sqlite_file()
    if file and not file.parent.is_dir():
        return StartError(
            f"There is no folder {file.parent} for the database. "
            "Make it, or name another with POSTING_DATABASE_URL."
        )
    url = db.engine.url.render_as_string(hide_password=True)
    kind = DatabaseAwayError if isinstance(error, sa.exc.OperationalError) else StartError
    return kind(
        f"The database {url} cannot be used ({error_reason(error)}). "
        "Check POSTING_DATABASE_URL and that the database is up."
    )


def _connect(engine: sa.Engine) -> sa.Connection:
    try:
        return engine.connect()
    except sa.exc.DBAPIError as error:
        raise _unusable(error) from None


def _ensure_current() -> None:
    found = revisions(db.session.connection())
    if found == [newest()]:
        return
    if not known().issuperset(found):
        raise StartError(
            f"The database has schema {found[0]}, which this version does not know: "
            "newer code made it. Install that version."
        )
    is_new = not sa.inspect(db.session.connection()).get_table_names()
    db.session.remove()
    if db.engine.dialect.name != "sqlite" or not is_new:
        raise StartError("The database schema is not current. Run: flask db upgrade")
    if is_in_memory():
        _create_all()
    else:
        flask_migrate.upgrade()


def _create_all() -> None:
    """Make all tables at once: a database that ends with its app has no versions to go through."""
    with db.engine.begin() as connection:
        db.metadata.create_all(connection)
        connection.exec_driver_sql("CREATE TABLE alembic_version (version_num VARCHAR(32))")
        connection.execute(VERSIONS.insert().values(version_num=newest()))


@contextmanager
def schema_change(engine: sa.Engine) -> Iterator[sa.Connection]:
    """Yield a connection in one transaction in which tables may be rebuilt.

    Several processes that upgrade at once take turns. On SQLite foreign keys are not enforced
    meanwhile, since dropping a parent table would delete its children; they are checked at the end.
    """
    with _connect(engine) as connection:
        on_sqlite = engine.dialect.name == "sqlite"
        if on_sqlite:
            raw: Any = connection.connection.driver_connection
            raw.execute("PRAGMA foreign_keys=OFF")
        try:
            with connection.begin():
                if not on_sqlite:
                    connection.execute(sa.select(sa.func.pg_advisory_xact_lock(UPGRADE_LOCK)))
                yield connection
                if on_sqlite and (
                    broken := connection.exec_driver_sql("PRAGMA foreign_key_check").all()
                ):
                    raise StartError(f"The upgrade would break foreign keys, undone: {broken[:3]}")
        finally:
            if on_sqlite:
                raw.execute("PRAGMA foreign_keys=ON")
