"""Markdown as the HTML of comrak, and as plain text.

In the HTML, raw HTML is left out and all text is escaped. `posting.pages` makes safe HTML of it.

Each text has a budget of HTML. A text that exceeds it, or that cannot be rendered, has no HTML, so
that no text can slow down or break a page, a feed or a list.
"""

import logging
import re
from collections.abc import Callable
from functools import cache, lru_cache
from itertools import accumulate, groupby
from typing import TypeVar

import comrak

EXCERPT = 200  # characters
MAX_GROWTH, EXTRA_LENGTH = 8, 4096  # HTML may have 8 times the length of its text, and 4 KB
MAX_TAGS = 20_000
MAX_DEPTH = 20  # browsers and parsers need quadratic time for deeply nested elements
MAX_LINES = 20_000  # at each line, comrak goes through up to 100 lists that are open
MAX_ESCAPED = 2**31  # bytes, to find what must be escaped
MAX_SEARCHED = 2**24  # bytes, to find URLs
MAX_COPIED = 2**20  # characters, to find e-mail addresses
MAX_NAMED = 2**19  # characters, to find names of footnotes
MAX_FOOTNOTES = 2_000  # and marks of footnotes

_TAG = re.compile(r"<(/?)(?!br|hr|img|input)\w[^>]*>")
_FOOTNOTE_MARK = re.compile('<sup class="footnote-ref">.*?</sup>')
_FOOTNOTES = '<section class="footnotes"'
_CAPITALIZED_URL = re.compile(r"(^|[-*+>.!?:] )H(ttps?://)", re.MULTILINE)
# An at sign, also as an entity; CommonMark allows up to 7 decimal and 6 hexadecimal digits.
AT_SIGN = re.compile("@|&(?:#0{0,5}64|#[xX]0{0,4}40|commat);")
FOOTNOTE_START = re.compile(r"\[[\^&]")  # the circumflex may be an entity
# For each quote and list that begins in a line, comrak goes through the rest of the line.
_LONG_NESTED_LINE = re.compile(
    rf"^[ \t]*+(?:>[ \t]*+|(?:[-+*]|\d{{1,9}}[.)])[ \t]++){{{MAX_DEPTH}}}.{{5000}}", re.MULTILINE
)
_ANY_TAG = re.compile("<[^>]*>")
_ENTITIES = (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&amp;", "&"))
_logger = logging.getLogger("posting.markdown")

Rendered = TypeVar("Rendered")


def to_html(text: str, *, find_links: bool = True) -> str | None:
    """Return the HTML of a Markdown text, or None if it exceeds its budget.

    `find_links` says whether URLs and e-mail addresses become links without further marks.
    """
    if _count_lines(text) > MAX_LINES or _LONG_NESTED_LINE.search(text):
        return None
    if not _is_quickly_escaped(text):
        return None
    with_links = find_links and _may_have_links(text)
    if "Http" in text:  # phones capitalize the first word of a sentence; comrak finds no such URLs
        text = _CAPITALIZED_URL.sub(r"\1h\2", text)
    options = _extensions(with_links, _may_have_tables(text), _may_have_footnotes(text))
    html = comrak.render_markdown(
        text + "\n", extension_options=options, render_options=_line_breaks()
    )
    return html if is_within_budget(html, text) else None


def try_to_render(render: Callable[[], Rendered], text: str) -> Rendered | None:
    """Return what a function makes of a text, or None if it fails.

    A failure is logged without its message, which may quote the text.
    """
    try:
        return render()
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic in Rust is no Exception
        _logger.error(
            "A text of %d characters cannot be rendered and is shown as it is (%s)",
            len(text),
            type(error).__name__,
        )
        return None


@lru_cache(maxsize=200)
def excerpt(text: str, length: int = EXCERPT) -> str:
    """Return the beginning of a Markdown text as plain text in one line."""
    return shorten(to_plain(text), length)


def to_plain(text: str) -> str:
    """Return a Markdown text as plain text in one line."""
    # The text of a link is the same.
    html = try_to_render(lambda: to_html(text, find_links=False), text)
    plain = text
    if html is not None:
        if "[^" in text:
            html = _FOOTNOTE_MARK.sub("", html.partition(_FOOTNOTES)[0])
        plain = _ANY_TAG.sub("", html)
        for entity, character in _ENTITIES:  # comrak writes no other entities
            plain = plain.replace(entity, character)
    return " ".join(plain.split())


def shorten(plain: str, length: int = EXCERPT) -> str:
    """Return the first words of a plain text."""
    if len(plain) <= length:
        return plain
    start = plain[:length]
    return f"{start.rpartition(' ')[0] or start} …"


def is_within_budget(html: str, text: str) -> bool:
    """Return whether HTML is short enough for its text, and not nested too deep."""
    return is_short(html, text) and _depth(html) <= MAX_DEPTH


def is_short(html: str, text: str) -> bool:
    """Return whether HTML is as short as its text allows, and has few enough tags."""
    return len(html) <= MAX_GROWTH * len(text) + EXTRA_LENGTH and html.count("<") <= MAX_TAGS


def _depth(html: str) -> int:
    steps = (-1 if is_end else 1 for is_end in _TAG.findall(html))
    return max(accumulate(steps), default=0)


@cache
def _line_breaks() -> comrak.RenderOptions:
    """Return the option that keeps line breaks as they were typed."""
    options = comrak.RenderOptions()
    options.hardbreaks = True
    return options


@cache
def _extensions(
    with_links: bool, with_tables: bool, with_footnotes: bool
) -> comrak.ExtensionOptions:
    options = comrak.ExtensionOptions()
    options.strikethrough = True
    options.tasklist = True
    options.footnotes = with_footnotes
    options.autolink = with_links
    options.table = with_tables
    return options


def _count_lines(text: str) -> int:
    return 1 + text.count("\n") + text.count("\r") - text.count("\r\n")


def _is_quickly_escaped(text: str) -> bool:
    """Return whether nh3 can write a text within its budget of time.

    nh3 looks for two bytes: `&`, and the first byte of a no-break space in UTF-8. At each of them
    it searches the rest of the text for the other byte.
    """
    encoded = text.encode()
    return len(encoded) * (encoded.count(b"&") + encoded.count(b"\xc2")) <= MAX_ESCAPED


def _may_have_links(text: str) -> bool:
    """Return whether to look for URLs and e-mail addresses in a text.

    comrak searches a word again for each possible beginning or end of a URL, and copies the rest of
    a line for each possible address: without limits, 100 KB could take 3 seconds or a gigabyte.
    """
    marks = sum(map(text.count, ("://", "www.", ")", "@", "&")))
    if len(text) * marks <= MAX_COPIED:  # quick even if the text is one word in one line
        return marks > 0
    searched = sum(
        len(word) * word.count(mark)
        for word in re.split(rb"[ \t\r\n]+", text.encode())
        for mark in (b"://", b"www.", b")")
    )
    copied = sum(len(line) * len(AT_SIGN.findall(line)) for line in re.split(r"[\r\n]", text))
    return searched <= MAX_SEARCHED and copied <= MAX_COPIED


def _may_have_footnotes(text: str) -> bool:
    """Return whether to look for footnotes in a text.

    For each possible beginning of a name, comrak copies the rest of the line: 10 KB could take 0.8
    seconds, and 100 KB 100.
    """
    if not 0 < text.count("[^") <= MAX_FOOTNOTES:
        return False
    if len(text) * text.count("[") <= MAX_NAMED:
        return True
    lines = re.split(r"[\r\n]", text)
    return sum(len(line) * len(FOOTNOTE_START.findall(line)) for line in lines) <= MAX_NAMED


def _may_have_tables(text: str) -> bool:
    """Return whether the tables of a text have few enough cells for its length.

    A table ends at a blank line. Its rows are filled up with empty cells, so 10 KB of text could
    become 5 MB of HTML in a second.
    """
    if "|" not in text:
        return True
    lines = text.replace("\r", "\n").split("\n")
    cells = 0
    for is_blank, block in groupby(lines, key=lambda line: not line.strip(" \t")):
        if not is_blank:
            columns = [line.count("|") for line in block]
            cells += len(columns) * max(columns)
    return 2 * cells <= len(text) + 200
