"""Feeds of posts and comments: Atom (RFC 4287) and JSON Feed (https://www.jsonfeed.org/version/1.1).

The URL of a post or comment is its id, so it stays the same as long as the community's URL does.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from flask import Response, current_app, render_template, request

from posting.accounts.queries import NoSuchUser, find_user
from posting.comments.queries import COMMENTS_ON_POST
from posting.images.queries import get_images_of_posts
from posting.pages import markdown
from posting.pages.schemas import JsonFeed
from posting.posts.queries import NoSuchPost, get_post, select_posts
from posting.web.endpoint import PUBLIC, SHARED, Blueprint, DocumentedError, Reply, View
from posting.web.pagination import paginate
from posting.web.response_body import to_json
from posting.web.urls import base_url

ENTRIES = 50
MAX_LENGTH = 2**16  # characters of Markdown in a feed
NEVER = "1970-01-01T00:00:00Z"  # when a feed without entries was updated

feeds = Blueprint("feeds", __name__, description="Feeds of posts and comments")
_not_in_xml = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True)
class Author:
    """The author of an entry; `url` is None if the account is deleted."""

    name: str
    url: str | None


@dataclass(frozen=True)
class Enclosure:
    """An image of a post."""

    url: str
    mime_type: str
    size_in_bytes: int


@dataclass(frozen=True)
class Entry:
    """A post or comment; timestamps are those of responses."""

    url: str
    title: str
    html: str
    author: Author
    published: str
    updated: str
    images: list[Enclosure]


@dataclass(frozen=True)
class Feed:
    """A list of entries, newest first; the page at the URL `home` shows the same."""

    title: str
    home: str
    entries: list[Entry]

    @property
    def updated(self) -> str:
        return max((entry.updated for entry in self.entries), default=NEVER)

    def url(self, format: str) -> str:
        """Return the URL of the feed in a format."""
        return f"{self.home.rstrip('/')}/feed.{format}"


def atom_feed(rule: str, *, errors: Sequence[DocumentedError] = ()) -> Callable[[View], View]:
    """Register a feed in the format of Atom."""
    return feeds.get(
        rule,
        access=PUBLIC,
        cache=SHARED,
        any_query=True,  # trackers and feed readers add names of their own
        returns={"type": "string"},
        media_type="application/atom+xml",
        description="A feed (RFC 4287)",
        errors=errors,
    )


def json_feed(rule: str, *, errors: Sequence[DocumentedError] = ()) -> Callable[[View], View]:
    """Register a feed in the format of JSON Feed."""
    return feeds.get(
        rule,
        access=PUBLIC,
        cache=SHARED,
        any_query=True,
        returns=JsonFeed(),
        media_type="application/feed+json",
        description="A JSON Feed (version 1.1)",
        errors=errors,
    )


@atom_feed("/feed.atom")
def get_posts_as_atom() -> Reply:
    """Read the latest posts as an Atom feed."""
    return to_atom(feed_of_posts())


@json_feed("/feed.json")
def get_posts_as_json_feed() -> Reply:
    """Read the latest posts as a JSON Feed."""
    return to_json_feed(feed_of_posts())


@atom_feed("/@<member:username>/feed.atom", errors=[NoSuchUser])
def get_posts_of_user_as_atom(username: str) -> Reply:
    """Read the latest posts of a member as an Atom feed."""
    return to_atom(feed_of_member(username))


@json_feed("/@<member:username>/feed.json", errors=[NoSuchUser])
def get_posts_of_user_as_json_feed(username: str) -> Reply:
    """Read the latest posts of a member as a JSON Feed."""
    return to_json_feed(feed_of_member(username))


@atom_feed("/p/<page_id:id>/feed.atom", errors=[NoSuchPost])
def get_comments_as_atom(id: str) -> Reply:
    """Read the latest comments on a post as an Atom feed."""
    return to_atom(feed_of_comments(id))


@json_feed("/p/<page_id:id>/feed.json", errors=[NoSuchPost])
def get_comments_as_json_feed(id: str) -> Reply:
    """Read the latest comments on a post as a JSON Feed."""
    return to_json_feed(feed_of_comments(id))


def feed_of_posts() -> Feed:
    """Return the feed of the latest posts."""
    posts = latest(select_posts(content=True), name="list_posts")
    return Feed(current_app.config["NAME"], f"{base_url()}/", to_entries(posts))


def feed_of_member(username: str) -> Feed:
    """Return the feed of the latest posts of a member."""
    user = find_user(username)
    if user is None:
        raise NoSuchUser
    posts = latest(select_posts(content=True, by_author=True), name="list_posts", author=user["id"])
    title = f"{current_app.config['NAME']}: {user['display_name'] or user['username']}"
    return Feed(title, f"{base_url()}/@{user['username']}", to_entries(posts))


def feed_of_comments(id: str) -> Feed:
    """Return the feed of the latest comments on a post."""
    post = get_post(id)
    comments = latest(COMMENTS_ON_POST, name=id, post=id)
    entries = [
        to_entry(comment, f"Comment on {post['title']}", f"/p/{id}#c-{comment['id']}", [])
        for comment in comments
        if not comment["deleted"]
    ]
    return Feed(post["title"], f"{base_url()}/p/{id}", entries)


def latest(statement: Any, *, name: str, **values: str) -> list[dict[str, Any]]:
    """Return the newest items of a list, which are fewer if they are long."""
    page = paginate(
        statement,
        limit=ENTRIES,
        cursor=None,
        name=name,
        newest_first=True,
        parameters=values,
        max_length=MAX_LENGTH,
    )
    return page.items


def to_entries(posts: list[dict[str, Any]]) -> list[Entry]:
    """Return the entries of posts, with their images as enclosures."""
    images = get_images_of_posts([post["id"] for post in posts])
    return [to_entry(post, post["title"], f"/p/{post['id']}", images[post["id"]]) for post in posts]


def to_entry(item: dict[str, Any], title: str, path: str, images: list[dict[str, Any]]) -> Entry:
    """Return the entry of a post or comment."""
    base, author = base_url(), item["author"]
    urls = f"{request.script_root}/images/", f"{base}/images/"
    return Entry(
        url=base + path,
        title=title,
        html=markdown.render(item["content"], image_urls=urls, base=base + path),
        author=Author(author["display_name"] or author["username"], f"{base}/@{author['username']}")
        if author
        else Author("a former member", None),
        published=item["created_at"],
        updated=item["updated_at"],
        images=[
            Enclosure(f"{base}/images/{image['id']}", image["media_type"], image["size"])
            for image in images
        ],
    )


def to_atom(feed: Feed) -> Response:
    """Return the response with a feed as Atom has it."""
    xml = _not_in_xml.sub("", render_template("feeds/atom.xml", feed=feed))
    return Response(xml, content_type="application/atom+xml; charset=utf-8")


def to_json_feed(feed: Feed) -> Response:
    """Return the response with a feed as JSON Feed has it."""
    content = {
        "version": "https://jsonfeed.org/version/1.1",
        "title": feed.title,
        "home_page_url": feed.home,
        "feed_url": feed.url("json"),
        "items": [
            {
                "id": entry.url,
                "url": entry.url,
                "title": entry.title,
                "content_html": entry.html,
                "date_published": entry.published,
                "date_modified": entry.updated,
                "authors": [
                    {key: value for key, value in vars(entry.author).items() if value is not None}
                ],
                "attachments": [vars(image) for image in entry.images],
            }
            for entry in feed.entries
        ],
    }
    return Response(to_json(content), content_type="application/feed+json")
