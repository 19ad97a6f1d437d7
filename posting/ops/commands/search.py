"""`flask search`: the search index."""

import click
from flask.cli import AppGroup

from posting.cli import examples
from posting.db.migrations import require_current
from posting.ops.search import rebuild as rebuild_indexes
from posting.plurals import count


@examples("flask search rebuild")
@click.group(cls=AppGroup)
def search() -> None:
    """Maintain the search index."""


@examples("flask search rebuild")
@search.command("rebuild")
def rebuild() -> None:
    """Rebuild the search index, and correct the number of comments and the time of the last one.

    `flask doctor` says when this is needed. The service may run meanwhile.
    """
    require_current()
    *numbers, last = (count(rows, name) for name, rows in rebuild_indexes().items())
    click.echo(f"Indexed {', '.join(numbers)} and {last}.")
