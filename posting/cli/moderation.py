"""`flask moderation`: see what moderators do."""

import click
from flask.cli import AppGroup, with_appcontext

from posting.cli.examples import example
from posting.database import db
from posting.migrations import ensure_current
from posting.models import ModerationAct


@click.group(cls=AppGroup)
@with_appcontext
def moderation() -> None:
    """See what moderators do."""
    ensure_current()


@example("flask moderation log", "flask moderation log --limit 10")
@moderation.command("log")
@click.option("--limit", default=100, show_default=True, type=click.IntRange(1))
def print_moderation_log(limit: int) -> None:
    """Print what moderators and operators did to others, the latest first."""
    for act in db.session.scalars(ModerationAct.latest(limit)):
        moment = act.created_at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        by = f"{act.moderator} ({act.moderator_id})" if act.moderator_id else act.moderator
        click.echo(f"{moment} {by} {act.act} {act.target}")
