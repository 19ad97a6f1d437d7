"""The feeds of posts and comments, each as Atom and as JSON Feed.

Each feed has a second address with a token in its path, for feed readers, which have no session. At
such addresses they also get the images of the feed.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypedDict

from flask import current_app, request

from posting.accounts.current_user import FEED_TOKEN, PAGE_READERS
from posting.accounts.queries import NoSuchUser, find_user
from posting.comments.store import list_comments, list_comments_on
from posting.images.store import NoSuchImage, get_images_of_posts
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
from posting.web.pagination import NOT_A_CURSOR
from posting.web.urls import base_url

ENTRIES = 50
MAX_LENGTH = 2**16  # characters of Markdown in a feed

feeds = Blueprint("feeds", __name__, description="Feeds of posts and comments")


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
    posts = list_posts(text="whole", **page_of(before))
    entries = to_entries(posts.items)
    return Feed(current_app.config["NAME"], "", "/", entries, before, posts.next_cursor)


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
    entries = [to_entry_of_comment(comment, comment["post_title"]) for comment in comments.items]
    title = f"{current_app.config['NAME']}: comments"
    return Feed(title, "/comments", "/", entries, before, comments.next_cursor)


def feed_of_comments_on(id: str, before: str | None = None) -> Feed:
    """Return a page of the feed of comments on a post."""
    post = get_post(id)
    comments = list_comments_on(id, name=id, newest_first=True, **page_of(before))
    entries = [
        to_entry_of_comment(comment, post["title"])
        for comment in comments.items
        if not comment["deleted"]
    ]
    path = f"/p/{id}"
    return Feed(post["title"], path, path, entries, before, comments.next_cursor)


class PageOptions(TypedDict):
    """What the lists of all feeds have in common."""

    limit: int
    cursor: str | None
    max_length: int
    parameter: str


def page_of(before: str | None) -> PageOptions:
    """Return the options of a page of a feed, which has fewer entries if they are long."""
    return {"limit": ENTRIES, "cursor": before, "max_length": MAX_LENGTH, "parameter": "before"}


def to_entries(posts: list[dict[str, Any]]) -> list[Entry]:
    """Return the entries of posts, with their images as enclosures."""
    images = get_images_of_posts([post["id"] for post in posts])
    return [to_entry(post, post["title"], f"/p/{post['id']}", images[post["id"]]) for post in posts]


def to_entry_of_comment(comment: dict[str, Any], post_title: str) -> Entry:
    """Return the entry of a comment."""
    path, fragment = f"/p/{comment['post_id']}", f"#c-{comment['id']}"
    entry = to_entry(
        comment, f"Comment on {post_title}", f"{path}?comment={comment['id']}{fragment}"
    )
    return replace(entry, id=f"{base_url()}{path}{fragment}")


def to_entry(
    item: dict[str, Any], title: str, path: str, images: Sequence[dict[str, Any]] = ()
) -> Entry:
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
        else Author("a former member", None),
        published=item["created_at"],
        updated=item["updated_at"],
        images=[
            Enclosure(f"{base}/images/{image['id']}", image["media_type"], image["size"])
            for image in images
        ],
    )
