"""Lists of the posts that a search finds."""

from functools import partial
from typing import Any

import sqlalchemy as sa

from posting.db.search import find_posts
from posting.db.words import parse_query
from posting.http.pagination import Page, paginate


def paginate_results(
    statement: sa.Select[*tuple[Any, ...]],
    query: dict[str, Any],
    words: str,
    *,
    max_length: int | None = None,
) -> Page:
    """Return a page of the posts in which all words occur, newest first.

    For the other parameters see `paginate`.
    """
    find = partial(find_posts, parse_query(words), query.get("author"))
    return paginate(
        statement, query, name="found_posts", newest_first=True, max_length=max_length, find=find
    )
