"""Threads: comments as a tree, of which a page shows a part."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

MAX_LEVEL = 6


@dataclass(frozen=True)
class ThreadItem:
    """A comment of a thread, and its level of indentation.

    `in_reply_to` is the id of its parent where the indentation does not show it.
    """

    comment: dict[str, Any]
    level: int
    in_reply_to: str | None


def arrange(comments: Sequence[dict[str, Any]]) -> list[ThreadItem]:
    """Return comments, oldest first, as a thread: each followed by its replies.

    A comment whose parent is on an earlier page begins a thread of its own.
    """
    ids = {comment["id"] for comment in comments}
    replies: dict[str | None, list[dict[str, Any]]] = {}
    for comment in comments:
        parent = comment["parent_id"]
        replies.setdefault(parent if parent in ids else None, []).append(comment)
    items = []
    # A stack, since threads may be deeper than Python's recursion limit.
    left = [(comment, 1) for comment in reversed(replies.get(None, []))]
    while left:
        comment, level = left.pop()
        is_hidden = level > MAX_LEVEL or (level == 1 and comment["parent_id"])
        in_reply_to = comment["parent_id"] if is_hidden else None
        items.append(ThreadItem(comment, min(level, MAX_LEVEL), in_reply_to))
        below = reversed(replies.get(comment["id"], []))
        left += [(reply, level + 1) for reply in below]
    return items
