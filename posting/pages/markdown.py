"""Markdown as safe HTML: comrak renders it without raw HTML, and nh3 keeps what is allowed.

The replacements between the two rely on the fixed form of comrak's output, in which all text is
escaped. Whatever they leave is still sanitized.
"""

import re
from functools import cache, lru_cache
from html import escape, unescape
from itertools import groupby

import comrak
import nh3

from posting.db.types import ID_LENGTH

EXCERPT = 200  # characters
MAX_DEPTH = 100  # browsers and parsers need quadratic time for deeply nested elements
TAGS = set(
    "a blockquote br code del div em h2 h3 h4 h5 h6 hr img li ol p pre strong table tbody td "
    "th thead tr ul".split()
)
MAX_SEARCHED = 2**24  # bytes, to find URLs
MAX_COPIED = 2**20  # characters, to find e-mail addresses
TEXT_ONLY = nh3.Cleaner(tags=set())

_TAG = re.compile(r"<(/?)(?!br|hr|img)\w[^>]*>")
_HEADING = re.compile(r"<(/?)h([1-6])>")
_IMAGE = re.compile(r'<img src="([^"]*)" alt="([^"]*)"[^>]*>')
_ALIGNMENT = re.compile(r' align="(left|center|right)"')
_CAPITALIZED_URL = re.compile(r"(^|[-*+>.!?:] )H(ttps?://)", re.MULTILINE)
_IMAGE_ID = re.compile(rf'<img src="[^"]*/images/([\w-]{{{ID_LENGTH}}})"')


def render(
    text: str, *, image_urls: tuple[str, ...], heading: int = 2, base: str | None = None
) -> str:
    """Return Markdown as HTML whose headings begin at the level `heading`.

    Images are shown if their URLs begin with one of `image_urls`; others become links. With `base`,
    all URLs become absolute.
    """
    # Short texts are mostly comments, of which a page shows many and a commit changes few.
    run = _render_once if len(text) <= 1000 and base is None else _render
    return run(text, image_urls, heading, base)


def _render(text: str, image_urls: tuple[str, ...], heading: int, base: str | None) -> str:
    html = _to_html(text)
    if "<h" in html:
        html = _HEADING.sub(lambda tag: f"<{tag[1]}h{min(6, int(tag[2]) + heading - 1)}>", html)
    if "<img" in html:
        html = _IMAGE.sub(lambda tag: _image(tag[1], tag[2], image_urls), html)
    if "<table>" in html:
        html = _ALIGNMENT.sub(r' class="\1"', html)
        html = html.replace("<table>", '<div class="table"><table>')
        html = html.replace("</table>", "</table></div>")
    return _allowed(base).clean(html)


@lru_cache(maxsize=8)
def _allowed(base: str | None) -> nh3.Cleaner:
    """Return the function that keeps what is allowed."""
    return nh3.Cleaner(
        tags=TAGS,
        attributes={"a": {"href", "title"}, "img": {"src", "alt"}, "ol": {"start"}},
        allowed_classes={"div": {"table"}, "td": {"center", "right"}, "th": {"center", "right"}},
        set_tag_attribute_values={
            "img": {"loading": "lazy"},
            # What scrolls inside itself must be reachable by keyboard.
            "pre": {"tabindex": "0"},
            "div": {"tabindex": "0"},
        },
        url_schemes={"http", "https", "mailto"},
        url_relative=("rewrite_with_base", base) if base else None,
        link_rel="nofollow ugc noopener",
    )


_render_once = lru_cache(maxsize=1000)(_render)


@lru_cache(maxsize=200)
def excerpt(text: str, length: int = EXCERPT) -> str:
    """Return the beginning of a Markdown text as plain text in one line."""
    return shorten(to_plain(text), length)


def to_plain(text: str) -> str:
    """Return a Markdown text as plain text in one line."""
    return " ".join(unescape(TEXT_ONLY.clean(_to_html(text))).split())


def shorten(plain: str, length: int = EXCERPT) -> str:
    """Return the first words of a plain text."""
    if len(plain) <= length:
        return plain
    start = plain[:length]
    return f"{start.rpartition(' ')[0] or start} …"


def image_ids(html: str) -> set[str]:
    """Return the ids of the images that rendered Markdown shows."""
    return set(_IMAGE_ID.findall(html))


def _to_html(text: str) -> str:
    """Return the HTML of comrak. A text that is too deep for browsers becomes one paragraph."""
    if "Http" in text:  # phones capitalize the first word of a sentence; comrak finds no such URLs
        text = _CAPITALIZED_URL.sub(r"\1h\2", text)
    options = _extensions(_may_have_links(text), _may_have_tables(text))
    html = comrak.render_markdown(text + "\n", extension_options=options)
    return html if _depth(html) <= MAX_DEPTH else f"<p>{escape(text)}</p>"


@cache
def _extensions(with_links: bool, with_tables: bool) -> comrak.ExtensionOptions:
    options = comrak.ExtensionOptions()
    options.strikethrough = True
    options.autolink = with_links
    options.table = with_tables
    return options


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
    copied = sum(len(line) * unescape(line).count("@") for line in re.split(r"[\r\n]", text))
    return searched <= MAX_SEARCHED and copied <= MAX_COPIED


def _may_have_tables(text: str) -> bool:
    """Return whether tables in a text cannot have many more cells than the text has words.

    A table ends at a blank line. Its rows that lack cells get empty ones, so 10 KB of text could
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


def _depth(html: str) -> int:
    depth = deepest = 0
    for tag in _TAG.finditer(html):
        depth += -1 if tag[1] else 1
        deepest = max(deepest, depth)
    return deepest


def _image(url: str, alt: str, image_urls: tuple[str, ...]) -> str:
    if url.startswith(image_urls):
        return f'<img src="{url}" alt="{alt}">'
    return f'<a href="{url}">{alt or url}</a>'
