"""`flask outbox`: what is to be sent, and what could not be sent."""

import click
from flask.cli import AppGroup

from posting.cli import escape, examples
from posting.db.migrations import require_current
from posting.db.transactions import Row, unit_of_work
from posting.db.types import to_rfc3339
from posting.outbox import store
from posting.outbox.delivery import deliver_now
from posting.plurals import count

IDS = {"ignore_unknown_options": True}  # ids such as -x


@examples("flask outbox list", "flask outbox retry")
@click.group(cls=AppGroup)
def outbox() -> None:
    """Look after what the service sends, such as mails."""


@examples("flask outbox list", "flask outbox list --limit 10")
@outbox.command("list")
@click.option("--limit", default=100, show_default=True, type=click.IntRange(1))
def print_outbox(limit: int) -> None:
    """Print what was given up, and what is to be sent, oldest first."""
    require_current()
    for row in store.list_outbox(limit):
        receiver = row.user_id or row.about or "-"
        error = f": {escape(row.error)}" if row.error else ""
        click.echo(
            f"{row.id} {to_rfc3339(row.queued_at)} {row.channel} {row.kind} {receiver} "
            f"{_state(row)}{error}"
        )


def _state(row: Row) -> str:
    if row.failed_at:
        return f"given up {to_rfc3339(row.failed_at)}"
    if store.is_being_sent(row):
        return "being sent"
    return f"attempt {row.attempts + 1} at {to_rfc3339(row.due_at)}" if row.attempts else "waits"


@examples("flask outbox retry", "flask outbox retry V1StGXR8_Z5jdHi6B-myT")
@outbox.command("retry", context_settings=IDS)
@click.argument("ids", metavar="[ID]...", nargs=-1)
def retry(ids: tuple[str, ...]) -> None:
    """Try to send what has an ID again, or everything if no ID is given.

    The service sends it at once, and tries for two days. What is being sent stays as it is.
    """
    require_current()
    with unit_of_work():
        number = store.retry(ids)
        _require_all(number, ids)
    click.echo(f"{count(number, 'item')} to be sent now.")


@examples("flask outbox drop", "flask outbox drop V1StGXR8_Z5jdHi6B-myT")
@outbox.command("drop", context_settings=IDS)
@click.argument("ids", metavar="[ID]...", nargs=-1)
def drop(ids: tuple[str, ...]) -> None:
    """Delete what has an ID, or everything that was given up if no ID is given."""
    require_current()
    with unit_of_work():
        number = store.drop(ids)
        _require_all(number, ids)
    click.echo(f"Deleted {count(number, 'item')}.")


@examples("flask outbox deliver")
@outbox.command("deliver")
def deliver() -> None:
    """Send what is due, and end.

    The workers of gunicorn do this all the time. Run it every minute with another WSGI server.
    """
    require_current()
    deliver_now()


def _require_all(number: int, ids: tuple[str, ...]) -> None:
    if number < len(set(ids)):
        raise click.ClickException(
            "Not all of these IDs are in the outbox, or one is being sent. See: flask outbox list"
        )
