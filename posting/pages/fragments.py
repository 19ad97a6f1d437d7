"""Parts of pages that are rendered once, such as comments and the header.

A commit empties the cache of responses, but changes few of the comments and posts on a page. So a
worker keeps the HTML of each comment and post, with the values that it shows as the key. A page
with 50 comments takes three fifths of the time.
"""

import sys
from collections.abc import Callable
from datetime import datetime
from threading import Lock
from typing import Any

from markupsafe import Markup

from posting.pages.markdown import AS_IT_IS

MAX_SIZE = 2 * 2**20  # bytes of all fragments and their keys
MAX_SIZE_OF_ONE = 16 * 2**10

Key = tuple[Any, ...]


class Fragments:
    """The HTML of fragments by their keys. The oldest ones make room for new ones."""

    def __init__(self, max_size: int = MAX_SIZE) -> None:
        self._max_size = max_size
        self._kept: dict[Key, Markup] = {}
        self._sizes: dict[Key, int] = {}
        self._size = 0
        self._lock = Lock()  # on changes of the three above

    def once(self, page: Key, *key: Any, caller: Callable[[], Markup]) -> Markup:
        """Return what `caller` renders, which is the body of a call block in a template.

        It must depend only on `page`, which is the same for the whole page, and on `key`, whose
        parts are texts, numbers, times, None, and items and lists of such values.
        """
        hashable = (page, *[_freeze(part) for part in key])
        html = self._kept.get(hashable)
        if html is None:
            html = caller()
            if AS_IT_IS not in html:  # the renderer may have failed, and may succeed next time
                self._keep(hashable, html)
        return html

    def _keep(self, key: Key, html: Markup) -> None:
        size = _size_of(key) + sys.getsizeof(html)
        if size > min(MAX_SIZE_OF_ONE, self._max_size):
            return
        with self._lock:
            if key in self._kept:
                return
            while self._size + size > self._max_size:
                oldest = next(iter(self._kept))
                del self._kept[oldest]
                self._size -= self._sizes.pop(oldest)
            self._kept[key], self._sizes[key] = html, size
            self._size += size


def _freeze(part: Any) -> Any:
    """Return the values of an item or a list, which can be hashed."""
    if isinstance(part, list):
        return tuple(map(_freeze, part))
    if not isinstance(part, dict):
        return part
    return tuple([_freeze(v) if isinstance(v, dict | list) else v for v in part.values()])


def _size_of(part: Any) -> int:
    """Return the bytes of a part of a key. Raise TypeError for one that may hold anything."""
    if isinstance(part, tuple):
        return sys.getsizeof(part) + sum(map(_size_of, part))
    if part is None or isinstance(part, str | int | datetime):
        return sys.getsizeof(part)
    raise TypeError(f"A fragment cannot be kept by a {type(part).__name__}.")
