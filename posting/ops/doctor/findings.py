"""The findings of checks: a level, a message and what to do about it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Literal

import sqlalchemy as sa

from posting.db.errors import error_reason

SET_CLOCK = "Synchronize the clock, for example with: timedatectl set-ntp true"
MAX_SKEW = timedelta(seconds=2)
# The names of findings about a check that failed itself.
QUERY, RUN = "query", "run"


@dataclass(frozen=True)
class Finding:
    """The result of a check; all but "ok" have a fix."""

    level: Literal["ok", "warning", "failure"]
    message: str
    fix: str = ""
    check: str = ""  # the name of the check, if owners see the finding


Findings = Iterator[Finding]
ok = partial(Finding, "ok")
warning = partial(Finding, "warning")
failure = partial(Finding, "failure")


# Errors of a check that queries the database.
QUERY_ERRORS = (sa.exc.SQLAlchemyError, TypeError, ValueError)


def describe_error(error: Exception, failed: str, fix: str) -> Finding:
    """Return the finding for an error of a query. `failed` says what did not work."""
    # SQLite quotes damaged text in its messages, which may not be UTF-8.
    if isinstance(error, sa.exc.SQLAlchemyError | UnicodeDecodeError):
        return failure(f"{failed} ({error_reason(error)})", fix, QUERY)
    message = f"The database holds an invalid value ({error})"
    return failure(message, "Correct that value, or restore a backup.", QUERY)


def run(check: Callable[[], Findings]) -> Findings:
    """Yield what a check finds. One that cannot read a file is a failure as well."""
    try:
        yield from check()
    except OSError as error:
        fix = "Check the permissions of that file or folder."
        yield failure(f"A check could not run ({error})", fix, RUN)
