"""The `flask` commands."""

import sys
from collections.abc import Callable

import click
from flask import Flask
from flask.cli import AppGroup, with_appcontext

from posting import demo, moderation, schemas, sessions
from posting.database import db, now
from posting.migrations import ensure_current
from posting.models import IMAGES_PER_POST, ModerationAct, User


def example(*lines: str) -> Callable[[click.Command], click.Command]:
    """Show how a command is called below its help."""

    def add(command: click.Command) -> click.Command:
        command.epilog = "\n  ".join(["\b\nExamples:", *lines])
        return command

    return add


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
    errors = schemas.SignUp().validate({"username": user.username, "password": password})
    if details := errors.get("password"):
        raise click.ClickException("The password is refused. " + " ".join(details))
    user.password_hash = sessions.hash_password(password)
    sessions.end_sessions(user)
    moderation.record_by_operator("password reset", user)
    db.session.commit()
    click.echo(f"{user.username} has a new password and is signed out everywhere.")


@click.group("moderation", cls=AppGroup)
@with_appcontext
def moderation_group() -> None:
    """See what moderators do."""
    ensure_current()


@example("flask moderation log", "flask moderation log --limit 10")
@moderation_group.command("log")
@click.option("--limit", default=100, show_default=True, type=click.IntRange(1))
def print_moderation_log(limit: int) -> None:
    """Print what moderators and operators did to others, the latest first."""
    for act in db.session.scalars(ModerationAct.latest(limit)):
        moment = act.created_at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        by = f"{act.moderator} ({act.moderator_id})" if act.moderator_id else act.moderator
        click.echo(f"{moment} {by} {act.act} {act.target}")


@example("flask demo", "flask demo --posts 100000 --users 1000 --comments 0 --images 0")
@click.command("demo")
@click.option("--posts", default=1000, show_default=True, type=click.IntRange(1, 10_000_000))
@click.option("--users", "people", default=100, show_default=True, type=click.IntRange(1, 100_000))
@click.option("--comments", default=3000, show_default=True, type=click.IntRange(0, 10_000_000))
@click.option("--images", default=100, show_default=True, type=click.IntRange(0, 1_000_000))
@with_appcontext
def fill_with_demo(posts: int, people: int, comments: int, images: int) -> None:
    """Fill the database with made-up users, posts, comments and images, to look at or to measure.

    All made-up users have the password that is printed at the end.
    """
    ensure_current()
    if images > posts * IMAGES_PER_POST:
        raise click.UsageError(f"A post has at most {IMAGES_PER_POST} images.")
    names = demo.add_users(people)
    author_ids = [user_id for user_id, _ in names]
    with click.progressbar(length=posts, label="Writing posts") as bar:
        for written in demo.add_posts(posts, comments, images, author_ids):
            bar.update(written)
    click.echo(
        f"Added {people} users and {posts} posts with {comments} comments and {images} images. "
        f"Sign in as {names[0][1]} with the password: {demo.PASSWORD}"
    )


def init_app(app: Flask) -> None:
    app.cli.add_command(users)
    app.cli.add_command(moderation_group)
    app.cli.add_command(fill_with_demo)


def _ask_password() -> str:
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\r\n")
    return str(click.prompt("New password", hide_input=True, confirmation_prompt=True))


def _find(name: str) -> User:
    user = db.session.scalar(User.named(name))
    if user is None:
        raise click.ClickException(f"There is no user named {name}.")
    return user


def _set_role(name: str, role: str) -> None:
    user = _find(name)
    user.role = role
    moderation.record_by_operator("promoted" if user.is_moderator else "demoted", user)
    db.session.commit()
    click.echo(f"{user.username} is a {role} now.")
