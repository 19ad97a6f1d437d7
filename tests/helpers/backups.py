"""Read, change and damage SQLite databases and their backups."""

import errno
import shutil
from contextlib import closing
from pathlib import Path

from pysqlite3 import dbapi2 as sqlite

SERVICE = (1234, 5678)  # a user and a group


def rows(file):
    """Return all rows of a database, table by table, without the epoch, which a restore renews."""
    with closing(sqlite.connect(file)) as connection:
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        return {
            name: connection.execute(f'SELECT * FROM "{name}" ORDER BY 1').fetchall()
            for (name,) in tables.fetchall()
            if name != "epochs"
        }


def change(file, *statements):
    with closing(sqlite.connect(file, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


def overwrite_pages(file):
    """Overwrite pages in the middle of a database."""
    with file.open("r+b") as pages:
        pages.seek(4096 * 4)
        pages.write(b"scribble" * 2048)


def garble_schema(file):
    """Change the schema so that SQLite's message about it is not valid UTF-8."""
    change(
        file,
        "PRAGMA writable_schema=ON",
        "UPDATE sqlite_master SET name = CAST(x'80ff' AS TEXT), sql = 'CREATE nonsense' "
        "WHERE name = 'posts'",
    )


def leave_stale_log(file, stale):
    """Leave a log beside a database, as a killed process does."""
    with closing(sqlite.connect(file, isolation_level=None)) as writer:
        writer.execute("PRAGMA journal_mode=WAL")
        writer.execute("UPDATE users SET bio = 'stale'")
        shutil.copy(f"{file}-wal", stale.with_suffix(".copy"))
    for left in (f"{file}-wal", f"{file}-shm"):
        Path(left).unlink(missing_ok=True)
    stale.with_suffix(".copy").rename(stale)


def fail_as_full(*_):
    raise OSError(errno.ENOSPC, "No space left on device")
