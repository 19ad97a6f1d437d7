"""Markdown as safe HTML: comrak renders it without raw HTML, and nh3 keeps what is allowed.

The replacements between the two rely on the fixed form of comrak's output, in which all text is
escaped. Whatever they leave is still sanitized.

Each text has a budget of HTML. A text that exceeds it, or that cannot be rendered, is shown as it
is, so that no text can slow down or break a page, feed or list.
"""

import logging
import re
from functools import cache, lru_cache
from html import escape
from itertools import accumulate, groupby

import comrak
import nh3

from posting.db.types import ID_LENGTH

EXCERPT = 200  # characters
MAX_GROWTH, EXTRA_LENGTH = 8, 4096  # HTML may have 8 times the length of its text, and 4 KB
MAX_TAGS = 20_000
MAX_DEPTH = 20  # browsers and parsers need quadratic time for deeply nested elements
TAGS = set(
    "a blockquote br code del div em h2 h3 h4 h5 h6 hr img li ol p pre strong table tbody td "
    "th thead tr ul".split()
)
MAX_ESCAPED = 2**31  # bytes, to find what must be escaped
MAX_SEARCHED = 2**24  # bytes, to find URLs
MAX_COPIED = 2**20  # characters, to find e-mail addresses

_TAG = re.compile(r"<(/?)(?!br|hr|img)\w[^>]*>")
_HEADING = re.compile(r"<(/?)h([1-6])>")
_IMAGE = re.compile(r'<img src="([^"]*)" alt="([^"]*)"[^>]*>')
_ALIGNMENT = re.compile(r' align="(left|center|right)"')
_CAPITALIZED_URL = re.compile(r"(^|[-*+>.!?:] )H(ttps?://)", re.MULTILINE)
_IMAGE_ID = re.compile(rf'<img src="[^"]*/images/([\w-]{{{ID_LENGTH}}})"')
_ID = re.compile(rf"[\w-]{{{ID_LENGTH}}}", re.ASCII)
# An at sign, also as an entity; CommonMark allows up to 7 decimal and 6 hexadecimal digits.
_AT = re.compile("@|&(?:#0{0,5}64|#[xX]0{0,4}40|commat);")
_ANY_TAG = re.compile("<[^>]*>")
_ENTITIES = (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&amp;", "&"))
_logger = logging.getLogger("posting.markdown")


def render(
    text: str, *, image_urls: tuple[str, ...], heading: int = 2, base: str | None = None
) -> str:
    """Return Markdown as HTML whose headings begin at the level `heading`.

    An image is shown if its URL is one of `image_urls` followed by an ID. Other images become
    links. With `base`, all URLs become absolute.
    """
    # Short texts are mostly comments, of which a page shows many and a commit changes few.
    run = _render_once if len(text) <= 1000 and base is None else _render
    try:
        return run(text, image_urls, heading, base)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic in Rust is no Exception
        _log_failure(text, error)
        return _as_it_is(text)


def _render(text: str, image_urls: tuple[str, ...], heading: int, base: str | None) -> str:
    html = _to_html(text, with_links=_may_have_links(text))
    if html is None:
        return _as_it_is(text)
    if "<h" in html:
        html = _HEADING.sub(lambda tag: f"<{tag[1]}h{min(6, int(tag[2]) + heading - 1)}>", html)
    if "<img" in html:
        html = _IMAGE.sub(lambda tag: _image(tag[1], tag[2], image_urls), html)
    if "<table>" in html:
        html = _ALIGNMENT.sub(r' class="\1"', html)
        html = html.replace("<table>", '<div class="table"><table>')
        html = html.replace("</table>", "</table></div>")
    # What images and tables were replaced with has more tags and levels.
    if not _is_short(html, text) or _depth(html) > MAX_DEPTH:
        return _as_it_is(text)
    html = _allowed(base).clean(html)
    # The sanitizer adds attributes, and makes URLs absolute.
    return html if _is_short(html, text) else _as_it_is(text)


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
    try:
        html = _to_html(text, with_links=False)  # the text of a link is the same
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic in Rust is no Exception
        _log_failure(text, error)
        html = None
    plain = text
    if html is not None:
        plain = _ANY_TAG.sub("", html)
        for entity, character in _ENTITIES:  # comrak writes no others
            plain = plain.replace(entity, character)
    return " ".join(plain.split())


def shorten(plain: str, length: int = EXCERPT) -> str:
    """Return the first words of a plain text."""
    if len(plain) <= length:
        return plain
    start = plain[:length]
    return f"{start.rpartition(' ')[0] or start} …"


def image_ids(html: str) -> set[str]:
    """Return the ids of the images that rendered Markdown shows."""
    return set(_IMAGE_ID.findall(html))


def _to_html(text: str, *, with_links: bool) -> str | None:
    """Return the HTML of comrak, or None if the text exceeds its budget."""
    if not _is_quickly_escaped(text):
        return None
    if "Http" in text:  # phones capitalize the first word of a sentence; comrak finds no such URLs
        text = _CAPITALIZED_URL.sub(r"\1h\2", text)
    options = _extensions(with_links, _may_have_tables(text))
    html = comrak.render_markdown(text + "\n", extension_options=options)
    return html if _is_short(html, text) and _depth(html) <= MAX_DEPTH else None


def _as_it_is(text: str) -> str:
    return f'<p class="as-it-is">{escape(text)}</p>'


def _log_failure(text: str, error: BaseException) -> None:
    """Log that a text cannot be rendered, without the text, which the error may quote."""
    _logger.error(
        "A text of %d characters cannot be rendered and is shown as it is (%s)",
        len(text),
        type(error).__name__,
    )


@cache
def _extensions(with_links: bool, with_tables: bool) -> comrak.ExtensionOptions:
    options = comrak.ExtensionOptions()
    options.strikethrough = True
    options.autolink = with_links
    options.table = with_tables
    return options


def _is_quickly_escaped(text: str) -> bool:
    """Return whether nh3 can write a text within its budget of time.

    At each ampersand, and at each character whose UTF-8 begins like that of a no-break space, nh3
    searches the rest of the text for the next one of the other kind.
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
    copied = sum(len(line) * len(_AT.findall(line)) for line in re.split(r"[\r\n]", text))
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


def _is_short(html: str, text: str) -> bool:
    """Return whether HTML is as short as its text allows, and has few enough tags."""
    return len(html) <= MAX_GROWTH * len(text) + EXTRA_LENGTH and html.count("<") <= MAX_TAGS


def _depth(html: str) -> int:
    steps = (-1 if is_end else 1 for is_end in _TAG.findall(html))
    return max(accumulate(steps), default=0)


def _image(url: str, alt: str, image_urls: tuple[str, ...]) -> str:
    base, _, id = url.rpartition("/")
    if f"{base}/" in image_urls and _ID.fullmatch(id):
        return f'<img src="{url}" alt="{alt}">'
    return f'<a href="{url}">{alt or url}</a>'
