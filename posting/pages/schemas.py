"""Feeds in JSON (https://www.jsonfeed.org/version/1.1)."""

from marshmallow import fields

from posting.web.fields import EXAMPLE_ID, Timestamp, described
from posting.web.schemas import Output

EXAMPLE_URL = f"https://example.org/p/{EXAMPLE_ID}"


def absolute_url(example: str) -> fields.String:
    """Return the field of an absolute URL."""
    return fields.String(metadata={"format": "uri"} | described(example))


class FeedAuthor(Output):
    """The author of an item; one whose account is deleted has no URL."""

    name = fields.String(metadata=described("Ada Lovelace"))
    url = absolute_url("https://example.org/@ada")

    optional = ("url",)


class FeedAttachment(Output):
    """An image of a post."""

    url = absolute_url(f"https://example.org/images/{EXAMPLE_ID}")
    mime_type = fields.String(metadata=described("image/png"))
    size_in_bytes = fields.Integer(metadata=described(20480))


class FeedItem(Output):
    """A post or comment."""

    id = absolute_url(EXAMPLE_URL)
    url = absolute_url(EXAMPLE_URL)
    title = fields.String(metadata=described("On engines"))
    content_html = fields.String(metadata=described("<p>They <em>weave</em> algebra.</p>"))
    date_published = Timestamp()
    date_modified = Timestamp()
    authors = fields.List(fields.Nested(FeedAuthor))
    attachments = fields.List(fields.Nested(FeedAttachment))


class JsonFeed(Output):
    """The latest posts or comments."""

    version = absolute_url("https://jsonfeed.org/version/1.1")
    title = fields.String(metadata=described("A community"))
    home_page_url = absolute_url("https://example.org/")
    feed_url = absolute_url("https://example.org/feed.json")
    items = fields.List(fields.Nested(FeedItem))
