"""Titles and excerpts of search results, with the words of the search highlighted."""

from collections.abc import Sequence

from markupsafe import Markup, escape

from posting.characters import last_boundary
from posting.markdown import shorten, to_plain
from posting.search.words import Term, find_first, find_words

BEFORE = 60  # characters before what was found
NEAR = 20  # characters within which an excerpt begins at a space
SHOWN = 140  # characters of a longer text that an excerpt always has, wherever it is cut
SEARCHED = 20_000  # characters of Markdown, for words that readers do not see


def highlight(text: str, terms: Sequence[Term]) -> Markup:
    """Return a text as HTML with the words of the terms highlighted."""
    parts, end = [], 0
    for start, stop in find_words(text, terms):
        parts.append(f"{escape(text[end:start])}<mark>{escape(text[start:stop])}</mark>")
        end = stop
    return Markup("".join(parts)) + text[end:]  # noqa: S704 - escaped


def excerpt(text: str, terms: Sequence[Term]) -> Markup:
    """Return an excerpt of a Markdown text around what the terms find first, as HTML.

    Words that readers do not see, such as those of a URL, are shown in the Markdown. If nothing is
    found, return the beginning of the text.
    """
    shown = to_plain(text)
    found = find_first(shown, terms)
    if found is None:
        markdown = " ".join(text[:SEARCHED].split())
        found = find_first(markdown, terms)
        if found is not None:
            shown = markdown
    first, end = found or (0, 0)
    if end > SHOWN:
        start = max(0, first - max(0, min(BEFORE, SHOWN - (end - first))))
        space = shown.find(" ", start, min(start + NEAR, first))
        start = last_boundary(shown, start) if space == -1 else space + 1
        shown = f"… {shown[start:]}" if start else shown
    return highlight(shorten(shown), terms)
