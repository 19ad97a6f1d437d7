"""`flask users`: manage accounts."""

import json
import re
import sys
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import TypeVar

import click
from flask.cli import AppGroup
from marshmallow import ValidationError

from posting.accounts import passwords, store
from posting.accounts.deletion import clear_account, count_content, delete_account
from posting.accounts.models import (
    ACTIVE,
    MEMBER,
    MODERATOR,
    OWNER,
    PENDING,
    ROLES,
    STATES,
    SUSPENDED,
)
from posting.accounts.recovery import LINK_LIFETIME, create_link
from posting.accounts.schemas import Profile, RemovalQuery
from posting.accounts.store import find_account, list_accounts, lock_account
from posting.cli import escape, examples, json_option, link_base, print_link, warn_about_links
from posting.db.migrations import require_current
from posting.db.transactions import Row, unit_of_work
from posting.db.types import now, to_rfc3339, truncate_to_milliseconds
from posting.mail.models import APPROVED, PASSWORD_CHANGED
from posting.mail.store import queue_mail
from posting.moderation import log
from posting.moderation.members import describe_account
from posting.plurals import count, with_article
from posting.progress import progress
from posting.web.schemas import TimestampInput

DATE = click.DateTime(["%Y-%m-%d"])
ACCOUNT_LINE = "{:32} {:9} {:9} {:10} {}"
FIRST_LINK_LIFETIME = timedelta(days=3)
LINKS_LIFETIME, MAX_LINKS_LIFETIME = timedelta(days=14), timedelta(days=90)
LINKS_PER_COMMIT = 100

Found = TypeVar("Found")


def _parse_future(
    _context: click.Context, _parameter: click.Parameter, value: str | None
) -> datetime | None:
    """Return the time of an option, which may be only a date."""
    if value is None:
        return None
    is_date = re.fullmatch(r"\d{4}-\d\d-\d\d", value)
    try:
        time = TimestampInput().deserialize(f"{value}T00:00:00Z" if is_date else value)
    except ValidationError:
        raise click.BadParameter(
            f"{value!r} is not a date such as 2026-12-31, "
            "or a time with its offset such as 2026-12-31T18:00:00+01:00."
        ) from None
    if time <= now():
        raise click.BadParameter(f"{value} is not in the future.")
    return truncate_to_milliseconds(time)


@examples("flask users suspend ada", "flask users reset-password --help")
@click.group(cls=AppGroup)
def users() -> None:
    """Manage accounts."""


@examples(
    "flask users create ada", "flask users create ada --moderator", "flask users create ada --owner"
)
@users.command("create")
@click.argument("name")
@click.option("--moderator", "role", flag_value=MODERATOR, help="Make NAME a moderator.")
@click.option("--owner", "role", flag_value=OWNER, help="Make NAME an owner.")
def create(name: str, role: str | None) -> None:
    """Create an account, and print a link by which its owner chooses the password.

    The link works once, within three days. This does not depend on POSTING_SIGNUP.
    """
    require_current()
    try:
        fields = Profile(only=["username"]).load({"username": name})
    except ValidationError as error:
        details = " ".join(error.normalized_messages()["username"])
        raise click.ClickException(f"The name {name} is not accepted. {details}") from None
    role = role or MEMBER
    with unit_of_work():
        try:
            user = store.create_account(**fields, role=role, password_hash=passwords.dummy_hash())
        except store.UsernameTaken:
            raise click.ClickException(f"The name {name} is taken.") from None
        _record("created", user["id"])
        code, expires_at = create_link(user["id"], FIRST_LINK_LIFETIME)
    click.echo(f"{name} is {with_article(role)} now.")
    _print_reset_link(name, code, expires_at)


@examples(
    "flask users list",
    "flask users list --state pending",
    "flask users list --not-seen-since 2026-01-01 --json",
)
@users.command("list")
@click.option("--state", type=click.Choice(STATES), help="Only accounts in this state.")
@click.option("--role", type=click.Choice(ROLES), help="Only accounts with this role.")
@click.option(
    "--seen-since",
    metavar="DATE",
    type=DATE,
    help="Only accounts that were used since DATE, such as 2026-01-01, in UTC.",
)
@click.option(
    "--not-seen-since",
    metavar="DATE",
    type=DATE,
    help="Only accounts without any use since DATE. Newer accounts are left out.",
)
@json_option
def print_accounts(
    state: str | None,
    role: str | None,
    seen_since: datetime | None,
    not_seen_since: datetime | None,
    as_json: bool,
) -> None:
    """List the accounts in the order of their names.

    An account is seen when its session or token is used; this time is exact to the hour.
    """
    require_current()
    accounts = list_accounts(
        state=state,
        role=role,
        seen_since=seen_since and seen_since.replace(tzinfo=UTC),
        not_seen_since=not_seen_since and not_seen_since.replace(tzinfo=UTC),
    )
    if as_json:
        for account in accounts:
            click.echo(json.dumps(account))
        return
    click.echo(ACCOUNT_LINE.format("NAME", "ROLE", "STATE", "CREATED", "LAST SEEN"))
    for account in accounts:
        created, seen = account["created_at"][:10], (account["last_seen_at"] or "never")[:10]
        names = account["username"], account["role"], account["state"]
        click.echo(ACCOUNT_LINE.format(*names, created, seen))


@examples("flask users show ada", "flask users show ada --json")
@users.command("show")
@click.argument("name")
@json_option
def show(name: str, as_json: bool) -> None:
    """Show the account of NAME: dates, state, how much it has written, and who invited whom."""
    require_current()
    account = _require(describe_account(_require(find_account(name), name).id), name)
    if as_json:
        click.echo(json.dumps(account))
        return
    account["last_seen_at"] = account["last_seen_at"] or "never"
    for fact, value in account.items():
        if value is None or value == []:
            continue
        text = ", ".join(value) if isinstance(value, list) else str(value)
        click.echo(f"{fact.removesuffix('_at').replace('_', ' ') + ':':19}{escape(text)}")


@examples("flask users reset-link ada")
@users.command("reset-link")
@click.argument("name")
def print_reset_link(name: str) -> None:
    """Print a link by which NAME chooses a new password.

    The link works once, within a day. Its use ends all sessions and tokens of NAME. A former link
    no longer works.
    """
    with unit_of_work():
        user = _lock_user(name)
        code, expires_at = create_link(user.id, LINK_LIFETIME)
        _record("reset link", user.id)
    if user.state != ACTIVE:
        command = "restore" if user.state == SUSPENDED else "approve"
        click.echo(
            f"{user.username} is {user.state} and cannot sign in. "
            f"Run: flask users {command} {user.username}"
        )
    _print_reset_link(user.username, code, expires_at)


@examples("flask users links > links.csv", "flask users links --days 7 > links.csv")
@users.command("links")
@click.option(
    "--days",
    default=LINKS_LIFETIME.days,
    show_default=True,
    type=click.IntRange(1, MAX_LINKS_LIFETIME.days),
    help="How long they work.",
)
def print_links(days: int) -> None:
    """Print a link for each account that was never used, by which its owner chooses the password.

    The output is CSV with the columns username and link. Each link works once. Former links of
    these accounts no longer work. Accounts that wait for approval or are suspended are left out.
    """
    require_current()
    click.echo("username,link")
    base, printed = link_base(), 0
    accounts = (
        account for account in list_accounts(state=ACTIVE) if account["last_seen_at"] is None
    )
    while batch := list(islice(accounts, LINKS_PER_COMMIT)):
        links = []
        with unit_of_work():
            for account in batch:
                user = lock_account(account["id"])
                if user is None or user.state != ACTIVE:  # since it was listed
                    continue
                code, _ = create_link(user.id, timedelta(days=days))
                _record("reset link", user.id)
                links.append((user.username, f"{base}/reset#{code}"))
        for name, link in links:
            click.echo(f"{name},{link}")
        printed += len(links)
    until = to_rfc3339(now() + timedelta(days=days))
    click.echo(f"Printed {count(printed, 'link')}. Each works once, until {until}.", err=True)
    warn_about_links()


def _print_reset_link(name: str, code: str, expires_at: datetime) -> None:
    click.echo(
        f"{name} can choose a password with this link, once, until {to_rfc3339(expires_at)}:"
    )
    print_link(f"/reset#{code}")


@examples("flask users approve ada")
@users.command("approve")
@click.argument("name")
def approve(name: str) -> None:
    """Approve the account of NAME, which waits for approval. Then its owner can sign in."""
    with unit_of_work():
        user = _lock_user(name)
        if not store.approve_account(user.id):
            click.echo(f"{user.username} needs no approval.")
            return
        queue_mail(APPROVED, user.id)
        _record("approved", user.id)
    click.echo(f"{user.username} may sign in now.")


@examples("flask users promote ada", "flask users promote ada --owner")
@users.command("promote")
@click.argument("name")
@click.option("--owner", is_flag=True, help="Make NAME an owner, who may also make moderators.")
def promote(name: str, owner: bool) -> None:
    """Make NAME a moderator, who may delete any post, comment, image or file.

    An owner becomes a moderator with it, unless there is no other owner.
    """
    _set_role(name, OWNER if owner else MODERATOR)


@examples("flask users demote ada")
@users.command("demote")
@click.argument("name")
def demote(name: str) -> None:
    """Make NAME an ordinary member again."""
    _set_role(name, MEMBER)


@examples(
    "flask users suspend ada",
    "flask users suspend ada --reason 'Advertising, again.'",
    "flask users suspend ada --until 2026-12-31",
    "flask users suspend ada --until 2026-12-31T18:00:00+01:00",
)
@users.command("suspend")
@click.argument("name")
@click.option("--reason", help="What NAME reads at the next sign-in: up to 500 characters.")
@click.option(
    "--until",
    metavar="TIME",
    callback=_parse_future,
    help="When it ends: a date, at whose beginning in UTC NAME may sign in again, or a time with "
    "its offset from UTC. Without it, the suspension lasts until it is lifted.",
)
def suspend(name: str, reason: str | None, until: datetime | None) -> None:
    """End all sessions and tokens of NAME, and prevent new sign-ins."""
    if reason is not None:
        _require_valid_reason(reason)
    with unit_of_work():
        user = _lock_approved_user(name, keeps_role=False)
        has_reason = reason in {None, user.suspension_reason}
        if user.state == SUSPENDED and user.suspended_until == until and has_reason:
            click.echo(f"{user.username} is suspended already.")
            return
        store.suspend_account(user.id, reason=reason, until=until)
        _record("suspended", user.id, reason)
    end = f" until {to_rfc3339(until)}" if until else ""
    click.echo(f"{user.username} is suspended{end} and signed out everywhere.")


@examples("flask users restore ada")
@users.command("restore")
@click.argument("name")
def restore(name: str) -> None:
    """Allow a suspended NAME to sign in again."""
    with unit_of_work():
        user = _lock_approved_user(name)
        if user.state != SUSPENDED:
            click.echo(f"{user.username} is not suspended.")
            return
        store.lift_suspension(user.id)
        _record("restored", user.id)
    click.echo(f"{user.username} may sign in again.")


@examples(
    "flask users reset-password ada", "echo 'a new password' | flask users reset-password ada"
)
@users.command("reset-password")
@click.argument("name")
def reset_password(name: str) -> None:
    """Set a new password for NAME, and end all sessions and tokens.

    The command prompts for the password, or reads the first line of standard input.
    """
    user = _get_user(name)
    password = _read_password()
    errors = Profile().validate({"username": user.username, "password": password})
    if details := errors.get("password"):
        raise click.ClickException("The password is not accepted. " + " ".join(details))
    password_hash = passwords.hash_password(password)
    with unit_of_work():
        user = _lock_user(name)
        store.store_password_hash(user.id, password_hash)
        store.sign_out_everywhere(user.id)
        queue_mail(PASSWORD_CHANGED, user.id)
        _record("password reset", user.id)
    click.echo(f"{user.username} has a new password and is signed out everywhere.")


@examples("flask users delete ada --content keep", "flask users delete ada --content delete --yes")
@users.command("delete")
@click.argument("name")
@click.option(
    "--content",
    required=True,
    type=click.Choice(["keep", "delete"]),
    help="Keep posts and comments without an author, or delete them too.",
)
@click.option("--yes", is_flag=True, help="Do not ask.")
def delete(name: str, content: str, yes: bool) -> None:
    """Delete the account of NAME.

    The service may run meanwhile: thousands of posts and comments take several steps. If the
    command is interrupted, run it again.
    """
    with unit_of_work():
        user, with_content = _lock_user(name, keeps_role=False), content == "delete"
    total = count_content(user.id)
    if not yes:
        fate = "are deleted too" if with_content else "stay without an author"
        click.confirm(
            f"Delete the account of {user.username}? Its posts and comments ({total:,}) {fate}.",
            abort=True,
        )
    with progress(f"Deleting {user.username}", total) as advance:
        clear_account(user.id, with_content=with_content, advance=advance)
    with unit_of_work():
        user = _lock_user(name, keeps_role=False)
        delete_account(user.id, with_content=with_content)
        _record("deleted", user.id)
    click.echo(f"{user.username} is deleted.")


def _require_valid_reason(reason: str) -> None:
    try:
        RemovalQuery().load({"reason": reason})
    except ValidationError as error:
        details = " ".join(error.normalized_messages()["reason"])
        raise click.ClickException(f"The reason is not accepted. {details}") from None


def _read_password() -> str:
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\r\n")
    return str(click.prompt("New password", hide_input=True, confirmation_prompt=True))


def _get_user(name: str) -> Row:
    require_current()
    return _require(find_account(name), name)


def _lock_user(name: str, *, keeps_role: bool = True) -> Row:
    """Lock an account, which may have been deleted since its name was looked up.

    If it does not keep its role, raise ClickException for the only active owner.
    """
    id = _get_user(name).id
    if not keeps_role:
        try:
            store.require_other_owner(id)
        except store.LastOwner:
            raise click.ClickException(
                f"{name} is the only active owner. First run: flask users promote OTHER --owner"
            ) from None
    return _require(lock_account(id), name)


def _lock_approved_user(name: str, *, keeps_role: bool = True) -> Row:
    """Lock an account as `_lock_user` does. Raise ClickException if it waits for approval."""
    user = _lock_user(name, keeps_role=keeps_role)
    if user.state == PENDING:
        raise click.ClickException(
            f"{user.username} waits for approval. "
            f"Run: flask users approve {user.username}, or: flask users delete {user.username}"
        )
    return user


def _require(account: Found | None, name: str) -> Found:
    if account is None:
        raise click.ClickException(f"There is no user named {name}. Check the spelling.")
    return account


def _set_role(name: str, role: str) -> None:
    with unit_of_work():
        user = _lock_approved_user(name, keeps_role=role == OWNER)
        if not store.set_role(user, role, actor_id=None):
            click.echo(f"{user.username} is {with_article(role)} already.")
            return
        _record(log.action_of(user.role, role), user.id)
    click.echo(f"{user.username} is {with_article(role)} now.")


def _record(action: str, user_id: str, reason: str | None = None) -> None:
    """Record an act of the operator on an account."""
    log.record_act_by_operator(action, "user", user_id, user_id, reason)
