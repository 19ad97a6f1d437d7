"""A feed, and its formats: Atom (RFC 4287) and JSON Feed (https://www.jsonfeed.org/version/1.1).

A feed has pages (RFC 5005, section 3): each names the next one, whose entries are older.

An id stays the same as long as the community's URL does, because feed readers show an entry with
another id again.
"""

import re
from dataclasses import dataclass, replace

from flask import Response, render_template

from posting.languages import current_language
from posting.pages import markdown
from posting.web.etags import to_json
from posting.web.hosts import base_url

NEVER = "1970-01-01T00:00:00Z"  # when a feed without entries was updated

_not_in_xml = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True)
class Author:
    """The author of an entry; `url` is None if the account is deleted."""

    name: str
    url: str | None


@dataclass(frozen=True)
class Enclosure:
    """An image or a file of a post or comment."""

    url: str
    mime_type: str
    size_in_bytes: int


@dataclass(frozen=True)
class Entry:
    """A post or comment. Its timestamps are as in responses."""

    id: str
    url: str
    title: str
    html: str
    author: Author
    published: str
    updated: str
    enclosures: list[Enclosure]
    topics: list[str]


@dataclass(frozen=True)
class Feed:
    """A page of a list of entries, newest first.

    The page for people at `home` shows the list. The entries are older than `before`, and the next
    page begins at `next`, if there are such cursors. `prefix` is the beginning of the path of a
    feed with a token, and else empty.
    """

    title: str
    path: str
    home: str
    entries: list[Entry]
    before: str | None
    next: str | None
    prefix: str = ""

    @property
    def home_url(self) -> str:
        return f"{base_url()}{self.home}"

    @property
    def id(self) -> str:
        """The URL without a token and a cursor, which is the same for all readers and pages."""
        return replace(self, prefix="").url("atom")

    @property
    def updated(self) -> str:
        return max((entry.updated for entry in self.entries), default=NEVER)

    def url(self, format: str, before: str | None = None) -> str:
        """Return the URL of the feed in a format, or of the page of it that begins at a cursor."""
        url = f"{base_url()}{self.prefix}{self.path}/feed.{format}"
        return f"{url}?before={before}" if before else url


def with_token(feed: Feed, token: str) -> Feed:
    """Return a feed whose URL and those of images and files have a token in their path."""
    prefix = f"/feeds/{token}"
    public, private = f"{base_url()}/images/", f"{base_url()}{prefix}/images/"
    entries = [
        replace(
            entry,
            html=markdown.move_images(entry.html, public, private),
            enclosures=[
                replace(each, url=each.url.replace(base_url(), f"{base_url()}{prefix}", 1))
                for each in entry.enclosures
            ],
        )
        for entry in feed.entries
    ]
    return replace(feed, prefix=prefix, entries=entries)


def to_atom(feed: Feed) -> Response:
    """Return the response with a feed in the format of Atom."""
    xml = _not_in_xml.sub("", render_template("feeds/atom.xml", feed=feed))
    return Response(xml, content_type="application/atom+xml; charset=utf-8")


def to_json_feed(feed: Feed) -> Response:
    """Return the response with a feed in the format of JSON Feed."""
    next_url = {"next_url": feed.url("json", feed.next)} if feed.next else {}
    content = {
        "version": "https://jsonfeed.org/version/1.1",
        "title": feed.title,
        "language": current_language(),
        "home_page_url": feed.home_url,
        "feed_url": feed.url("json"),
        **next_url,
        "items": [
            {
                "id": entry.id,
                "url": entry.url,
                "title": entry.title,
                "content_html": entry.html,
                "date_published": entry.published,
                "date_modified": entry.updated,
                "authors": [
                    {key: value for key, value in vars(entry.author).items() if value is not None}
                ],
                "attachments": [vars(each) for each in entry.enclosures],
                "tags": entry.topics,
            }
            for entry in feed.entries
        ],
    }
    return Response(to_json(content), content_type="application/feed+json")
