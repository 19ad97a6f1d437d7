"""Examples in the help of commands."""

from collections.abc import Callable
from typing import TypeVar

import click

AnyCommand = TypeVar("AnyCommand", bound=click.Command)


def examples(*lines: str) -> Callable[[AnyCommand], AnyCommand]:
    """Add a list of examples to the help of a command."""

    def decorate(command: AnyCommand) -> AnyCommand:
        command.epilog = "\n  ".join(["\b\nExamples:", *lines])
        return command

    return decorate
