"""Lists of what a search finds."""

from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

import sqlalchemy as sa
from flask import g

from posting.db.types import Position
from posting.search.index import Index
from posting.search.turns import Turns
from posting.search.words import (
    MIN_MISSPELLED_LENGTH,
    Term,
    parse_query,
    replace_word,
    with_beginning,
)
from posting.web.hosts import client_ip
from posting.web.pagination import Page, paginate

MAX_COUNT = 100  # results that are counted; beyond them, there are more
MAX_MISSPELLED = 3  # words of a query for which others are looked up

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
        with _turn():
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


def count_results(indexes: Sequence[Index], words: str) -> list[int]:
    """Return how many rows of each index have all words, or MAX_COUNT + 1 for more than MAX_COUNT.

    Raise SearchBusy.
    """
    terms = parse_query(words)
    if not terms:
        return [0 for _ in indexes]
    with _turn():
        return [index.count(terms, MAX_COUNT + 1) for index in indexes]


def suggest_query(indexes: Sequence[Index], query: str) -> str | None:
    """Return a query that finds something, and differs from one that finds nothing by a slip.

    A word that occurs nowhere is replaced by the word that occurs most often among those that
    differ from it by one letter. Return None if there is no such query. Raise SearchBusy.
    """

    def is_found(terms: Sequence[Term]) -> bool:
        return any(index.count(terms, 1) for index in indexes)

    words = [word for term in parse_query(query) for word in term.words]
    if not words:
        return None
    with _turn():
        unknown = [
            word
            for word in words
            if len(word) >= MIN_MISSPELLED_LENGTH and not is_found([Term((word,))])
        ]
        suggestion = query
        for word in unknown[:MAX_MISSPELLED]:
            counts = sum((index.count_similar(word) for index in indexes), Counter[str]())
            if not counts:
                return None
            best, _ = max(counts.items(), key=lambda each: (each[1], each[0]))
            suggestion = replace_word(suggestion, word, best)
        if suggestion != query and is_found(parse_query(with_beginning(suggestion))):
            return suggestion
    return None


def _turn() -> AbstractContextManager[None]:
    return _turns.take(g.get("user_id") or client_ip())
