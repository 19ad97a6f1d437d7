"""The feeds of posts and comments, each as Atom and as JSON Feed.

Each feed has a second address with a token in its path, for feed readers, which have no session. At
such addresses they also get the images and files of the feed.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypedDict

from flask import Response, current_app, request
from flask_babel import gettext

from posting.accounts.current_user import FEED_TOKEN, PAGE_READERS
from posting.accounts.store import NoSuchUser, find_user
from posting.comments.store import list_comments, list_comments_on
from posting.files.store import NoSuchFile, list_files_of_comments, list_files_of_posts
from posting.files.views import BYTES, send_download
from posting.images.store import NoSuchImage, get_images_of_comments, get_images_of_posts
from posting.images.views import send_image
from posting.pages import elements, markdown
from posting.pages.feed_formats import (
    Author,
    Enclosure,
    Entry,
    Feed,
    to_atom,
    to_json_feed,
    with_token,
)
from posting.pages.schemas import FeedQuery, JsonFeed
from posting.posts.store import NoSuchPost, get_post, list_posts
from posting.topics.store import NoSuchTopic, get_topic
from posting.web.endpoint import CLIENT, SHARED, Blueprint, DocumentedError, Reply
from posting.web.errors import InvalidInput, input_error
from posting.web.hosts import base_url
from posting.web.pagination import NOT_A_CURSOR
from posting.web.schemas import Item

ENTRIES = 50
MAX_LENGTH = 2**16  # characters of Markdown in a feed

# The images and files of posts or comments, by the id of their text.
Enclosures = Mapping[str, list[Enclosure]]

feeds = Blueprint("feeds", __name__, description="Feeds of posts and comments")


def not_a_cursor(settings: Mapping[str, Any]) -> InvalidInput:
    """Return the error of a feed whose `before` is not a cursor of this feed."""
    return InvalidInput([input_error(NOT_A_CURSOR, parameter="before")])


def feed_of_posts(before: str | None = None) -> Feed:
    """Return a page of the feed of posts."""
    posts = list_posts(text="whole", **page_of(before))
    entries = to_entries(posts.items)
    return Feed(current_app.config["NAME"], "", "/", entries, before, posts.next_cursor)


def feed_of_topic(id: str, before: str | None = None) -> Feed:
    """Return a page of the feed of the posts of a topic."""
    topic = get_topic(id)
    posts = list_posts(topic=id, text="whole", **page_of(before))
    title, path = f"{current_app.config['NAME']}: {topic['name']}", f"/t/{id}"
    return Feed(title, path, path, to_entries(posts.items), before, posts.next_cursor)


def feed_of_member(username: str, before: str | None = None) -> Feed:
    """Return a page of the feed of a member's posts."""
    user = find_user(username)
    if user is None:
        raise NoSuchUser
    posts = list_posts(author=user["id"], text="whole", **page_of(before))
    title = f"{current_app.config['NAME']}: {user['display_name'] or user['username']}"
    path = f"/@{user['username']}"
    return Feed(title, path, path, to_entries(posts.items), before, posts.next_cursor)


def feed_of_comments(before: str | None = None) -> Feed:
    """Return a page of the feed of all comments."""
    comments = list_comments(**page_of(before))
    found = enclosures_of_comments(comments.items)
    entries = [
        to_entry_of_comment(comment, comment["post_title"], found) for comment in comments.items
    ]
    title = gettext("%(community)s: comments", community=current_app.config["NAME"])
    return Feed(title, "/comments", "/", entries, before, comments.next_cursor)


def feed_of_comments_on(id: str, before: str | None = None) -> Feed:
    """Return a page of the feed of comments on a post."""
    post = get_post(id)
    comments = list_comments_on(id, name=id, newest_first=True, **page_of(before))
    found = enclosures_of_comments(comments.items)
    entries = [
        to_entry_of_comment(comment, post["title"], found)
        for comment in comments.items
        if not comment["deleted"]
    ]
    path = f"/p/{id}"
    return Feed(post["title"], path, path, entries, before, comments.next_cursor)


class PageOptions(TypedDict):
    """The options that the lists of all feeds share."""

    limit: int
    cursor: str | None
    max_length: int
    parameter: str


def page_of(before: str | None) -> PageOptions:
    """Return the options of a page of a feed, which has fewer entries if they are long."""
    return {"limit": ENTRIES, "cursor": before, "max_length": MAX_LENGTH, "parameter": "before"}


def to_entries(posts: list[Item]) -> list[Entry]:
    """Return the entries of posts, with their images and files as enclosures."""
    images = get_images_of_posts([post["id"] for post in posts if post["image_count"]])
    files = list_files_of_posts([post["id"] for post in posts if post["file_count"]])
    found = to_enclosures(images, files)
    return [
        to_entry(post, post["title"], f"/p/{post['id']}", found.get(post["id"], []))
        for post in posts
    ]


def enclosures_of_comments(comments: list[Item]) -> Enclosures:
    """Return the images and files of comments, by the id of their comment."""
    images = get_images_of_comments([each["id"] for each in comments if each["image_count"]])
    files = list_files_of_comments([each["id"] for each in comments if each["file_count"]])
    return to_enclosures(images, files)


def to_enclosures(
    images: Mapping[str, Sequence[Item]], files: Mapping[str, Sequence[Item]]
) -> Enclosures:
    """Return images without URLs and files as enclosures, by the id of their text."""
    found: dict[str, list[Enclosure]] = {id: [] for id in [*images, *files]}
    for id, of_text in images.items():
        for image in of_text:
            url = f"{base_url()}/images/{image['id']}"
            found[id].append(Enclosure(url, image["media_type"], image["size"]))
    for id, of_text in files.items():
        found[id] += [Enclosure(each["url"], each["media_type"], each["size"]) for each in of_text]
    return found


def to_entry_of_comment(comment: Item, post_title: str, enclosures: Enclosures) -> Entry:
    """Return the entry of a comment, with its images and files as enclosures."""
    path, fragment = f"/p/{comment['post_id']}", f"#c-{comment['id']}"
    entry = to_entry(
        comment,
        gettext("Comment on %(title)s", title=post_title),
        f"{path}?comment={comment['id']}{fragment}",
        enclosures.get(comment["id"], []),
    )
    return replace(entry, id=f"{base_url()}{path}{fragment}")


def to_entry(item: Item, title: str, path: str, enclosures: list[Enclosure]) -> Entry:
    """Return the entry of a post or comment, whose URL is its id."""
    base, author = base_url(), item["author"]
    urls = f"{request.script_root}/images/", f"{base}/images/"
    html = markdown.render(
        item["content"], image_urls=urls, member_url=f"{base}/@", base=base + path, name=item["id"]
    )
    return Entry(
        id=base + path,
        url=base + path,
        title=title,
        html=str(elements.text(html)),  # which the template escapes
        author=Author(author["display_name"] or author["username"], f"{base}/@{author['username']}")
        if author
        else Author(gettext("a former member"), None),
        published=item["created_at"],
        updated=item["updated_at"],
        enclosures=enclosures,
        topics=[topic["name"] for topic in item.get("topics", [])],
    )


@dataclass(frozen=True)
class Format:
    """A format of feeds, with what its endpoints declare."""

    extension: str
    name: str  # in the names of endpoints
    title: str
    respond: Callable[[Feed], Response]
    declarations: Mapping[str, Any]


FORMATS = (
    Format(
        "atom",
        "atom",
        "an Atom feed",
        to_atom,
        {
            "returns": {"type": "string"},
            "media_type": "application/atom+xml",
            "description": "A feed (RFC 4287)",
        },
    ),
    Format(
        "json",
        "json_feed",
        "a JSON Feed",
        to_json_feed,
        {
            "returns": JsonFeed(),
            "media_type": "application/feed+json",
            "description": "A JSON Feed (version 1.1)",
        },
    ),
)


@dataclass(frozen=True)
class Source:
    """A list of which there are feeds: its path, and the function that returns a page of it."""

    path: str
    name: str  # in the names of endpoints
    title: str
    get: Callable[..., Feed]
    errors: Sequence[DocumentedError] = ()


SOURCES = (
    Source("", "posts", "the latest posts", feed_of_posts),
    Source(
        "/@<member:username>",
        "posts_of_user",
        "the latest posts of a member",
        feed_of_member,
        [NoSuchUser],
    ),
    Source(
        "/t/<page_id:id>",
        "posts_of_topic",
        "the latest posts of a topic",
        feed_of_topic,
        [NoSuchTopic],
    ),
    Source(
        "/p/<page_id:id>",
        "comments",
        "the latest comments on a post",
        feed_of_comments_on,
        [NoSuchPost],
    ),
    Source("/comments", "all_comments", "the latest comments of the community", feed_of_comments),
)


def register(source: Source, format: Format, *, by_token: bool) -> None:
    """Register the endpoint of a feed, for browsers or with a token in the path."""

    def view(query: dict[str, Any], token: str | None = None, **path: str) -> Reply:
        feed = source.get(**path, **query)
        return format.respond(with_token(feed, token) if token else feed)

    view.__name__ = f"get_{source.name}_as_{format.name}" + ("_by_token" if by_token else "")
    reader = ", in a feed reader" if by_token else ""
    view.__doc__ = f"Read {source.title} as {format.title}{reader}."
    prefix = "/feeds/<token>" if by_token else ""
    feeds.get(
        f"{prefix}{source.path}/feed.{format.extension}",
        access=FEED_TOKEN if by_token else PAGE_READERS,
        cache=CLIENT if by_token else SHARED,
        query=FeedQuery(),
        any_query=True,  # trackers and feed readers add names of their own
        errors=[*source.errors, not_a_cursor],
        **format.declarations,
    )(view)


for by_token in (False, True):
    for source in SOURCES:
        for format in FORMATS:
            register(source, format, by_token=by_token)


@feeds.get(
    "/feeds/<token>/images/<nanoid:id>",
    access=FEED_TOKEN,
    any_query=True,
    returns={"type": "string", "format": "binary"},
    media_type="image/*",
    errors=[NoSuchImage],
)
def get_image_by_token(token: str, id: str) -> Reply:
    """Read an image of a feed, in a feed reader."""
    # The token is all that shows it, so pages of other sites may show it too.
    return send_image(id, is_public=False, shown_on="cross-origin")


@feeds.get(
    "/feeds/<token>/files/<nanoid:id>/<name>",
    access=FEED_TOKEN,
    any_query=True,
    returns=BYTES,
    media_type="*/*",
    headers=["Content-Disposition"],
    errors=[NoSuchFile],
)
def get_file_by_token(token: str, id: str, name: str) -> Reply:
    """Download a file of a feed, in a feed reader."""
    return send_download(id, name, is_public=False, shown_on="cross-origin")
