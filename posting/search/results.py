"""Lists of what a search finds."""

from typing import Any

import sqlalchemy as sa
from flask import g

from posting.db.types import Position
from posting.search.index import Index
from posting.search.turns import Turns
from posting.search.words import parse_query
from posting.web.hosts import client_ip
from posting.web.pagination import Page, paginate

_turns = Turns()


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
    The client is the user, if the request had to identify one, and otherwise the address. Raise
    SearchBusy if other searches of this client or of others take too long.
    """
    terms = parse_query(words)

    def find(after: Position | None, limit: int) -> list[Position]:
        if not terms:
            return []
        with _turns.take(g.get("user_id") or client_ip()):
            return index.find(terms, author, after, limit)

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
