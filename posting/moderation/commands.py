"""`flask moderation`: review the moderation log."""

import click
from flask.cli import AppGroup

from posting.cli import escape, examples
from posting.db.migrations import require_current
from posting.db.types import to_rfc3339
from posting.moderation import log


@examples("flask moderation log")
@click.group(cls=AppGroup)
def moderation() -> None:
    """Review the actions of moderators and operators."""


@examples("flask moderation log", "flask moderation log --limit 10")
@moderation.command("log")
@click.option("--limit", default=100, show_default=True, type=click.IntRange(1))
def print_moderation_log(limit: int) -> None:
    """Print the actions of moderators and operators, newest first.

    Users appear with their current name, or with their id if the account is deleted.
    """
    require_current()
    for act in log.list_latest_acts(limit):
        former = f"{act.moderator} ({act.moderator_id})" if act.moderator_id else act.moderator
        user = act.user_name or act.user_id
        target = log.describe_target(act.target_kind, act.target_id, user)
        moderator = act.moderator_name or former
        reason = f": {escape(act.reason)}" if act.reason else ""
        click.echo(f"{to_rfc3339(act.created_at)} {moderator} {act.action} {target}{reason}")
