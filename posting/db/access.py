"""Access to the database: code may write unless it says that it only reads."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

READ_SECONDS = 2  # for each query of code that only reads, and for a search month by month

_writes = ContextVar("writes", default=True)


@contextmanager
def database_access(*, writes: bool) -> Iterator[None]:
    """Say whether the code within writes.

    If it only reads, `execute` is refused, and each query has two seconds. Commands and scripts
    need not say that they write.
    """
    token = _writes.set(writes)
    try:
        yield
    finally:
        _writes.reset(token)


def only_reads() -> bool:
    """Return whether the code that runs has said that it only reads."""
    return not _writes.get()
