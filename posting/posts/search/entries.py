"""Posts as the search index has them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from posting.posts.search.words import split_words

PostRow = Mapping[Any, Any]  # the columns of a post


@dataclass(frozen=True)
class PostWords:
    """The words of a post's title and content, which are split before a transaction begins."""

    texts: tuple[str, str]
    title: list[str]
    content: list[str]


Entry = tuple[PostRow, PostWords]


def split_post(post: PostRow) -> PostWords:
    """Return the words of a post. It may take 0.05 seconds of CPU time."""
    title, content = post["title"], post["content"]
    return PostWords((title, content), split_words(title), split_words(content))


def split_posts(posts: Sequence[PostRow]) -> list[Entry]:
    """Return posts with their words."""
    return [(post, split_post(post)) for post in posts]
