"""Lists of what a search finds."""

from threading import BoundedSemaphore
from typing import Any

import sqlalchemy as sa
from werkzeug.exceptions import ServiceUnavailable

from posting.db.types import Position
from posting.search.index import Index
from posting.search.words import parse_query
from posting.web.pagination import Page, paginate
from posting.web.problems import Coded

# A search may keep a core busy for seconds. Two at a time leave threads for other requests.
MAX_SEARCHES = 2
MAX_WAIT_SECONDS = 0.25  # a search for ordinary words takes milliseconds
_searches = BoundedSemaphore(MAX_SEARCHES)


class SearchBusy(Coded, ServiceUnavailable):
    error_code = "search_busy"
    description = "Too many searches are in progress; try again."

    def __init__(self) -> None:
        super().__init__(retry_after=2)


def paginate_results(
    index: Index,
    statement: sa.Select[*tuple[Any, ...]],
    words: str,
    *,
    limit: int,
    cursor: str | None,
    author: str | None = None,
    max_length: int | None = None,
) -> Page:
    """Return a page of the rows in which all words occur, perhaps of one author, newest first.

    `statement` selects rows of the model of the index. For the other parameters see `paginate`.
    Raise SearchBusy if other searches take too long.
    """
    terms = parse_query(words)

    def find(after: Position | None, limit: int) -> list[Position]:
        if not terms:
            return []
        if not _searches.acquire(timeout=MAX_WAIT_SECONDS):
            raise SearchBusy
        try:
            return index.find(terms, author, after, limit)
        finally:
            _searches.release()

    return paginate(
        statement,
        limit=limit,
        cursor=cursor,
        name=f"found_{index.name}s",
        newest_first=True,
        parameters={"author": author},
        max_length=max_length,
        find=find,
    )
