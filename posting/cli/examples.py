"""Examples in the help of commands."""

from collections.abc import Callable

import click


def example(*lines: str) -> Callable[[click.Command], click.Command]:
    """Show how a command is called below its help."""

    def add(command: click.Command) -> click.Command:
        command.epilog = "\n  ".join(["\b\nExamples:", *lines])
        return command

    return add
