"""Show the progress of long commands."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

import click

SECONDS_BETWEEN_LINES = 1.0


@contextmanager
def progress(label: str, total: int) -> Iterator[Callable[[int], None]]:
    """Yield a function that advances the progress shown on stderr.

    A terminal shows a bar. Elsewhere a line is printed per tenth, at most one a second.
    """
    if sys.stderr and sys.stderr.isatty():  # it is None if it is closed
        with click.progressbar(length=total, label=label, file=sys.stderr) as bar:
            yield bar.update
        return

    done, shown, shown_at = 0, 0, monotonic()
    click.echo(f"{label}: 0 of {total:,}", err=True)

    def advance(count: int) -> None:
        nonlocal done, shown, shown_at
        done += count
        is_due = (done - shown) * 10 >= total and monotonic() - shown_at >= SECONDS_BETWEEN_LINES
        if is_due or done == total:
            click.echo(f"{label}: {done:,} of {total:,}", err=True)
            shown, shown_at = done, monotonic()

    yield advance
