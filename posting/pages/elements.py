"""Small elements that are often repeated. As Jinja macros, they make 50 comments 15 % slower."""

from collections.abc import Sequence
from datetime import datetime
from decimal import ROUND_HALF_UP, Decimal
from functools import lru_cache
from typing import Any, Literal

from babel.dates import format_date, format_datetime
from babel.units import format_unit
from flask_babel import format_decimal, gettext
from markupsafe import Markup, escape

from posting.images.codec import SIZES
from posting.languages import current_language
from posting.reactions.models import EMOJI
from posting.topics.models import COLORS

HUES = 12  # of the circles with initials
# The width in which pages show an image: that of the column of texts.
COLUMN = "(max-width: 46rem) calc(100vw - 2.5rem), 42rem"
CELL = "(max-width: 46rem) 45vw, 12rem"  # of several images below a text
UNITS = (("gigabyte", 10**9), ("megabyte", 10**6), ("kilobyte", 10**3), ("byte", 1))


def author(root: str, user: dict[str, Any] | None) -> Markup:
    """Return a link to an author with their face, or a text if the account is deleted."""
    if user is None:
        name = gettext("a former member")
        return Markup('<span class="author">{}</span>').format(name)
    name = escape(user["display_name"] or user["username"])
    href = escape(f"{root}/@{user['username']}")
    face, initial = "", ""
    if user["avatar_url"]:
        face = f'<img class="face" src="{avatar(root, user)}/64" alt="" width="64" height="64">'
    else:
        initial = initial_of(user)
    link = f'<a class="author" href="{href}" dir="auto"{initial}>{face}{name}</a>'
    return Markup(link)  # noqa: S704 - escaped


def avatar(root: str, user: dict[str, Any]) -> str:
    """Return the path of a user's avatar."""
    return f"{escape(root)}/avatars/{user['avatar_url'].rpartition('/')[2]}"


def initial_of(user: dict[str, Any]) -> Markup:
    """Return the attributes of an element before which the style sheet draws a user's initial."""
    name = user["display_name"] or user["username"]
    letter = next(filter(str.isalnum, name), name[0]).upper()[0]
    hue = sum(map(ord, user["id"])) % HUES
    return Markup(f' data-initial="{escape(letter)}" data-hue="{hue}"')  # noqa: S704 - escaped


def icon(name: str) -> Markup:
    """Return an icon of `icons.html`. Its meaning is said beside it, perhaps to listeners only."""
    return Markup(f'<svg aria-hidden="true"><use href="#icon-{name}"/></svg>')  # noqa: S704 - fixed


def text(html: str) -> Markup:
    """Return the text of a post or comment, rendered, in the direction in which it is read."""
    return Markup(f'<div class="text" dir="auto">\n{html}</div>')  # noqa: S704 - sanitized


def reactions(counts: dict[str, int]) -> Markup:
    """Return the numbers of reactions to a text, or nothing if there are none."""
    if not any(counts.values()):
        return Markup("")
    chips = "".join(
        f'<span data-reaction="{name}">{emoji} {format_decimal(counts[name])}</span>\n'
        for name, emoji in EMOJI.items()
        if counts[name]
    )
    name = escape(gettext("Reactions:"))
    label = f'<span class="for-listeners">{name}</span>'
    return Markup(f'<p class="reactions">{label}\n{chips}</p>')  # noqa: S704 - escaped, and numbers


def topic(root: str, topic: dict[str, Any], *, is_current: bool = False) -> Markup:
    """Return a link to the posts of a topic. The style sheet draws its color before it."""
    href = escape(f"{root}/t/{topic['id']}")
    hue = COLORS.index(topic["color"])
    current = ' aria-current="true"' if is_current else ""
    link = f'<a href="{href}" data-hue="{hue}"{current} dir="auto">{escape(topic["name"])}</a>'
    return Markup(link)  # noqa: S704 - escaped


def topics(root: str, topics: Sequence[dict[str, Any]]) -> Markup:
    """Return links to the topics of a post, or nothing if it has none."""
    if not topics:
        return Markup("")
    links = Markup("\n").join(topic(root, each) for each in topics)
    return Markup('<p class="topics">{}</p>').format(links)


def image_sizes(root: str, image: dict[str, Any], column: str = COLUMN) -> Markup:
    """Return the attributes by which a browser knows the files of an image, and their sizes.

    So nothing moves as the image is loaded, and a phone loads a small file. The image itself is
    among the files if one of its sizes is missing. `column` is the width in which it is shown.
    """
    width, height = image["width"], image["height"]
    attributes = f' width="{width}" height="{height}"'
    if image["sizes"]:
        path = f"{escape(root)}/images/{image['id']}"
        files = [f"{path}/{side} {smaller}w" for side, smaller, _ in image["sizes"]]
        if len(files) < len(SIZES):
            files.append(f"{path} {width}w")
        attributes += f' srcset="{", ".join(files)}" sizes="{column}"'
    return Markup(attributes)  # noqa: S704 - numbers and an ID


def time(timestamp: str) -> Markup:
    """Return a timestamp of a response, for people; the script puts it into words.

    The date is as short as the words, so that the lines below do not move.
    """
    return _time(timestamp, current_language())


@lru_cache(maxsize=1000)
def _time(timestamp: str, language: str) -> Markup:
    moment = datetime.fromisoformat(timestamp)
    title = format_datetime(moment, "long", locale=language)
    text = format_date(moment, "medium", locale=language)
    element = f'<time datetime="{timestamp}" title="{title}">{text}</time>'
    return Markup(element)  # noqa: S704 - from the database


def size(number: int) -> str:
    """Return a number of bytes in words, as the script writes it."""
    unit, bytes = next((unit for unit in UNITS if number >= unit[1]), UNITS[-1])
    length: Literal["short", "long"] = "long" if bytes == 1 else "short"
    tenths = (Decimal(number) / bytes).quantize(Decimal("0.1"), ROUND_HALF_UP)
    return format_unit(tenths.normalize(), f"digital-{unit}", length, locale=current_language())
