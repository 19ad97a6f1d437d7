"""`flask moderation`: see what moderators do."""

import re
from functools import cache

import click
import sqlalchemy as sa
from flask.cli import AppGroup, with_appcontext

from posting.cli.examples import example
from posting.db.engine import db
from posting.db.migrations import ensure_current
from posting.db.models import User
from posting.db.queries import get_moderation_log
from posting.db.types import ID_PATTERN

# In a target such as "user ID", or "post ID of ID", of which the first is a post's.
USER_AT_END = re.compile(rf"(?:(?<=^user )|(?<= of )){ID_PATTERN.removeprefix('^')}")


@click.group(cls=AppGroup)
@with_appcontext
def moderation() -> None:
    """See what moderators do."""
    ensure_current()


@example("flask moderation log", "flask moderation log --limit 10")
@moderation.command("log")
@click.option("--limit", default=100, show_default=True, type=click.IntRange(1))
def print_moderation_log(limit: int) -> None:
    """Print what moderators and operators did to others, the latest first.

    Users are named as they are today, or by their id where the account is gone.
    """

    @cache
    def name_of(user_id: str) -> str | None:
        return db.session.scalar(sa.select(User.username).filter_by(id=user_id))

    for act in get_moderation_log(limit):
        moment = act.created_at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        by = act.moderator
        if act.moderator_id:
            by = name_of(act.moderator_id) or f"{act.moderator} ({act.moderator_id})"
        target = USER_AT_END.sub(lambda user: name_of(user[0]) or user[0], act.target)
        click.echo(f"{moment} {by} {act.act} {target}")
