"""Parts of pages that are rendered once, such as comments and the header.

A commit changes few of the comments and posts on a page, but empties the cache of responses. So a
worker keeps their HTML, by everything that it depends on. A page with 50 comments takes half of the
time.
"""

from collections.abc import Callable
from typing import Any

from markupsafe import Markup

MAX_FRAGMENTS = 1000
MAX_LENGTH = 4000  # characters of the HTML and of the texts that it depends on

Key = tuple[Any, ...]


class Fragments:
    """The HTML of fragments by their keys. All of it is forgotten when there are too many."""

    def __init__(self) -> None:
        self._kept: dict[Key, Markup] = {}

    def once(self, page: Key, *key: Any, caller: Callable[[], Markup]) -> Markup:
        """Return what `caller` renders, which is the body of a call block in a template.

        It must depend only on `page`, which is the same for the whole page, and on `key`. An item
        in the key stands for all of its values.
        """
        hashable = (page, *[_freeze(part) if isinstance(part, dict) else part for part in key])
        html = self._kept.get(hashable)
        if html is None:
            html = caller()
            texts = (value for part in hashable if isinstance(part, tuple) for value in part)
            length = sum(len(text) for text in texts if isinstance(text, str))
            if len(html) + length <= MAX_LENGTH:
                if len(self._kept) >= MAX_FRAGMENTS:
                    self._kept.clear()
                self._kept[hashable] = html
        return html


def _freeze(item: dict[str, Any]) -> Key:
    return tuple(
        [tuple(value.values()) if isinstance(value, dict) else value for value in item.values()]
    )
