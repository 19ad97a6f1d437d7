"""The queries of pages, and feeds in JSON (https://www.jsonfeed.org/version/1.1)."""

from marshmallow import EXCLUDE, fields

from posting.posts.schemas import sort_field
from posting.search.fields import MAX_QUERY_LENGTH
from posting.web.schemas import (
    EXAMPLE_ID,
    Input,
    Length,
    OneOf,
    Output,
    PageQuery,
    Parameter,
    Timestamp,
    described,
)

EXAMPLE_URL = f"https://example.org/p/{EXAMPLE_ID}"


class CursorQuery(PageQuery):
    """The cursor of a list. Other parameters are ignored, since trackers add theirs to links."""

    class Meta:
        unknown = EXCLUDE
        exclude = ("limit",)


class FrontPageQuery(CursorQuery):
    """The cursor and the order of posts."""

    sort = sort_field()


class PostQuery(CursorQuery):
    """The cursor and the order of comments, or the comment to show."""

    sort = Parameter(load_default="oldest", validate=OneOf(["oldest", "newest"]))
    comment = Parameter()


class MemberQuery(CursorQuery):
    """The list that the page of a member shows, and its cursor."""

    show = Parameter(load_default="posts", validate=OneOf(["posts", "comments"]))


class MembersQuery(CursorQuery):
    """The order of all members, and the cursor."""

    sort = Parameter(load_default="newest", validate=OneOf(["newest", "name"]))


class DeletedQuery(CursorQuery):
    """The choice about the posts and comments of a deleted account."""

    content = Parameter(load_default="keep", validate=OneOf(["keep", "delete"]))


class SearchQuery(CursorQuery):
    """Words to find, and in what. There are none when the page is opened."""

    q = Parameter(load_default="", validate=Length(max=MAX_QUERY_LENGTH))
    show = Parameter(validate=OneOf(["posts", "comments", "members"]))


class FeedQuery(Input):
    """The place in a feed before which its entries are older. Other parameters are ignored."""

    class Meta:
        unknown = EXCLUDE

    before = Parameter(
        validate=Length(max=512),
        metadata={"description": "Where the page begins, from the link in the page before."},
    )


def absolute_url(example: str) -> fields.String:
    """Return the field of an absolute URL."""
    return fields.String(metadata={"format": "uri"} | described(example))


class FeedAuthor(Output):
    """The author of an item. It has no URL if the account is deleted."""

    name = fields.String(metadata=described("Ada Lovelace"))
    url = absolute_url("https://example.org/@ada")

    optional = ("url",)


class FeedAttachment(Output):
    """An image or a file of a post or comment."""

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
    tags = fields.List(fields.String(), metadata=described(["Looms"], "Topics."))


class JsonFeed(Output):
    """A page of posts or comments. If older ones follow, it has the URL of the next page."""

    version = absolute_url("https://jsonfeed.org/version/1.1")
    title = fields.String(metadata=described("A community"))
    language = fields.String(metadata=described("en", "The language of the site."))
    home_page_url = absolute_url("https://example.org/")
    feed_url = absolute_url("https://example.org/feed.json")
    next_url = absolute_url(f"https://example.org/feed.json?before=list_posts.0.{EXAMPLE_ID}")
    items = fields.List(fields.Nested(FeedItem))

    optional = ("next_url",)
