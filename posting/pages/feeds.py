"""Feeds of posts and comments: Atom (RFC 4287) and JSON Feed (https://www.jsonfeed.org/version/1.1).

A feed has pages (RFC 5005, section 3): each names the next one, whose entries are older.

The URL of a post or comment is its id, so it stays the same as long as the community's URL does.

Each feed has a second address with a token in its path, for feed readers, which have no session. At
such addresses they also get the images of the feed.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import sqlalchemy as sa
from flask import Response, current_app, render_template, request

from posting.accounts.current_user import FEED_TOKEN, PAGE_READERS
from posting.accounts.queries import NoSuchUser, find_user
from posting.comments.queries import COMMENTS_ON_POST, COMMENTS_WITH_POSTS
from posting.images.queries import NoSuchImage, get_images_of_posts
from posting.images.views import send_image
from posting.pages import elements, markdown
from posting.pages.schemas import FeedQuery, JsonFeed
from posting.posts.queries import NoSuchPost, get_post, select_posts
from posting.web.endpoint import (
    CLIENT,
    SHARED,
    Access,
    Blueprint,
    Cache,
    DocumentedError,
    Reply,
    View,
)
from posting.web.errors import InvalidInput, input_error
from posting.web.pagination import NOT_A_CURSOR, Page, paginate
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
    """A post or comment. Its timestamps are as in responses."""

    url: str
    title: str
    html: str
    author: Author
    published: str
    updated: str
    images: list[Enclosure]


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


def not_a_cursor(settings: Mapping[str, Any]) -> InvalidInput:
    """Return the error of a feed whose `before` is not a cursor of this feed."""
    return InvalidInput([input_error(NOT_A_CURSOR, parameter="before")])


def atom_feed(
    rule: str,
    *,
    access: Access = PAGE_READERS,
    cache: Cache = SHARED,
    errors: Sequence[DocumentedError] = (),
) -> Callable[[View], View]:
    """Register a feed in the format of Atom."""
    return feeds.get(
        rule,
        access=access,
        cache=cache,
        query=FeedQuery(),
        any_query=True,  # trackers and feed readers add names of their own
        returns={"type": "string"},
        media_type="application/atom+xml",
        description="A feed (RFC 4287)",
        errors=[*errors, not_a_cursor],
    )


def json_feed(
    rule: str,
    *,
    access: Access = PAGE_READERS,
    cache: Cache = SHARED,
    errors: Sequence[DocumentedError] = (),
) -> Callable[[View], View]:
    """Register a feed in the format of JSON Feed."""
    return feeds.get(
        rule,
        access=access,
        cache=cache,
        query=FeedQuery(),
        any_query=True,
        returns=JsonFeed(),
        media_type="application/feed+json",
        description="A JSON Feed (version 1.1)",
        errors=[*errors, not_a_cursor],
    )


atom_feed_by_token = partial(atom_feed, access=FEED_TOKEN, cache=CLIENT)
json_feed_by_token = partial(json_feed, access=FEED_TOKEN, cache=CLIENT)


@atom_feed("/feed.atom")
def get_posts_as_atom(query: dict[str, Any]) -> Reply:
    """Read the latest posts as an Atom feed."""
    return to_atom(feed_of_posts(**query))


@json_feed("/feed.json")
def get_posts_as_json_feed(query: dict[str, Any]) -> Reply:
    """Read the latest posts as a JSON Feed."""
    return to_json_feed(feed_of_posts(**query))


@atom_feed("/@<member:username>/feed.atom", errors=[NoSuchUser])
def get_posts_of_user_as_atom(username: str, query: dict[str, Any]) -> Reply:
    """Read the latest posts of a member as an Atom feed."""
    return to_atom(feed_of_member(username, **query))


@json_feed("/@<member:username>/feed.json", errors=[NoSuchUser])
def get_posts_of_user_as_json_feed(username: str, query: dict[str, Any]) -> Reply:
    """Read the latest posts of a member as a JSON Feed."""
    return to_json_feed(feed_of_member(username, **query))


@atom_feed("/p/<page_id:id>/feed.atom", errors=[NoSuchPost])
def get_comments_as_atom(id: str, query: dict[str, Any]) -> Reply:
    """Read the latest comments on a post as an Atom feed."""
    return to_atom(feed_of_comments_on(id, **query))


@json_feed("/p/<page_id:id>/feed.json", errors=[NoSuchPost])
def get_comments_as_json_feed(id: str, query: dict[str, Any]) -> Reply:
    """Read the latest comments on a post as a JSON Feed."""
    return to_json_feed(feed_of_comments_on(id, **query))


@atom_feed("/comments/feed.atom")
def get_all_comments_as_atom(query: dict[str, Any]) -> Reply:
    """Read the latest comments of the community as an Atom feed."""
    return to_atom(feed_of_comments(**query))


@json_feed("/comments/feed.json")
def get_all_comments_as_json_feed(query: dict[str, Any]) -> Reply:
    """Read the latest comments of the community as a JSON Feed."""
    return to_json_feed(feed_of_comments(**query))


@atom_feed_by_token("/feeds/<token>/feed.atom")
def get_posts_as_atom_by_token(token: str, query: dict[str, Any]) -> Reply:
    """Read the latest posts as an Atom feed, in a feed reader."""
    return to_atom(with_token(feed_of_posts(**query), token))


@json_feed_by_token("/feeds/<token>/feed.json")
def get_posts_as_json_feed_by_token(token: str, query: dict[str, Any]) -> Reply:
    """Read the latest posts as a JSON Feed, in a feed reader."""
    return to_json_feed(with_token(feed_of_posts(**query), token))


@atom_feed_by_token("/feeds/<token>/@<member:username>/feed.atom", errors=[NoSuchUser])
def get_posts_of_user_as_atom_by_token(token: str, username: str, query: dict[str, Any]) -> Reply:
    """Read the latest posts of a member as an Atom feed, in a feed reader."""
    return to_atom(with_token(feed_of_member(username, **query), token))


@json_feed_by_token("/feeds/<token>/@<member:username>/feed.json", errors=[NoSuchUser])
def get_posts_of_user_as_json_feed_by_token(
    token: str, username: str, query: dict[str, Any]
) -> Reply:
    """Read the latest posts of a member as a JSON Feed, in a feed reader."""
    return to_json_feed(with_token(feed_of_member(username, **query), token))


@atom_feed_by_token("/feeds/<token>/p/<page_id:id>/feed.atom", errors=[NoSuchPost])
def get_comments_as_atom_by_token(token: str, id: str, query: dict[str, Any]) -> Reply:
    """Read the latest comments on a post as an Atom feed, in a feed reader."""
    return to_atom(with_token(feed_of_comments_on(id, **query), token))


@json_feed_by_token("/feeds/<token>/p/<page_id:id>/feed.json", errors=[NoSuchPost])
def get_comments_as_json_feed_by_token(token: str, id: str, query: dict[str, Any]) -> Reply:
    """Read the latest comments on a post as a JSON Feed, in a feed reader."""
    return to_json_feed(with_token(feed_of_comments_on(id, **query), token))


@atom_feed_by_token("/feeds/<token>/comments/feed.atom")
def get_all_comments_as_atom_by_token(token: str, query: dict[str, Any]) -> Reply:
    """Read the latest comments of the community as an Atom feed, in a feed reader."""
    return to_atom(with_token(feed_of_comments(**query), token))


@json_feed_by_token("/feeds/<token>/comments/feed.json")
def get_all_comments_as_json_feed_by_token(token: str, query: dict[str, Any]) -> Reply:
    """Read the latest comments of the community as a JSON Feed, in a feed reader."""
    return to_json_feed(with_token(feed_of_comments(**query), token))


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


def feed_of_posts(before: str | None = None) -> Feed:
    """Return a page of the feed of posts."""
    posts = get_page(select_posts(content=True), before, name="list_posts")
    entries = to_entries(posts.items)
    return Feed(current_app.config["NAME"], "", "/", entries, before, posts.next_cursor)


def feed_of_member(username: str, before: str | None = None) -> Feed:
    """Return a page of the feed of a member's posts."""
    user = find_user(username)
    if user is None:
        raise NoSuchUser
    statement = select_posts(content=True, by_author=True)
    posts = get_page(statement, before, name="list_posts", author=user["id"])
    title = f"{current_app.config['NAME']}: {user['display_name'] or user['username']}"
    path = f"/@{user['username']}"
    return Feed(title, path, path, to_entries(posts.items), before, posts.next_cursor)


def feed_of_comments(before: str | None = None) -> Feed:
    """Return a page of the feed of all comments."""
    comments = get_page(COMMENTS_WITH_POSTS, before, name="list_comments")
    entries = [to_entry_of_comment(comment, comment["post_title"]) for comment in comments.items]
    title = f"{current_app.config['NAME']}: comments"
    return Feed(title, "/comments", "/", entries, before, comments.next_cursor)


def feed_of_comments_on(id: str, before: str | None = None) -> Feed:
    """Return a page of the feed of comments on a post."""
    post = get_post(id)
    comments = get_page(COMMENTS_ON_POST, before, name=id, post=id)
    entries = [
        to_entry_of_comment(comment, post["title"])
        for comment in comments.items
        if not comment["deleted"]
    ]
    path = f"/p/{id}"
    return Feed(post["title"], path, path, entries, before, comments.next_cursor)


def get_page(
    statement: sa.Select[*tuple[Any, ...]], before: str | None, *, name: str, **values: str
) -> Page:
    """Return a page of a list, newest first. It has fewer items if they are long."""
    return paginate(
        statement,
        limit=ENTRIES,
        cursor=before,
        name=name,
        newest_first=True,
        parameters=values,
        max_length=MAX_LENGTH,
        parameter="before",
    )


def to_entries(posts: list[dict[str, Any]]) -> list[Entry]:
    """Return the entries of posts, with their images as enclosures."""
    images = get_images_of_posts([post["id"] for post in posts])
    return [to_entry(post, post["title"], f"/p/{post['id']}", images[post["id"]]) for post in posts]


def to_entry_of_comment(comment: dict[str, Any], post_title: str) -> Entry:
    """Return the entry of a comment."""
    path = f"/p/{comment['post_id']}#c-{comment['id']}"
    return to_entry(comment, f"Comment on {post_title}", path, [])


def to_entry(item: dict[str, Any], title: str, path: str, images: list[dict[str, Any]]) -> Entry:
    """Return the entry of a post or comment."""
    base, author = base_url(), item["author"]
    urls = f"{request.script_root}/images/", f"{base}/images/"
    html = markdown.render(
        item["content"], image_urls=urls, member_url=f"{base}/@", base=base + path, name=item["id"]
    )
    return Entry(
        url=base + path,
        title=title,
        html=str(elements.text(html)),  # which the template escapes
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


def with_token(feed: Feed, token: str) -> Feed:
    """Return a feed with URLs of itself and its images that have a token in their path."""
    prefix = f"/feeds/{token}"
    public, private = f"{base_url()}/images/", f"{base_url()}{prefix}/images/"
    entries = [
        replace(
            entry,
            html=markdown.move_images(entry.html, public, private),
            images=[
                replace(image, url=image.url.replace(public, private)) for image in entry.images
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
        "home_page_url": feed.home_url,
        "feed_url": feed.url("json"),
        **next_url,
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
