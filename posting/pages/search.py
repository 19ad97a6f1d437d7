"""The results that the page of a search shows."""

from collections.abc import Sequence
from typing import Any

from posting.accounts.names import count_users_by_name, list_users_by_name
from posting.comments.store import INDEX as COMMENTS
from posting.comments.store import find_comments
from posting.pages.attachments import MAX_LENGTH, MEMBERS_PER_PAGE, add_pictures
from posting.posts.store import INDEX as POSTS
from posting.posts.store import find_posts
from posting.search.results import MAX_COUNT, count_results, suggest_query
from posting.search.words import Term, has_short_prefix, parse_query, split_words, with_beginning

TEXT_INDEXES = (POSTS, COMMENTS)  # in which words are found
TEXTS_PER_PAGE = 20


def find_results(q: str, chosen: str | None, cursor: str | None) -> dict[str, Any]:
    """Return what the template shows of the posts, comments or members that a query finds.

    If none of them is chosen, they are the first of which some are found. The last word of the
    query may be the beginning of a word.
    """
    is_short = has_short_prefix(q)
    words = "" if is_short else with_beginning(q)
    counts = {} if cursor else count_found(q, words)
    has_nothing = bool(words) and not cursor and not any(counts.values())
    show = chosen or next((name for name, count in counts.items() if count), "posts")
    terms: Sequence[str | Term] = split_words(q) if show == "members" else parse_query(words)
    options: dict[str, Any] = {"limit": TEXTS_PER_PAGE, "cursor": cursor, "max_length": MAX_LENGTH}
    if show == "members":
        found = list_users_by_name(q, limit=MEMBERS_PER_PAGE, cursor=cursor)
    elif show == "comments":
        found = find_comments(words, **options)
    else:
        found = find_posts(words, text="whole", **options)
        add_pictures(found)
    return {
        "page": found,
        "q": q,
        "show": show,
        "counts": counts,
        "max_count": MAX_COUNT,
        "terms": terms,
        "has_short_prefix": is_short,
        "suggestion": suggest_query(TEXT_INDEXES, q) if has_nothing else None,
    }


def count_found(q: str, words: str) -> dict[str, int]:
    """Return how many posts, comments and members a search finds, or more than MAX_COUNT."""
    posts, comments = count_results(TEXT_INDEXES, words)
    members = count_users_by_name(q, MAX_COUNT)
    return {"posts": posts, "comments": comments, "members": members}
