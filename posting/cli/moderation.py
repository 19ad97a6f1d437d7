"""`flask moderation`: the moderation log."""

import re
from functools import cache

import click
import sqlalchemy as sa
from flask.cli import AppGroup, with_appcontext

from posting.cli.examples import examples
from posting.db.engine import db
from posting.db.migrations import ensure_current
from posting.db.models import User
from posting.db.queries import get_moderation_log
from posting.db.types import ID_PATTERN, to_rfc3339

# The user's id in a target such as "user ID" or "post ID of ID".
USER_ID = re.compile(rf"(?:(?<=^user )|(?<= of )){ID_PATTERN.removeprefix('^')}")


@examples("flask moderation log")
@click.group(cls=AppGroup)
@with_appcontext
def moderation() -> None:
    """Review the actions of moderators and operators."""
    ensure_current()


@examples("flask moderation log", "flask moderation log --limit 10")
@moderation.command("log")
@click.option("--limit", default=100, show_default=True, type=click.IntRange(1))
def print_moderation_log(limit: int) -> None:
    """Print the actions of moderators and operators, newest first.

    Users appear with their current name, or with their id if the account is deleted.
    """

    @cache
    def username(user_id: str) -> str | None:
        return db.session.scalar(sa.select(User.username).filter_by(id=user_id))

    for action in get_moderation_log(limit):
        moderator = action.moderator
        if action.moderator_id:
            moderator = username(action.moderator_id) or f"{moderator} ({action.moderator_id})"
        target = USER_ID.sub(lambda match: username(match[0]) or match[0], action.target)
        click.echo(f"{to_rfc3339(action.created_at)} {moderator} {action.act} {target}")
