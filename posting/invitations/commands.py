"""`flask invitations`: make an invitation without an account, and end any."""

import json
from datetime import timedelta

import click
from flask import current_app
from flask.cli import AppGroup
from marshmallow import ValidationError

from posting.cli import escape, examples, json_option, print_link
from posting.db.migrations import require_current
from posting.db.transactions import unit_of_work
from posting.db.types import now
from posting.invitations import store
from posting.invitations.models import LIFETIME, MAX_LIFETIME, MAX_USES
from posting.invitations.schemas import InvitationInput
from posting.moderation import log
from posting.site import settings as site_settings
from posting.web.logs import audit

LINE = "{:21} {:>7} {:10} {:32} {}"


@examples("flask invitations create", "flask invitations list --help")
@click.group(cls=AppGroup)
def invitations() -> None:
    """Invite people to sign up."""


@examples(
    "flask invitations create", "flask invitations create --note 'For the choir' --uses 30 --days 7"
)
@invitations.command("create")
@click.option("--note", help="Whom it is for, in one line of up to 100 characters.")
@click.option(
    "--uses",
    default=1,
    show_default=True,
    type=click.IntRange(1, MAX_USES),
    help="How many accounts can be created by it.",
)
@click.option(
    "--days",
    default=LIFETIME.days,
    show_default=True,
    type=click.IntRange(1, MAX_LIFETIME.days),
    help="How long it works.",
)
def create(note: str | None, uses: int, days: int) -> None:
    """Print a link by which people can sign up.

    The new accounts need no approval. The link is not shown again.
    """
    require_current()
    site_settings.refresh()
    if current_app.config["SIGNUP"] == "closed":
        raise click.ClickException(
            "Sign-up is closed, so invitations do not work. Change the rule for sign-up at "
            "/keeping or by POSTING_SIGNUP, or run: flask users create NAME"
        )
    try:
        fields = InvitationInput(only=["note"]).load({"note": note})
    except ValidationError as error:
        details = " ".join(error.normalized_messages()["note"])
        raise click.ClickException(f"The note is not accepted. {details}") from None
    expires_at = now() + timedelta(days=days)
    with unit_of_work():
        invitation, code = store.create_invitation(None, uses=uses, expires_at=expires_at, **fields)
        audit("invitation-created", invitation=invitation["id"])
    people = "one person" if uses == 1 else f"{uses} people"
    click.echo(f"With this link, {people} can sign up until {invitation['expires_at']}:")
    print_link(f"/signup#{code}")


@examples("flask invitations list", "flask invitations list --json")
@invitations.command("list")
@json_option
def print_invitations(as_json: bool) -> None:
    """List all invitations, newest first, without their links.

    They are deleted 30 days after they have expired.
    """
    require_current()
    if as_json:
        for invitation in store.list_all_invitations():
            click.echo(json.dumps(invitation))
        return
    click.echo(LINE.format("ID", "USES", "EXPIRES", "CREATED BY", "NOTE").rstrip())
    for invitation in store.list_all_invitations():
        used = invitation["uses"] - invitation["uses_left"]
        creator = invitation["created_by"]
        line = LINE.format(
            invitation["id"],
            f"{used}/{invitation['uses']}",
            invitation["expires_at"][:10],
            creator["username"] if creator else log.OPERATOR,
            escape(invitation["note"] or ""),
        )
        click.echo(line.rstrip())


@examples("flask invitations end V1StGXR8_Z5jdHi6B-myT")
@invitations.command("end", context_settings={"ignore_unknown_options": True})  # ids such as -x
@click.argument("id")
def end(id: str) -> None:
    """End the invitation with this ID. The accounts that were created by it stay."""
    require_current()
    with unit_of_work():
        ended = store.end_invitation(id)
        if ended is None:
            raise click.ClickException(
                f"There is no invitation with the ID {id}. Run: flask invitations list"
            )
        if ended.created_by_id:
            log.record_act_by_operator("ended", "invitation", id, ended.created_by_id)
    click.echo(f"The invitation {id} has ended.")
