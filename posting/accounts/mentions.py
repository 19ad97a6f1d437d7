"""Mentions of members in texts: `@name`, outside of code, links and words."""

import re
from collections.abc import Iterator
from html import escape
from itertools import islice

from posting.accounts.fields import USERNAME_PATTERN
from posting.markdown import AT_SIGN, to_html, try_to_render

MAX_MENTIONS = 20  # of a text

_NAME = USERNAME_PATTERN.removeprefix("^").removesuffix("$")
_WORD = "A-Za-z0-9_"  # ASCII, because other letters may touch a name, as in @adaさん
# What makes a name the beginning of an address: `@ada:example.org`, `@ada:пример.рф`. Without
# a dot, other letters may be the next word, as in `@ada:你好`.
_HOST = rf"[./:][{_WORD}]|[./:][\w\u0300-\u1fff-]+\.\w|:\[[0-9A-Fa-f]*:"
# Code and links with all that is in them, other tags, and mentions. Each alternative begins with
# another character, so that `re` skips to it. An `@` in an address or a path is not a mention.
_PART = re.compile(
    r"<(a|code)\b[^>]*>.*?</\1>|<[^>]*>"
    rf"|@(?<![{_WORD}/@]@)(?P<name>{_NAME})(?![{_WORD}@-]|{_HOST})",
    re.DOTALL,
)


def find_mentions(text: str) -> frozenset[str]:
    """Return the names that a Markdown text mentions, in lower case. Not all may be of users.

    It may take 0.07 seconds of CPU time.
    """
    if not AT_SIGN.search(text):
        return frozenset()
    html = try_to_render(lambda: to_html(text), text)
    return frozenset(mention["name"].lower() for mention in _mentions(html or ""))


def link_mentions(html: str, url: str) -> str:
    """Return the HTML of comrak with a link at each mention: to `url` and the name."""
    parts, end = [], 0
    for mention in _mentions(html):
        href = escape(f"{url}{mention['name']}")
        parts.append(f'{html[end : mention.start()]}<a href="{href}">{mention[0]}</a>')
        end = mention.end()
    return "".join([*parts, html[end:]])


def _mentions(html: str) -> Iterator[re.Match[str]]:
    """Yield the mentions in the HTML of comrak. Only the first twenty of a text count."""
    return islice((part for part in _PART.finditer(html) if part["name"]), MAX_MENTIONS)
