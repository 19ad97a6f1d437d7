"""Errors of SQLite and Postgres: their codes, reasons and violated constraints."""

import re

import sqlalchemy as sa

# Beginnings of the names of SQLite's result codes and of Postgres's SQLSTATEs
# (https://www.postgresql.org/docs/current/errcodes-appendix.html).
CANCELED = ("SQLITE_INTERRUPT", "57014")
DISK_FULL = ("SQLITE_FULL", "SQLITE_IOERR_SHMSIZE", "53100")
IO_ERROR = "SQLITE_IOERR"  # pysqlite3 does not say of which kind
FILE_MOVED = "SQLITE_READONLY_DBMOVED"  # the file was moved, deleted or replaced while it is open
UNAVAILABLE = (
    *("SQLITE_BUSY", "SQLITE_CANTOPEN", IO_ERROR, "SQLITE_LOCKED", "SQLITE_PROTOCOL"),
    *("SQLITE_READONLY", "25006"),
    "08",  # connection exception
    "40",  # transaction rollback, such as a deadlock
    "53",  # insufficient resources
    "55",  # object not in prerequisite state, such as a lock that is not available
    "57",  # operator intervention, such as a shutdown
    "58",  # system error
)
# Refusals of the user, the password or the database by Postgres. psycopg returns no SQLSTATE for a
# connection that fails, only the server's message, which may be in another language than English.
REFUSED = (
    "28",  # invalid authorization specification
    "3D000",  # no such database
)
_is_refusal = re.compile(
    r"FATAL: +(role|database|user) \".*\" (does not exist|is not permitted to log in)"
    # LDAP authentication and the like also fail while another server is down.
    r"|FATAL: +(password|Peer|Ident|certificate|SASL) authentication failed"
    r"|FATAL: +(no pg_hba.conf entry|pg_hba.conf rejects|permission denied for database)"
    r"|FATAL: +no such (database|user)"  # of PgBouncer
).search


def error_code(error: Exception) -> str:
    """Return the name of SQLite's result code or the SQLSTATE of an error, or "" if it has none."""
    cause = getattr(error, "orig", None)
    return getattr(cause, "sqlite_errorname", None) or getattr(cause, "sqlstate", None) or ""


def error_reason(error: Exception) -> str:
    """Return the first line of the database's error. Other lines may show data of the row."""
    return str(getattr(error, "orig", None) or error).strip().partition("\n")[0]


def is_refusal(error: sa.exc.SQLAlchemyError) -> bool:
    """Return whether Postgres refuses the user, the password or the database of a connection.

    Return False for a refusal in another language than English that has no SQLSTATE.
    """
    cause = getattr(error, "orig", None)
    return (
        (getattr(cause, "sqlstate", None) or "").startswith(REFUSED)
        or getattr(getattr(cause, "pgconn", None), "needs_password", False)
        or _is_refusal(str(cause)) is not None
    )


def violated_constraint(error: sa.exc.IntegrityError) -> str:
    """Return the name of the unique constraint that a statement violated, else "".

    The name is the same on both databases. A foreign key has none, since SQLite does not name it.
    """
    diagnostics = getattr(error.orig, "diag", None)
    name = diagnostics.constraint_name if diagnostics else None
    if name is None and (match := re.search(r"UNIQUE.*index '(\w+)'", str(error.orig))):
        name = match[1]
    return name if name and name.startswith("uq_") else ""
