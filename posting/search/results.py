"""Lists of what a search finds."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from itertools import islice
from typing import Any

import sqlalchemy as sa
from flask import g

from posting.db.types import Position
from posting.search.index import Index
from posting.search.turns import SearchBusy, Turns
from posting.search.words import Term, parse_query, replace_word, with_beginning
from posting.web.errors import QueryTimeout, to_http_error
from posting.web.hosts import client_ip
from posting.web.pagination import Page, paginate

MAX_COUNT = 100  # results that are counted; beyond them, there are more

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
    """Return a query that finds something, and differs by a slip from one that finds nothing.

    The word that occurs nowhere is replaced by a word that differs from it by one letter: the most
    frequent one. Return None if there is no such query, or if it would take too long to find it.
    """
    try:
        with _turn():
            return _find_suggestion(indexes, query)
    except (SearchBusy, QueryTimeout):
        return None
    except sa.exc.DBAPIError as error:
        if isinstance(to_http_error(error), QueryTimeout):
            return None
        raise


def _find_suggestion(indexes: Sequence[Index], query: str) -> str | None:
    def is_found(*terms: Term) -> bool:
        return any(index.count(terms, 1) for index in indexes)

    missing = (
        word for word, is_prefix in _words_of(query) if not is_found(Term((word,), is_prefix))
    )
    unknown = list(islice(missing, 2))
    if len(unknown) != 1:
        return None
    counts = sum((index.count_similar(unknown[0]) for index in indexes), Counter[str]())
    if not counts:
        return None
    best = max(counts, key=lambda word: (counts[word], word))
    suggestion = replace_word(query, unknown[0], best)
    return suggestion if is_found(*parse_query(with_beginning(suggestion))) else None


def _words_of(query: str) -> Iterator[tuple[str, bool]]:
    """Yield the words of a query, and whether each is the beginning of a word."""
    for term in parse_query(with_beginning(query)):
        *others, last = term.words
        yield from ((word, False) for word in others)
        yield last, term.is_prefix


def _turn() -> AbstractContextManager[None]:
    return _turns.take(g.get("user_id") or client_ip())
