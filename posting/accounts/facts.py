"""Facts about an account for operators, with those of other features, which the app passes in."""

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


def describe_account(username: str) -> Item | None:
    """Return all facts about the account with this name, if there is one."""
    details = find_details(username)
    if details is None:
        return None
    user_id, others = details["id"], current_app.extensions[EXTENSION]
    return {
        **details,
        "sessions": len(sessions.list_sessions(user_id, current_id=None)),
        "tokens": len(tokens.list_tokens(user_id)),
        **{name: find(user_id) for name, find in others.items()},
    }
