"""All commands. Each reports errors of the database and of files in one line."""

from collections.abc import Iterator
from contextlib import contextmanager

import click
import sqlalchemy as sa

from posting.accounts.commands import users
from posting.db.errors import error_code
from posting.db.migrations.start_errors import start_error
from posting.invitations.commands import invitations
from posting.moderation.commands import moderation
from posting.ops.commands import (
    back_up,
    db,
    examine,
    export_archive,
    fill_with_demo,
    images,
    import_archive,
    openapi,
    restore,
    search,
)
from posting.outbox.commands import outbox

COMMANDS = (
    db,
    users,
    invitations,
    moderation,
    outbox,
    fill_with_demo,
    export_archive,
    import_archive,
    back_up,
    restore,
    examine,
    search,
    images,
    openapi,
)


@contextmanager
def errors_in_words() -> Iterator[None]:
    """Raise an error of the database or of a file as ClickException, which says what to do.

    A mistake in a statement stays what it is.
    """
    try:
        yield
    except sa.exc.DatabaseError as error:
        is_damage = type(error) is sa.exc.DatabaseError
        is_passing = isinstance(error, sa.exc.OperationalError)
        if not (is_damage or is_passing) or error_code(error) == "SQLITE_ERROR":
            raise
        raise start_error(error) from None
    except BrokenPipeError:  # click ends the command
        raise
    except OSError as error:
        if error.filename is None:
            raise
        raise click.ClickException(
            f"{error.filename} cannot be used ({error.strerror}). "
            "Check that it exists and that this user may read and write it."
        ) from None


def _report_errors_of(command: click.Command) -> None:
    # Each command is wrapped and not its group: when a group gets the error, the app context that
    # `start_error` needs has ended.
    if isinstance(command, click.Group):
        for child in command.commands.values():
            _report_errors_of(child)
    else:
        command.invoke = errors_in_words()(command.invoke)  # type: ignore[method-assign]  # of one command


for command in COMMANDS:
    _report_errors_of(command)
