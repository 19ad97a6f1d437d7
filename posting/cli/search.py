"""`flask search`: the search index."""

import click
from flask.cli import AppGroup, with_appcontext

from posting.cli.examples import examples
from posting.db.migrations import ensure_current
from posting.ops import search as ops


@examples("flask search rebuild")
@click.group(cls=AppGroup)
@with_appcontext
def search() -> None:
    """Maintain the search index."""
    ensure_current()


@examples("flask search rebuild")
@search.command("rebuild")
def rebuild() -> None:
    """Rebuild the search index, and correct the time of the last comment on each post.

    `flask doctor` says when this is needed. The service may run meanwhile.
    """
    click.echo(f"Indexed {ops.rebuild():,} posts.")
