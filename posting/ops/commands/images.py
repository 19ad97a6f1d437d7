"""`flask images`: the thumbnails of images."""

import click
from flask.cli import AppGroup

from posting.cli import examples
from posting.db.migrations import require_current
from posting.ops.thumbnails import make_missing
from posting.plurals import count


@examples("flask images thumbnails")
@click.group(cls=AppGroup)
def images() -> None:
    """Maintain the images of posts."""


@examples("flask images thumbnails")
@images.command("thumbnails")
def make_thumbnails() -> None:
    """Make the thumbnails of images that have none.

    `flask doctor` says when this is needed. The service may run meanwhile. If the command is
    interrupted, run it again: it continues. Images that cannot be decoded are named at the end, and
    the exit code is 1.
    """
    require_current()
    made, failures = make_missing()
    click.echo(f"Made {count(made, 'thumbnail')}.")
    for failure in failures:
        click.echo(failure, err=True)
    if failures:
        raise click.exceptions.Exit(1)
