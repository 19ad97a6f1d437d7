"""Markdown as the HTML of comrak, and as plain text.

Raw HTML is shown as it was typed: all text in the HTML is escaped. `posting.pages` makes safe HTML
of it.

Each text has a budget of HTML. A text that exceeds it, or that cannot be rendered, has no HTML, so
that no text can slow down or break a page, a feed or a list.
"""

import logging
import re
import unicodedata
from collections.abc import Callable
from functools import cache, lru_cache
from itertools import accumulate, groupby
from typing import TypeVar

import comrak

from posting.characters import has_visible, last_boundary

EXCERPT = 200  # characters
BEGINNING = 2_000  # characters of a text of which an excerpt is made
MAX_GROWTH, EXTRA_LENGTH = 8, 4096  # HTML may have 8 times the length of its text, and 4 KB
MAX_TAGS = 20_000
MAX_DEPTH = 20  # browsers and parsers need quadratic time for deeply nested elements
MAX_LINES = 20_000  # at each line, comrak goes through up to 100 lists that are open
MAX_ESCAPED = 2**31  # bytes, to find what must be escaped
MAX_SEARCHED = 2**24  # bytes, to find URLs
MAX_COPIED = 2**20  # characters, to find e-mail addresses
MAX_NAMED = 2**19  # characters, to find names of footnotes
MAX_FOOTNOTES = 2_000  # and marks of footnotes
PICTURE_SIGN = "🖼️"  # an image without a description in a plain text, which has no language

_TAG = re.compile(r"<(/?)(?!br|hr|img|input)\w[^>]*>")
_FOOTNOTE_MARK = re.compile('<sup class="footnote-ref">.*?</sup>')
_FOOTNOTES = '<section class="footnotes"'
# comrak ends a URL only at white space, at `<` and before punctuation of ASCII. So this mark is put
# where a URL ends otherwise, and is removed from the HTML.
_END_OF_URL = "<\ufdd0"  # no one writes U+FDD0, which is not a character
_end_of_url_in_html = re.compile("&lt;\ufdd0|%3C%EF%B7%90")
_may_end_url_itself = re.compile("\ufdd0|%EF%B7%90").search
# Brackets and quotes end a URL, and so do invisible characters, and what ends a sentence in scripts
# without spaces. Other punctuation may belong to it, unless it is at the end: titles of Wikipedia
# have dashes and dots.
_PUNCTUATION = [
    (chr(code), unicodedata.category(chr(code)))
    for code in (*range(0x80, 0x3100), *range(0xFE00, 0xFFFE))
    if unicodedata.category(chr(code))[0] == "P"
]
_BRACKETS = "".join(each for each, kind in _PUNCTUATION if kind in {"Ps", "Pe", "Pi", "Pf"})
_ENDS = (
    _BRACKETS.replace("’", "")
    + "…‥。．｡、､，！？：；\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff"
)
_INNER = "".join(each for each, _ in _PUNCTUATION if each not in f"{_ENDS}’—") + "～"
_bare_url = re.compile(
    rf"(?<!<)(?<!\]\()(?:(?i:https?)://|www\.)"
    rf"(?:[^\s<\]’—{_ENDS}{_INNER}]|’(?=\w)|—(?=_)|\](?!\[)"  # `][` is in `[https://a.b][1]`
    rf"|[{_INNER}](?![{_INNER}]{{0,2}}(?:[\s<]|\Z)))*+"
    r"(?P<end>(?=[^ \t\n\v\f\r<]))?"
)
# URLs with other schemes or without a host are not links, and neither is the mail address in
# `@ada@example.org`.
_other_link = re.compile(
    '<a href="(?:(?!(?i:https?:(?!//")|mailto:))[a-zA-Z]*:[^"]*)?">([^<]*)</a>'
    '|(?<=@)<a href="mailto:[^"]*">([^<]*)</a>'
)
# An at sign, also as an entity; CommonMark allows up to 7 decimal and 6 hexadecimal digits.
AT_SIGN = re.compile("@|&(?:#0{0,5}64|#[xX]0{0,4}40|commat);")
FOOTNOTE_START = re.compile(r"\[[\^&]")  # the circumflex may be an entity
# For each quote and list that begins in a line, comrak goes through the rest of the line.
_LONG_NESTED_LINE = re.compile(
    rf"^[ \t]*+(?:>[ \t]*+|(?:[-+*]|\d{{1,9}}[.)])[ \t]++){{{MAX_DEPTH}}}.{{5000}}", re.MULTILINE
)
_ANY_TAG = re.compile("<[^>]*>")
_TEXT = re.compile("(?:^|>)([^<]+)")
PICTURE = re.compile('<img src="([^"]*)" alt="([^"]*)"[^>]*>')
# comrak writes raw HTML that is a block of its own as text outside of paragraphs, and keeps the
# line breaks of all raw HTML. Code, tags and the line breaks between them stay as they are.
_RAW_HTML = re.compile(
    r"<pre\b.*?</pre>|<[^>]*>"
    r"|(?:\A|(?<=>\n)(?<!<br />\n)(?<!<li>\n))(?P<block> {0,3}&lt;[^<]*)\n(?=<|\Z)"
    r"|(?<!>)(?P<break>\n)(?!<|\Z)",
    re.DOTALL,
)
_unfinished_autolink = re.compile(r"(?<!\]\()<(?i:https?|mailto):[^\s<>]*\Z")
_linked_picture = re.compile(r"\[!\[[^\[\]]*\Z")  # `[![a](b)](c)` up to the `]` after `a`
_ENTITIES = (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&amp;", "&"))
_logger = logging.getLogger("posting.markdown")

Rendered = TypeVar("Rendered")


def to_html(text: str, *, find_links: bool = True) -> str | None:
    """Return the HTML of a Markdown text, or None if it exceeds its budget.

    `find_links` says whether URLs and e-mail addresses become links without further marks, and raw
    HTML keeps its lines. A text that is made plain needs neither.
    """
    if _count_lines(text) > MAX_LINES or _LONG_NESTED_LINE.search(text):
        return None
    if not _is_quickly_escaped(text):
        return None
    with_links = find_links and _may_have_links(text)
    options = _extensions(with_links, _may_have_tables(text), _may_have_footnotes(text))
    marked = _mark_ends_of_urls(text) if with_links else text
    html = comrak.render_markdown(
        marked + "\n",
        extension_options=options,
        parse_options=_parse_options(),
        render_options=_render_options(),
    )
    if marked != text:
        html = _end_of_url_in_html.sub("", html)
    if "<a " in html:
        html = _other_link.sub(r"\1\2", html)
    if "<sub>" in html:  # only `~~` strikes out
        html = html.replace("<sub>", "~").replace("</sub>", "~")
    if find_links and "&lt;" in html:
        html = _RAW_HTML.sub(_keep_lines, html)
    return html if is_within_budget(html, text) else None


def try_to_render(render: Callable[[], Rendered], text: str) -> Rendered | None:
    """Return what a function makes of a text, or None if it fails.

    A failure is logged without its message, which may quote the text.
    """
    try:
        return render()
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic in Rust is not an Exception
        _logger.error(
            "A text of %d characters cannot be rendered and is shown as it is (%s)",
            len(text),
            type(error).__name__,
        )
        return None


def excerpt(text: str, length: int = EXCERPT) -> str:
    """Return the beginning of a Markdown text as plain text in one line."""
    return shorten(_plain_beginning(_beginning(text)), length)


@lru_cache(maxsize=200)
def _plain_beginning(beginning: str) -> str:
    return to_plain(beginning)


def _beginning(text: str) -> str:
    """Return the beginning of a text. If it ends within the URL of a link, end the URL there."""
    if len(text) < BEGINNING:
        return text
    start = text[:BEGINNING]
    if (len(start) - len(start.rstrip("\\"))) % 2:  # the last one is for the next character
        start = start[:-1]
    if _unfinished_autolink.search(start):
        return f"{start}>"
    before, mark, url = start.rpartition("](")
    in_angles = url.startswith("<")
    if not mark or re.search(r"[\n>]" if in_angles else r"\s", url):
        return start
    start += ">)" if in_angles else ")" * (1 + url.count("(") - url.count(")"))
    return f"{start}](#)" if _linked_picture.search(before) else start


def to_plain(text: str) -> str:
    """Return a Markdown text as plain text in one line.

    Images stand for their descriptions if there is nothing else. A text that would show nothing is
    returned as it is.
    """
    # The text of a link is the same.
    html = try_to_render(lambda: to_html(text, find_links=False), text)
    plain = text
    if html is not None:
        if "[^" in text:
            html = _FOOTNOTE_MARK.sub("", html.partition(_FOOTNOTES)[0])
        plain = _to_plain(html)
        if not has_visible(plain):
            pictures = [(url, alt, has_visible(alt)) for url, alt in PICTURE.findall(html)]
            alts = [alt if seen else PICTURE_SIGN for url, alt, seen in pictures if url or seen]
            plain = _to_plain(" ".join(alts)) if alts else text
    return " ".join(plain.split())


def _to_plain(html: str) -> str:
    plain = _ANY_TAG.sub("", html)
    for entity, character in _ENTITIES:  # comrak writes no other entities
        plain = plain.replace(entity, character)
    return plain


def shorten(plain: str, length: int = EXCERPT) -> str:
    """Return the beginning of a plain text.

    It ends after a word if a space is near. There may be none, for example in Chinese.
    """
    if len(plain) <= length:
        return plain
    space = plain.rfind(" ", length - length // 4, length)
    end = last_boundary(plain, length) if space == -1 else space
    return f"{plain[:end]} …"


def is_within_budget(html: str, text: str) -> bool:
    """Return whether HTML is short enough for its text, and not nested too deep."""
    return is_short(html, text) and _depth(html) <= MAX_DEPTH


def is_short(html: str, text: str) -> bool:
    """Return whether HTML is as short as its text allows, and has few enough tags."""
    return len(html) <= MAX_GROWTH * len(text) + EXTRA_LENGTH and html.count("<") <= MAX_TAGS


def shows_something(html: str) -> bool:
    """Return whether the HTML of a text has an image or a visible character."""
    return "<img" in html or any(has_visible(part[1]) for part in _TEXT.finditer(html))


def _keep_lines(part: re.Match[str]) -> str:
    """Return a part of the HTML of comrak in which raw HTML has the lines that were typed."""
    if part["block"]:
        lines = part["block"].replace("\n", "<br />\n")
        return f"<p>{lines}</p>\n"
    return "<br />\n" if part["break"] else part[0]


def _mark_ends_of_urls(text: str) -> str:
    """Return a text with a mark at the end of each bare URL that comrak would not end there."""
    if (text.isascii() and "][" not in text) or _may_end_url_itself(text):
        return text

    def mark(url: re.Match[str]) -> str:
        return url[0] if url["end"] is None else url[0] + _END_OF_URL

    return _bare_url.sub(mark, text)


def _depth(html: str) -> int:
    steps = (-1 if is_end else 1 for is_end in _TAG.findall(html))
    return max(accumulate(steps), default=0)


@cache
def _parse_options() -> comrak.ParseOptions:
    """Return the option that finds URLs of any host and case, also in brackets."""
    options = comrak.ParseOptions()
    options.relaxed_autolinks = True
    return options


@cache
def _render_options() -> comrak.RenderOptions:
    """Return the options that keep line breaks and raw HTML as they were typed."""
    options = comrak.RenderOptions()
    options.hardbreaks = True
    options.escape = True
    return options


@cache
def _extensions(
    with_links: bool, with_tables: bool, with_footnotes: bool
) -> comrak.ExtensionOptions:
    options = comrak.ExtensionOptions()
    options.strikethrough = True
    options.subscript = True  # else a single `~` strikes out as `~~` does
    options.cjk_friendly_emphasis = True
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
    marks = sum(map(text.count, ("://", "www.", ")", "]", "}", "@", "&")))
    if len(text) * marks <= MAX_COPIED:  # quick even if the text is one word in one line
        return marks > 0
    searched = sum(
        len(word) * word.count(mark)
        for word in re.split(rb"[ \t\r\n]+", text.encode())
        for mark in (b"://", b"www.", b")", b"]", b"}")
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
