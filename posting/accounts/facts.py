"""Facts about an account for moderators and operators.

The app passes in those of other features.
"""

from collections.abc import Callable, Mapping
from typing import Any

from flask import Flask, current_app

from posting.accounts import sessions, tokens
from posting.accounts.queries import find_details
from posting.web.rows import Item

EXTENSION = "posting.accounts.facts"

# Functions by the names of their facts. Each takes the id of a user.
Facts = Mapping[str, Callable[[str], Any]]


def init_app(app: Flask, others: Facts) -> None:
    """Keep the facts of other features."""
    app.extensions[EXTENSION] = others


def describe_account(user_id: str) -> Item | None:
    """Return all facts about the account with this id, if there is one."""
    details = find_details(user_id)
    if details is None:
        return None
    others = current_app.extensions[EXTENSION]
    return {
        **details,
        "sessions": len(sessions.list_sessions(user_id, current_id=None)),
        "tokens": len(tokens.list_tokens(user_id)),
        **{name: find(user_id) for name, find in others.items()},
    }
