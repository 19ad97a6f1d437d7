"""`flask users`: look after accounts."""

import sys

import click
from flask.cli import AppGroup, with_appcontext

from posting.auth import passwords, sessions
from posting.cli.examples import example
from posting.db.engine import db
from posting.db.migrations import ensure_current
from posting.db.models import User
from posting.db.queries import get_user_by_name
from posting.db.types import now
from posting.domain import moderation
from posting.schemas import accounts as accounts_schemas


@click.group(cls=AppGroup)
@with_appcontext
def users() -> None:
    """Look after accounts."""
    ensure_current()


@example("flask users promote ada")
@users.command("promote")
@click.argument("name")
def promote(name: str) -> None:
    """Make NAME a moderator, who may delete any post, comment or image."""
    _set_role(name, "moderator")


@example("flask users demote ada")
@users.command("demote")
@click.argument("name")
def demote(name: str) -> None:
    """Make NAME an ordinary member again."""
    _set_role(name, "member")


@example("flask users suspend ada")
@users.command("suspend")
@click.argument("name")
def suspend(name: str) -> None:
    """Sign NAME out everywhere, and let them sign in no more."""
    user = _find(name)
    user.suspended_at = now()
    sessions.end_sessions(user)
    moderation.record_by_operator("suspended", user)
    db.session.commit()
    click.echo(f"{user.username} is suspended and signed out everywhere.")


@example("flask users restore ada")
@users.command("restore")
@click.argument("name")
def restore(name: str) -> None:
    """Let NAME sign in again."""
    user = _find(name)
    user.suspended_at = None
    moderation.record_by_operator("restored", user)
    db.session.commit()
    click.echo(f"{user.username} may sign in again.")


@example("flask users reset-password ada", "echo 'a new password' | flask users reset-password ada")
@users.command("reset-password")
@click.argument("name")
def reset_password(name: str) -> None:
    """Set a new password for NAME, who is signed out everywhere.

    The password is asked for, or read from the first line of standard input.
    """
    user = _find(name)
    db.session.commit()  # nobody waits for a lock while somebody types
    password = _ask_password()
    errors = accounts_schemas.SignUp().validate({"username": user.username, "password": password})
    if details := errors.get("password"):
        raise click.ClickException("The password is refused. " + " ".join(details))
    user.password_hash = passwords.hash_password(password)
    sessions.end_sessions(user)
    moderation.record_by_operator("password reset", user)
    db.session.commit()
    click.echo(f"{user.username} has a new password and is signed out everywhere.")


def _ask_password() -> str:
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\r\n")
    return str(click.prompt("New password", hide_input=True, confirmation_prompt=True))


def _find(name: str) -> User:
    user = get_user_by_name(name)
    if user is None:
        raise click.ClickException(f"There is no user named {name}.")
    return user


def _set_role(name: str, role: str) -> None:
    user = _find(name)
    user.role = role
    moderation.record_by_operator("promoted" if user.is_moderator else "demoted", user)
    db.session.commit()
    click.echo(f"{user.username} is a {role} now.")
