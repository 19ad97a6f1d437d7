"""`flask doctor`: what is wrong with an installation."""

import click
from flask.cli import with_appcontext

from posting.cli.examples import examples
from posting.ops import doctor
from posting.ops.doctor.findings import Level

COLOURS = {Level.OK: "green", Level.WARNING: "yellow", Level.FAILURE: "red"}
WIDTH = max(map(len, Level)) + 2


@examples("flask doctor", "flask doctor && systemctl reload posting")
@click.command("doctor")
@with_appcontext
def examine() -> None:
    """Look over settings, secret key, database, disk and clock.

    Each line is ok, a warning or a failure, with its cure below it. The exit code is 1 if there is
    a failure. Run it as the user that the service runs as. It changes nothing, but that like any
    command it makes the secret key if there is none.
    """
    worst = Level.OK
    for finding in doctor.examine():
        click.echo(click.style(finding.level.ljust(WIDTH), COLOURS[finding.level]) + finding.what)
        if finding.cure:
            click.echo(" " * WIDTH + finding.cure)
        if finding.level is Level.FAILURE:
            worst = Level.FAILURE
    if worst is Level.FAILURE:
        raise click.exceptions.Exit(1)
