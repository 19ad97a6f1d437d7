"""Titles and excerpts of search results, with the words of the search highlighted."""

from collections.abc import Sequence

from markupsafe import Markup, escape

from posting.markdown import shorten, to_plain
from posting.search.words import Term, find_words

BEFORE = 60  # characters before the first word that was found


def highlight(text: str, terms: Sequence[Term]) -> Markup:
    """Return a text as HTML with the words of the terms highlighted."""
    parts, end = [], 0
    for start, stop in find_words(text, terms):
        parts.append(f"{escape(text[end:start])}<mark>{escape(text[start:stop])}</mark>")
        end = stop
    return Markup("".join(parts)) + text[end:]  # noqa: S704 - escaped


def excerpt(text: str, terms: Sequence[Term]) -> Markup:
    """Return an excerpt of a Markdown text around the first word of the terms, as HTML.

    If no word is found, return the beginning of the text.
    """
    plain = to_plain(text)
    first = next(iter(find_words(plain, terms)), (0, 0))[0]
    if first > 2 * BEFORE:
        start = plain.find(" ", first - BEFORE, first) + 1 or first - BEFORE
        plain = f"… {plain[start:]}"
    return highlight(shorten(plain), terms)
