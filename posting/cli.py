"""The `flask` commands: examples in their help, and their import when a command is looked up."""

from collections.abc import Callable
from typing import TypeVar

import click
from flask import Flask
from flask.cli import AppGroup


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


AnyCommand = TypeVar("AnyCommand", bound=click.Command)


def examples(*lines: str) -> Callable[[AnyCommand], AnyCommand]:
    """Add a list of examples to the help of a command."""

    def decorate(command: AnyCommand) -> AnyCommand:
        command.epilog = "\n  ".join(["\b\nExamples:", *lines])
        return command

    return decorate
