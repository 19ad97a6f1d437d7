"""`flask doctor`: check an installation."""

import click
from flask.cli import with_appcontext

from posting.cli import examples
from posting.ops import doctor

COLORS = {"ok": "green", "warning": "yellow", "failure": "red"}
WIDTH = max(map(len, COLORS)) + 2


@examples("flask doctor", "flask doctor && systemctl restart posting")
@click.command("doctor")
@with_appcontext
def examine() -> None:
    """Check the settings, database, search index, backups, disk, clock and nginx.

    Each line is ok, a warning or a failure, with its fix on the next line. The exit code is 1 after
    a failure. Run it as the user of the service. It changes nothing.
    """
    failed = False
    for finding in doctor.examine():
        level = click.style(finding.level.ljust(WIDTH), COLORS[finding.level])
        click.echo(level + finding.message)
        if finding.fix:
            click.echo(" " * WIDTH + finding.fix)
        failed = failed or finding.level == "failure"
    if failed:
        raise click.exceptions.Exit(1)
