"""Pages of threads: comments as a tree."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import accumulate
from typing import Any

from posting.comments.store import (
    Place,
    find_thread_of,
    list_comments_above,
    list_comments_by_thread,
)
from posting.db.transactions import Row
from posting.db.types import ID_LENGTH, from_milliseconds, to_milliseconds
from posting.web.errors import InvalidInput, input_error
from posting.web.pagination import NOT_A_CURSOR
from posting.web.schemas import Item, to_items

MAX_LEVEL = 6
COMMENTS_PER_PAGE = 200
MAX_LENGTH = 2**16  # characters of Markdown in the comments of a page
LAST_ID = "~"  # after all ids

FIRST: Place = (datetime.min.replace(tzinfo=UTC), "", datetime.min.replace(tzinfo=UTC), "")
LATEST = datetime.max.replace(tzinfo=UTC)
_ID = rf"[A-Za-z0-9_-]{{{ID_LENGTH}}}"
_POSITION = rf"(-?[0-9]{{1,15}})\.({_ID})"
# The post, a thread and, unless the page begins with the next thread, a comment in it.
_CURSOR = re.compile(rf"({_ID})\.{_POSITION}(?:\.{_POSITION})?", re.ASCII)


@dataclass(frozen=True)
class ThreadItem:
    """A comment of a thread, and its level of indentation.

    With `is_line`, the page shows only the beginning of the comment, above its replies.
    """

    comment: dict[str, Any]
    level: int
    is_line: bool = False


@dataclass(frozen=True)
class ThreadPage:
    """A page of threads, and the cursor of the next page if there is one."""

    items: list[ThreadItem]
    next_cursor: str | None


def get_page(post_id: str, cursor: str | None, comment_id: str | None = None) -> ThreadPage:
    """Return the threads of a post after a cursor, or from the thread of a comment on.

    A thread that is longer than a page is continued on the next page. There, the comments above the
    rest of the thread are repeated as lines. Raise 422 for the cursor of another list.
    """
    thread = find_thread_of(comment_id, post_id) if comment_id else None
    if thread is None:
        rows = _list(post_id, _read_cursor(cursor, post_id) if cursor else FIRST)
    else:
        rows = _list(post_id, (thread.thread_at, thread.thread_id, thread.thread_at, ""))
        if comment_id not in {row.id for row in rows[: _fitting(rows)]}:
            place = (thread.thread_at, thread.thread_id, thread.created_at, "")
            rows = _list(post_id, place)
    shown = rows[: _fitting(rows)]
    next_cursor = _cursor(post_id, shown[-1], rows[len(shown)]) if len(shown) < len(rows) else None
    ids = {row.id for row in shown}
    missing = {row.parent_id for row in shown if row.parent_id} - ids
    above = list_comments_above(missing, COMMENTS_PER_PAGE)
    lines = frozenset(row.id for row in above)
    return ThreadPage(arrange([*to_items(above), *to_items(shown)], lines), next_cursor)


def arrange(comments: Sequence[Item], lines: frozenset[str] = frozenset()) -> list[ThreadItem]:
    """Return comments, oldest first, as threads, in which each is followed by its replies.

    A comment whose parent is missing begins a thread. The comments in `lines` are shown as a line.
    """
    ids = {comment["id"] for comment in comments}
    replies: dict[str | None, list[Item]] = {}
    for comment in comments:
        parent = comment["parent_id"]
        replies.setdefault(parent if parent in ids else None, []).append(comment)
    items = []
    # A stack, since threads may be deeper than Python's recursion limit.
    left = [(comment, 1) for comment in reversed(replies.get(None, []))]
    while left:
        comment, level = left.pop()
        items.append(ThreadItem(comment, min(level, MAX_LEVEL), comment["id"] in lines))
        below = reversed(replies.get(comment["id"], []))
        left += [(reply, level + 1) for reply in below]
    return items


def _list(post_id: str, after: Place) -> Sequence[Row]:
    return list_comments_by_thread(post_id, after, limit=COMMENTS_PER_PAGE + 1)


def _fitting(rows: Sequence[Row]) -> int:
    """Return the number of comments on the page. If it has several threads, they are whole."""
    lengths = accumulate(len(row.content or "") for row in rows)
    fitting = max(1, sum(length <= MAX_LENGTH for length in lengths))
    fitting = min(fitting, COMMENTS_PER_PAGE, len(rows))
    if fitting == len(rows):
        return fitting
    next_thread = rows[fitting].thread_id
    before = sum(row.thread_id != next_thread for row in rows[:fitting])
    return before or fitting


def _cursor(post_id: str, last: Row, following: Row) -> str:
    """Return the cursor of a page that continues after the comment `last`."""
    positions = [(last.thread_at, last.thread_id)]
    if following.thread_id == last.thread_id:
        positions.append((datetime.fromisoformat(last.created_at), last.id))
    parts = (f"{to_milliseconds(time)}.{id}" for time, id in positions)
    return ".".join([post_id, *parts])


def _read_cursor(cursor: str, post_id: str) -> Place:
    match = _CURSOR.fullmatch(cursor)
    if match and match[1] == post_id:
        try:
            thread_at = from_milliseconds(int(match[2]))
            time = from_milliseconds(int(match[4])) if match[4] else LATEST
        except OverflowError:  # not a date in the years 1 to 9999
            pass
        else:
            return thread_at, match[3], time, match[5] or LAST_ID
    raise InvalidInput([input_error(NOT_A_CURSOR, parameter="cursor")])
