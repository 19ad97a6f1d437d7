"""Errors of the database as HTTP errors, so that views need not translate them."""

from http import HTTPStatus

import sqlalchemy as sa
from pysqlite3 import dbapi2 as sqlite
from werkzeug.exceptions import HTTPException, ServiceUnavailable

from posting.db.errors import CANCELED, DISK_FULL, FILE_MOVED, IO_ERROR, UNAVAILABLE, error_code
from posting.web.problems import Coded


class DatabaseBusy(Coded, ServiceUnavailable):
    error_code = "database_busy"
    description = "The database is busy or unavailable; try again."

    def __init__(self) -> None:
        super().__init__(retry_after=1)


class QueryTimeout(Coded, ServiceUnavailable):
    error_code = "query_timeout"
    description = "The database took too long to answer; try again later, or ask for less."

    def __init__(self) -> None:
        super().__init__(retry_after=10)


class DatabaseMoved(Coded, ServiceUnavailable):
    error_code = "database_moved"
    description = (
        "The file of the database was deleted or replaced, so nothing was saved; tell the operator "
        "of this service to restart it."
    )

    def __init__(self) -> None:
        super().__init__(retry_after=60)


class StorageFull(Coded, HTTPException):
    code = HTTPStatus.INSUFFICIENT_STORAGE
    error_code = "storage_full"
    description = (
        "The disk of this service is full or broken, so nothing was saved; tell its operator."
    )


def to_http_error(error: sa.exc.DBAPIError | sa.exc.TimeoutError) -> HTTPException | None:
    """Return the HTTP error for a database that is full, unavailable or too slow.

    Return None for other errors, such as damaged data.
    """
    code = error_code(error)
    if code.startswith(CANCELED):
        return QueryTimeout()
    if code == FILE_MOVED:
        return DatabaseMoved()
    # SQLite reports a disk quota as an I/O error, and a failed commit has no statement. On a broken
    # disk, repeating a write does not help either.
    is_query = (getattr(error, "statement", None) or "").lstrip().startswith(("SELECT", "WITH"))
    if code.startswith(DISK_FULL) or (code.startswith(IO_ERROR) and not is_query):
        return StorageFull()
    # An error without a code is about the connection. The exception is SQLite's error for text that
    # is not UTF-8.
    if not code and isinstance(error, sa.exc.OperationalError | sa.exc.TimeoutError):
        is_unavailable = not isinstance(getattr(error, "orig", None), sqlite.Error)
    else:
        is_unavailable = code.startswith(UNAVAILABLE)
    if is_unavailable or getattr(error, "connection_invalidated", False):
        return DatabaseBusy()
    return None
