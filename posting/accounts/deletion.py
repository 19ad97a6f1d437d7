"""Deletion of accounts, with or without what their members have written."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import sleep
from typing import NamedTuple

import sqlalchemy as sa
from flask import Flask, current_app

from posting.accounts.events import AccountDeleted
from posting.accounts.models import User
from posting.db.cascades import delete_some
from posting.db.events import announce
from posting.db.transactions import begin, commit, execute
from posting.web.idempotency import IdempotencyKey

EXTENSION = "posting.accounts.deletion"
PAUSE = 0.1  # seconds between two steps, in which others can take SQLite's write lock
RESPONSES_PER_STEP = 500  # with up to a hundred kilobytes each
ROWS_PER_STEP = 5000  # of all tables, also those that the database deletes by cascades


class Step(NamedTuple):
    """The result of a step: how many rows it has cleared, and whether there may be more."""

    cleared: int
    has_more: bool


@dataclass(frozen=True)
class Content:
    """The functions that clear the content of one feature when its author's account is deleted.

    `count` takes the user's id. It is None for rows that the user has not written, such as
    notifications. `clear_step` takes the id and whether content is deleted or kept without an
    author. It clears some of the content within a transaction. `clear_rest` takes the same values,
    in the transaction that deletes the account. It locks what the deletion would change, and clears
    what was written since the last step.
    """

    count: Callable[[str], int] | None
    clear_step: Callable[[str, bool], Step]
    clear_rest: Callable[[str, bool], None]


def init_app(app: Flask, contents: Sequence[Content]) -> None:
    """Keep the features whose content belongs to accounts, in the order of their locks."""
    app.extensions[EXTENSION] = contents


def count_content(user_id: str) -> int:
    """Return how many rows `clear_account` has to clear."""
    return sum(content.count(user_id) for content in _contents() if content.count)


def clear_account(
    user_id: str, *, with_content: bool, advance: Callable[[int], None] = lambda _rows: None
) -> None:
    """Delete what a user has written, or remove its author, in several transactions.

    In a single transaction, very much content would block other writers for too long. After each,
    `advance` is called with the number of rows that it has cleared.
    """
    for content in _contents():
        has_more = True
        while has_more:
            begin(alone=True)
            cleared, has_more = content.clear_step(user_id, with_content)
            commit()
            if cleared:
                advance(cleared)
            if has_more:
                sleep(PAUSE)


def delete_a_step(user_id: str) -> int:
    """Delete some of what a user has written, and return how many rows they were.

    This is for a transaction of its own. Notifications stay.
    """
    steps = (content.clear_step(user_id, True) for content in _contents() if content.count)
    return next((step.cleared for step in steps if step.cleared), 0)


def delete_account(user_id: str, *, with_content: bool) -> None:
    """Delete a locked account, its sessions, and what `clear_account` has left."""
    for content in _contents():
        content.clear_rest(user_id, with_content)
    deleted = sa.delete(User).where(User.id == user_id).returning(User.pending_since)
    if execute(deleted).scalar_one() is None:
        announce(AccountDeleted(user_id))


def _clear_responses(user_id: str, _with_content: bool) -> Step:
    """Delete some of the responses that are stored under the keys of a user's requests."""
    own = IdempotencyKey.user_id == user_id
    deleted = delete_some(IdempotencyKey, own, RESPONSES_PER_STEP)
    return Step(0, has_more=deleted == RESPONSES_PER_STEP)


STORED_RESPONSES = Content(None, _clear_responses, lambda _user_id, _with_content: None)


def _contents() -> Sequence[Content]:
    contents: Sequence[Content] = current_app.extensions[EXTENSION]
    return contents
