"""Feeds of posts and comments: Atom (RFC 4287) and JSON Feed (https://www.jsonfeed.org/version/1.1).

The URL of a post or comment is its id, so it stays the same as long as the community's URL does.
"""

import re
from dataclasses import dataclass
from typing import Any

from flask import Response, current_app, render_template, request

from posting.db import queries
from posting.db.errors import NoSuchUser
from posting.http.endpoint import PUBLIC, Blueprint, Reply
from posting.http.pagination import paginate
from posting.http.response_body import to_json
from posting.http.urls import base_url
from posting.pages import markdown

ENTRIES = 50
MAX_LENGTH = 2**16  # characters of Markdown in a feed
NEVER = "1970-01-01T00:00:00Z"  # when a feed without entries was updated
FORMAT = "<any(atom, json):format>"

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
    """A list of entries, newest first; `home` is the page that shows the same."""

    title: str
    home: str
    url: str
    entries: list[Entry]

    @property
    def updated(self) -> str:
        return max((entry.updated for entry in self.entries), default=NEVER)


@feeds.get(f"/feed.{FORMAT}", access=PUBLIC, documented=False)
def show_feed_of_posts(format: str) -> Reply:
    """Show the latest posts."""
    posts = latest(queries.POSTS_WITH_CONTENT, name="list_posts")
    return respond(format, current_app.config["NAME"], "/", to_entries(posts))


@feeds.get(f"/@<member:username>/feed.{FORMAT}", access=PUBLIC, documented=False)
def show_feed_of_member(username: str, format: str) -> Reply:
    """Show the latest posts of a member."""
    user = queries.find_user(username)
    if user is None:
        raise NoSuchUser
    posts = latest(queries.POSTS_WITH_CONTENT_OF_AUTHOR, name="list_posts", author=user["id"])
    title = f"{current_app.config['NAME']}: {user['display_name'] or user['username']}"
    return respond(format, title, f"/@{user['username']}", to_entries(posts))


@feeds.get(f"/p/<page_id:id>/feed.{FORMAT}", access=PUBLIC, documented=False)
def show_feed_of_comments(id: str, format: str) -> Reply:
    """Show the latest comments on a post."""
    post = queries.get_post(id)
    comments = latest(queries.COMMENTS_ON_POST, name=id, post=id)
    entries = [
        to_entry(comment, f"Comment on {post['title']}", f"/p/{id}#c-{comment['id']}", [])
        for comment in comments
        if not comment["deleted"]
    ]
    return respond(format, post["title"], f"/p/{id}", entries)


def latest(statement: Any, *, name: str, **values: str) -> list[dict[str, Any]]:
    """Return the newest items of a list, which are fewer if they are long."""
    query = {"limit": ENTRIES} | values
    return paginate(statement, query, name=name, newest_first=True, max_length=MAX_LENGTH).items


def to_entries(posts: list[dict[str, Any]]) -> list[Entry]:
    """Return the entries of posts, with their images as enclosures."""
    images = queries.get_images_of_posts([post["id"] for post in posts])
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


def respond(format: str, title: str, path: str, entries: list[Entry]) -> Response:
    """Return the response with a feed whose page is at `path`."""
    base = base_url()
    url = f"{base}{path.rstrip('/')}/feed.{format}"
    feed = Feed(title=title, home=base + path, url=url, entries=entries)
    if format == "json":
        return Response(to_json(to_json_feed(feed)), content_type="application/feed+json")
    xml = _not_in_xml.sub("", render_template("feeds/atom.xml", feed=feed))
    return Response(xml, content_type="application/atom+xml; charset=utf-8")


def to_json_feed(feed: Feed) -> dict[str, Any]:
    """Return a feed as JSON Feed has it."""
    return {
        "version": "https://jsonfeed.org/version/1.1",
        "title": feed.title,
        "home_page_url": feed.home,
        "feed_url": feed.url,
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
