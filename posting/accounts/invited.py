"""Sign-up by invitation: functions of the feature of invitations, which the app passes in."""

from collections.abc import Callable
from dataclasses import dataclass

from flask import Flask, current_app

EXTENSION = "posting.accounts.invited"


@dataclass(frozen=True)
class Use:
    """A use of an invitation: its id, who invites, and the role of the new account.

    `invited_by_id` is None for an invitation of an operator.
    """

    invitation_id: str
    invited_by_id: str | None
    role: str


@dataclass(frozen=True)
class Invitations:
    """The functions of the feature of invitations.

    `take_use` takes the code of an invitation. Within the transaction, it takes one of the uses
    that are left, and raises 422 if there is none. `record_use` takes the use and the id of the new
    account.
    """

    take_use: Callable[[str], Use]
    record_use: Callable[[Use, str], None]


def init_app(app: Flask, invitations: Invitations) -> None:
    app.extensions[EXTENSION] = invitations


def take_use(code: str) -> Use:
    """Take a use of the invitation with this code. Raise 422 if it has none."""
    return _invitations().take_use(code)


def record_use(use: Use, user_id: str) -> None:
    """Record which account has been created by a use."""
    _invitations().record_use(use, user_id)


def _invitations() -> Invitations:
    invitations: Invitations = current_app.extensions[EXTENSION]
    return invitations
