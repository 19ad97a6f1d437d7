"""Markdown as safe HTML: comrak renders it, and nh3 keeps what is allowed.

The replacements between the two rely on the fixed form of comrak's output, in which all text is
escaped. Whatever they leave is still sanitized. A text that exceeds its budget of HTML, that cannot
be rendered, or that would show nothing, is shown as it is.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from html import escape
from typing import Any

import nh3
from flask_babel import gettext

from posting.accounts.mentions import link_mentions
from posting.characters import has_visible
from posting.db.types import ID_LENGTH
from posting.markdown import (
    FOOTNOTE_START,
    PICTURE,
    is_short,
    is_within_budget,
    shows_something,
    to_html,
    try_to_render,
)
from posting.pages.elements import image_sizes

TAGS = set(
    "a blockquote br code del div em h2 h3 h4 h5 h6 hr img li ol p pre section strong sup table "
    "tbody td th thead tr ul".split()
)
AS_IT_IS = '<p class="as-it-is">'

_HEADING = re.compile(r"<(/?)h([1-6])>")
_LINK_OR_IMAGE = re.compile(f"<a [^>]*>.*?</a>|{PICTURE.pattern}", re.DOTALL)
_TASK = re.compile(r'<li>(\s*(?:<p>)?)<input type="checkbox"( checked="")? disabled="" /> ?')
_FOOTNOTE = re.compile(r'(id="|href="#)fn(ref)?-')
_BACK = re.compile(r'aria-label="Back to reference ([\d-]+)"')
_ID_ATTRIBUTE = re.compile(' id="[^"]*"')
_ALIGNMENT = re.compile(r' align="(left|center|right)"')
# A table scrolls inside itself, so it must be reachable by keyboard, and have a name there.
_TABLE = '<div class="table" tabindex="0" role="group" aria-label="{}"><table>'
_IMAGE_ID = re.compile(rf'<img src="[^"]*/images/([\w-]{{{ID_LENGTH}}})"')
_ID = re.compile(rf"[\w-]{{{ID_LENGTH}}}", re.ASCII)


def render(
    text: str,
    *,
    image_urls: tuple[str, ...],
    member_url: str = "/@",
    heading: int = 2,
    base: str | None = None,
    name: str = "text",
) -> str:
    """Return Markdown as HTML whose headings begin at the level `heading`.

    An image is shown if its URL is one of `image_urls` followed by an ID, in a link to its file.
    Other images become links. A mention leads to `member_url` followed by the name. With `base`,
    all URLs become absolute. The ids of footnotes contain `name`, which must be different for each
    text on a page.
    """
    if not FOOTNOTE_START.search(text):
        name = ""
    html = try_to_render(
        lambda: _render(text, image_urls, member_url, heading=heading, base=base, name=name), text
    )
    return _as_it_is(text) if html is None else html


def _render(
    text: str,
    image_urls: tuple[str, ...],
    member_url: str,
    *,
    heading: int,
    base: str | None,
    name: str,
) -> str:
    html = to_html(text)
    if html is None:
        return _as_it_is(text)
    if "@" in html:  # before the images, whose descriptions would become text
        html = link_mentions(html, member_url)
    if "<h" in html:
        html = _HEADING.sub(lambda tag: f"<{tag[1]}h{min(6, int(tag[2]) + heading - 1)}>", html)
    if "<img" in html:
        html = _LINK_OR_IMAGE.sub(lambda part: _show_images(part[0], image_urls), html)
    if "<table>" in html:
        html = _ALIGNMENT.sub(r' class="\1"', html)
        html = html.replace("<table>", _TABLE.format(escape(gettext("Table"))))
        html = html.replace("</table>", "</table></div>")
    if "<input" in html:
        html = _TASK.sub(lambda tag: f'<li class="task">{tag[1]}{"☑" if tag[2] else "☐"} ', html)
    if name:
        html = _BACK.sub(_label_of_way_back, html)
        html = _without_repeated_ids(_FOOTNOTE.sub(rf"\1fn\2-{name}-", html))
    # The replacements of mentions, images and tables have more tags and levels.
    if not is_within_budget(html, text) or not shows_something(html):
        return _as_it_is(text)
    html = _allowed(base).clean(html)
    # The sanitizer adds attributes, and makes URLs absolute.
    return html if is_short(html, text) else _as_it_is(text)


def _without_repeated_ids(html: str) -> str:
    """Return HTML without the ids that an earlier element has. Footnotes can share a name."""
    seen = set()

    def keep_first(attribute: re.Match[str]) -> str:
        if attribute[0] in seen:
            return ""
        seen.add(attribute[0])
        return attribute[0]

    return _ID_ATTRIBUTE.sub(keep_first, html)


@lru_cache(maxsize=8)
def _allowed(base: str | None) -> nh3.Cleaner:
    """Return the function that keeps what is allowed."""
    return nh3.Cleaner(
        tags=TAGS,
        attributes={
            "a": {"href", "title", "id", "aria-label"},
            "div": {"tabindex", "role", "aria-label"},
            "img": {"src", "alt"},
            "li": {"id"},
            "ol": {"start"},
        },
        allowed_classes={
            "div": {"table"},
            "li": {"task"},
            "section": {"footnotes"},
            "td": {"center", "right"},
            "th": {"center", "right"},
        },
        # One attribute for each element: the order of several differs from process to process.
        set_tag_attribute_values={
            "img": {"loading": "lazy"},
            "pre": {"tabindex": "0"},  # code scrolls inside itself, as tables do
            # The bars of quotes and the marks of lists are on the side where their text begins.
            **{tag: {"dir": "auto"} for tag in ("blockquote", "ol", "ul")},
        },
        url_schemes={"http", "https", "mailto"},
        url_relative=("rewrite_with_base", base) if base else None,
        link_rel="nofollow ugc noopener",
    )


def image_ids(html: str) -> set[str]:
    """Return the ids of the images that rendered Markdown shows."""
    return set(_IMAGE_ID.findall(html))


def move_images(html: str, old: str, new: str) -> str:
    """Return rendered Markdown whose images, and links to images at `old`, are at the URL `new`.

    Images lose the link to their own file, since with `new` the address bar would show a token.
    """
    own = re.compile(
        rf'<a href="({re.escape(old)}[\w-]{{{ID_LENGTH}}})"[^>]*>(<img src="\1"[^>]*>)</a>'
    )
    html = own.sub(r"\2", html)
    links = re.compile(rf'<a href="{re.escape(old)}([\w-]{{{ID_LENGTH}}})"')
    html = links.sub(rf'<a href="{new}\1"', html)
    return _IMAGE_ID.sub(rf'<img src="{new}\1"', html)


def add_sizes(html: str, root: str, images: Iterable[dict[str, Any]]) -> str:
    """Return rendered Markdown whose images have the attributes of `image_sizes`."""
    for image in images:
        attributes = image_sizes(root, image)
        html = re.sub(rf'<img src="[^"]*/images/{image["id"]}"', rf"\g<0>{attributes}", html)
    return html


def _label_of_way_back(label: re.Match[str]) -> str:
    """Return the label of the link from a footnote to its mark."""
    text = gettext("Back to reference %(number)s", number=label[1])
    return f'aria-label="{escape(text)}"'


def _no_description() -> str:
    """Return what an image without a description says: an empty one would hide the image."""
    return escape(gettext("Image without a description"))


def _as_it_is(text: str) -> str:
    return f"{AS_IT_IS}{escape(text)}</p>"


def _show_images(link_or_image: str, image_urls: tuple[str, ...]) -> str:
    """Return a link or an image whose images are shown, or become text, if they are elsewhere.

    An image that is shown is in a link: its own, or another one, within which there can be none.
    """
    is_linked = link_or_image.startswith("<a ")

    def show(tag: re.Match[str]) -> str:
        url = tag[1]
        alt = tag[2] if has_visible(tag[2]) else ""
        base, _, id = url.rpartition("/")
        if f"{base}/" in image_urls and _ID.fullmatch(id):
            image = f'<img src="{url}" alt="{alt or _no_description()}">'
            return image if is_linked else f'<a href="{url}">{image}</a>'
        # A URL with another scheme has become empty.
        if not url or is_linked:
            return alt or url
        return f'<a href="{url}">{alt or url}</a>'

    return PICTURE.sub(show, link_or_image)
