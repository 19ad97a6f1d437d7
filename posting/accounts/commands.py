"""`flask users` and `flask moderation`: manage accounts, and review the moderation log."""

import sys
from datetime import datetime

import click
import sqlalchemy as sa
from flask.cli import AppGroup

from posting.accounts import acts, passwords, tokens
from posting.accounts.models import MODERATOR, User
from posting.accounts.queries import find_account, list_acts, lock_account
from posting.accounts.schemas import SignUp
from posting.cli import examples
from posting.db.editing import edit
from posting.db.migrations import require_current
from posting.db.transactions import Row, commit, execute
from posting.db.types import now, to_rfc3339


@examples("flask users suspend ada", "flask users reset-password --help")
@click.group(cls=AppGroup)
def users() -> None:
    """Manage accounts."""


@examples("flask users promote ada")
@users.command("promote")
@click.argument("name")
def promote(name: str) -> None:
    """Make NAME a moderator, who may delete any post, comment or image."""
    _set_role(name, "moderator")


@examples("flask users demote ada")
@users.command("demote")
@click.argument("name")
def demote(name: str) -> None:
    """Make NAME an ordinary member again."""
    _set_role(name, "member")


@examples("flask users suspend ada")
@users.command("suspend")
@click.argument("name")
def suspend(name: str) -> None:
    """End all sessions and tokens of NAME, and prevent new sign-ins."""
    user = _lock_user(name)
    _set_suspended_at(user, now())
    tokens.revoke_access(user.id)
    acts.record_by_operator("suspended", user.id)
    commit()
    click.echo(f"{user.username} is suspended and signed out everywhere.")


@examples("flask users restore ada")
@users.command("restore")
@click.argument("name")
def restore(name: str) -> None:
    """Allow a suspended NAME to sign in again."""
    user = _lock_user(name)
    _set_suspended_at(user, None)
    acts.record_by_operator("restored", user.id)
    commit()
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
    errors = SignUp().validate({"username": user.username, "password": password})
    if details := errors.get("password"):
        raise click.ClickException("The password is not accepted. " + " ".join(details))
    password_hash = passwords.hash_password(password)
    user = _lock_user(name)
    passwords.store_password_hash(user.id, password_hash)
    tokens.revoke_access(user.id)
    acts.record_by_operator("password reset", user.id)
    commit()
    click.echo(f"{user.username} has a new password and is signed out everywhere.")


def _read_password() -> str:
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\r\n")
    return str(click.prompt("New password", hide_input=True, confirmation_prompt=True))


def _get_user(name: str) -> Row:
    require_current()
    return _require(find_account(name), name)


def _lock_user(name: str) -> Row:
    """Lock an account, which may have been deleted since its name was looked up."""
    return _require(lock_account(_get_user(name).id), name)


def _require(user: Row | None, name: str) -> Row:
    if user is None:
        raise click.ClickException(f"There is no user named {name}. Check the spelling.")
    return user


def _set_suspended_at(user: Row, time: datetime | None) -> None:
    execute(sa.update(User).where(User.id == user.id).values(suspended_at=time))


def _set_role(name: str, role: str) -> None:
    user = _lock_user(name)
    edit(User, user, {"role": role})
    acts.record_by_operator("promoted" if role == MODERATOR else "demoted", user.id)
    commit()
    click.echo(f"{user.username} is a {role} now.")


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
    for act in list_acts(limit):
        former = f"{act.moderator} ({act.moderator_id})" if act.moderator_id else act.moderator
        user = act.user_name or act.user_id
        target = acts.describe_target(act.target_kind, act.target_id, user)
        moderator = act.moderator_name or former
        click.echo(f"{to_rfc3339(act.created_at)} {moderator} {act.action} {target}")
