"""The commands: their help and output, and their import when a command is looked up."""

from collections.abc import Callable
from typing import TypeVar

import click
from flask import Flask, current_app
from flask.cli import AppGroup, cli

from posting import config


class Commands(AppGroup):
    """The commands of the service, which a worker does not import."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        self._load()
        return super().list_commands(ctx)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        self._load()
        return super().get_command(ctx, cmd_name)

    def _load(self) -> None:
        from posting.commands import COMMANDS  # noqa: PLC0415 - a worker needs no commands

        for command in COMMANDS:
            self.add_command(command)


def init_app(app: Flask) -> None:
    app.cli = Commands(app.name)


def main() -> None:
    """Run `posting`: the `flask` command for an installed package, which has no `wsgi.py`.

    `flask` itself ends in a traceback if it cannot read `.env`, because it does so before the app.
    """
    try:
        config.check_env_files()
    except config.StartError as error:
        error.exit()
    cli.main(prog_name="posting", default_map={"app": "posting.wsgi"})


def link_base() -> str:
    """Return the address of the site in links, or "" if it is not known."""
    return current_app.config["PUBLIC_URL"] or config.server_url()


def print_link(path: str) -> None:
    """Print a link to a page of the service, on a line of its own."""
    base = link_base()
    click.echo(base + path)
    warn_about_links()


def warn_about_links() -> None:
    """Say what an operator must know about the links that were printed."""
    if not link_base():
        click.echo("Write the address of your site before it, or set POSTING_PUBLIC_URL.", err=True)
    if not current_app.config["PAGES"]:
        click.echo("The pages are off, so your own app must have a page at this path.", err=True)


def escape(text: str) -> str:
    """Return a text of a member in one line, without characters that control the terminal."""
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )


json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print JSON for scripts, one object on each line."
)
AnyCommand = TypeVar("AnyCommand", bound=click.Command)


def examples(*lines: str) -> Callable[[AnyCommand], AnyCommand]:
    """Add a list of examples to the help of a command."""

    def decorate(command: AnyCommand) -> AnyCommand:
        command.epilog = "\n  ".join(["\b\nExamples:", *lines])
        return command

    return decorate
