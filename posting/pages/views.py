"""The pages of a community. They are public, and the same bytes for everyone."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from flask import Response, current_app, render_template, request, send_from_directory
from flask.sansio.app import App
from flask.sansio.blueprints import BlueprintSetupState
from markupsafe import Markup
from marshmallow import EXCLUDE, Schema
from werkzeug.exceptions import NotFound
from werkzeug.routing import BaseConverter

from posting.accounts.current_user import SIGNED_IN, user_id
from posting.accounts.queries import NoSuchUser, find_user
from posting.comments.queries import COMMENTS_ON_POST
from posting.config import ABOUT, CUSTOM_CSS
from posting.db.transactions import commit
from posting.db.types import ID_LENGTH
from posting.images.queries import get_images_of_post
from posting.pages import elements, forms, highlight, markdown, threads
from posting.plurals import count
from posting.posts.queries import ORDERS, get_post, select_posts
from posting.posts.schemas import IMAGES_PER_POST, Preview, PreviewInput, sort_field
from posting.posts.search.results import paginate_results
from posting.posts.search.words import has_short_prefix, parse_query
from posting.web import errors
from posting.web.endpoint import PUBLIC, SAFE_METHODS, SHARED, Blueprint, Reply, View
from posting.web.fields import Length, Parameter
from posting.web.limits import Limit
from posting.web.pagination import paginate
from posting.web.schemas import PageQuery
from posting.web.static_files import send_static_file
from posting.web.urls import base_url

POSTS_PER_PAGE = 20
COMMENTS_PER_PAGE = 200
MAX_LENGTH = 2**16  # characters of Markdown on a page of comments or search results
# The editor shows images that are not sent yet, from blob: URLs.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
NOT_FOR_ROBOTS = ("/search", "/settings", "/write", "/p/*/edit")
ERROR_TYPES = ["application/problem+json", "application/json", "text/html"]
# A preview is requested several times while a post is written.
LIMIT = Limit("previews", "LIMIT_POSTS", user_id, times=4)

pages = Blueprint("pages", __name__, description="Pages for people")


class PagePath(BaseConverter):
    """A path segment of a page that is an id; another one is 404, as for any unknown page."""

    regex = f"[A-Za-z0-9_-]{{{ID_LENGTH}}}"


class MemberPath(BaseConverter):
    """A username in the path of a page."""

    regex = "[A-Za-z0-9_-]{1,32}"


class CursorQuery(PageQuery):
    """The cursor of a list. Other parameters are ignored, since trackers add theirs to links."""

    class Meta:
        unknown = EXCLUDE
        exclude = ("limit",)


class FrontPageQuery(CursorQuery):
    """The cursor and the order of posts."""

    sort = sort_field()


class SearchQuery(CursorQuery):
    """Words to find, which are none when the page is opened."""

    q = Parameter(load_default="", validate=Length(max=200))


@pages.record
def set_up(state: BlueprintSetupState) -> None:
    """Add to the app what the routes need, before they are registered."""
    state.app.url_map.converters |= {"page_id": PagePath, "member": MemberPath}
    state.app.extensions[errors.ERROR_PAGE] = show_error
    config = state.app.config
    state.app.jinja_env.globals |= {
        "community": config["NAME"],
        "description": config["DESCRIPTION"],
        "password_min": config["PASSWORD_MIN"],
        "max_images": IMAGES_PER_POST,
        "max_image_bytes": config["MAX_IMAGE_BYTES"],
        "has_about": own_file(state.app, ABOUT).is_file(),
        "has_custom_css": own_file(state.app, CUSTOM_CSS).is_file(),
        "image_types": forms.image_types(),
        "attributes": forms.attributes,
        "author": elements.author,
        "count": count,
        "time": elements.time,
    }


def markdown_renderer() -> Callable[..., Markup]:
    """Return a function that renders Markdown, with images from this service only."""
    image_urls = f"{request.script_root}/images/", f"{base_url()}/images/"

    def render(text: str, heading: int = 2) -> Markup:
        html = markdown.render(text, image_urls=image_urls, heading=heading)
        return Markup(html)  # noqa: S704 - sanitized

    return render


def page(template: str, **context: Any) -> Response:
    """Return the response with a page."""
    html = render_template(f"pages/{template}", markdown=markdown_renderer(), **context)
    return Response(html, headers={"Content-Security-Policy": POLICY})


def page_at(rule: str, *, query: Schema | None = None) -> Callable[[View], View]:
    """Register a page, which is the same for everyone and not in the document."""
    return pages.get(
        rule, access=PUBLIC, cache=SHARED, query=query, any_query=True, documented=False
    )


def page_of_api(rule: str) -> Callable[[View], View]:
    """Register a page at a path of the API.

    The document has the page, because the response to `OPTIONS` names GET as well.
    """
    return pages.get(
        rule,
        access=PUBLIC,
        cache=SHARED,
        any_query=True,
        returns={"type": "string"},
        media_type="text/html",
        error_type="text/html",
        description="A page",
    )


@page_at("/", query=FrontPageQuery())
def show_latest_posts(query: dict[str, Any]) -> Reply:
    """Show the latest posts."""
    order = ORDERS[query["sort"]]
    posts = paginate(
        select_posts(excerpt=True),
        limit=POSTS_PER_PAGE,
        cursor=query.get("cursor"),
        name=order.name,
        time=order.time,
        newest_first=True,
    )
    return page("front.html", page=posts, sort=query["sort"])


@page_at("/search", query=SearchQuery())
def show_search_results(query: dict[str, Any]) -> Reply:
    """Show the form to search, and the posts in which the words occur."""
    q = query["q"].strip()
    is_short = has_short_prefix(q)
    words = "" if is_short else q
    found = paginate_results(
        select_posts(content=True),
        words,
        limit=POSTS_PER_PAGE,
        cursor=query.get("cursor"),
        max_length=MAX_LENGTH,
    )
    terms = parse_query(words)
    return page("search.html", page=found, q=q, terms=terms, has_short_prefix=is_short)


@page_at("/p/<page_id:id>", query=CursorQuery())
def show_post(id: str, query: dict[str, Any]) -> Reply:
    """Show a post with its images and comments."""
    post = get_post(id)
    images = get_images_of_post(id) if post["has_images"] else []
    text = markdown_renderer()(post["content"])
    shown = markdown.image_ids(text)
    comments = paginate(
        COMMENTS_ON_POST,
        limit=COMMENTS_PER_PAGE,
        cursor=query.get("cursor"),
        name=id,
        newest_first=False,
        parameters={"post": id},
        max_length=MAX_LENGTH,
    )
    return page(
        "post.html",
        post=post,
        text=text,
        images=images,
        images_below=[image for image in images if image["id"] not in shown],
        thread=threads.arrange(comments.items),
        next_cursor=comments.next_cursor,
        is_continued="cursor" in query,
    )


@page_at("/@<member:username>", query=CursorQuery())
def show_member(username: str, query: dict[str, Any]) -> Reply:
    """Show a member's profile and posts."""
    user = find_user(username)
    if user is None:
        raise NoSuchUser
    posts = paginate(
        select_posts(excerpt=True, by_author=True),
        limit=POSTS_PER_PAGE,
        cursor=query.get("cursor"),
        name="list_posts",
        newest_first=True,
        parameters={"author": user["id"]},
    )
    return page("member.html", user=user, page=posts)


@page_at("/write")
def show_editor() -> Reply:
    """Show the form for a new post."""
    return page("write.html", post=None, images=[])


@page_at("/p/<page_id:id>/edit")
def show_edit_form(id: str) -> Reply:
    """Show the form for an edit of a post."""
    post = get_post(id)
    return page("write.html", post=post, images=get_images_of_post(id))


@pages.post("/preview", access=SIGNED_IN, limit=LIMIT, body=PreviewInput(), returns=Preview())
def preview(body: dict[str, str]) -> Reply:
    """Render Markdown as a page will show it."""
    commit()  # the hit of the limit
    return {"html": markdown_renderer()(body["content"])}


@page_of_api("/signin")
def show_sign_in() -> Reply:
    """Show the form to sign in."""
    return page("signin.html")


@page_of_api("/signup")
def show_sign_up() -> Reply:
    """Show the form to sign up."""
    return page("signup.html", is_open=current_app.config["SIGNUP"] == "open")


@page_at("/settings")
def show_settings() -> Reply:
    """Show the forms for one's own account."""
    return page("settings.html")


@page_at("/about")
def show_about() -> Reply:
    """Show what the operator has written in about.md."""
    file = own_file(current_app, ABOUT)
    if not file.is_file():
        raise NotFound
    response = page("about.html", text=file.read_text("utf-8", errors="replace"))
    response.headers["Cache-Control"] = "no-cache"  # the file may change without a commit
    return response


@pages.get("/custom.css", access=PUBLIC, cache=SHARED, any_query=True, documented=False)
def show_custom_css() -> Reply:
    """Show the style sheet that the operator has written."""
    return send_from_directory(current_app.instance_path, CUSTOM_CSS)


@pages.get("/favicon.svg", access=PUBLIC, cache=SHARED, any_query=True, documented=False)
def show_icon() -> Reply:
    """Show the icon of the site."""
    return send_static_file("favicon.svg")


@pages.get("/robots.txt", access=PUBLIC, cache=SHARED, any_query=True, documented=False)
def show_robots() -> Reply:
    """Say which pages are not for search engines."""
    lines = [f"Disallow: {request.script_root}{path}\n" for path in NOT_FOR_ROBOTS]
    return Response(["User-agent: *\n", *lines], mimetype="text/plain")


def show_error(problem: dict[str, Any]) -> Response | None:
    """Return problem details as a page if a page was requested, or else None."""
    is_page = request.blueprint == pages.name and request.method in SAFE_METHODS
    is_unknown = isinstance(request.routing_exception, NotFound)
    prefers_html = request.accept_mimetypes.best_match(ERROR_TYPES) == "text/html"
    if not is_page and not (is_unknown and prefers_html):
        return None
    response = page("error.html", problem=problem)
    response.status_code = problem["status"]
    return response


pages.app_template_filter("excerpt")(markdown.excerpt)
pages.app_template_filter("highlight")(highlight.highlight)
pages.app_template_filter("highlighted_excerpt")(highlight.excerpt)


@pages.app_context_processor
def add_paths() -> dict[str, Any]:
    """Make available to templates the path of this service and of the request."""
    return {"root": request.script_root, "here": request.script_root + request.path}


def own_file(app: App, name: str) -> Path:
    """Return the path of a file that the operator may have put into the instance folder."""
    return Path(app.instance_path) / name
