"""The pages of a community. They are public, and the same bytes for everyone."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from flask import Response, current_app, render_template, request, send_from_directory
from flask.sansio.app import App
from flask.sansio.blueprints import BlueprintSetupState
from markupsafe import Markup
from marshmallow import EXCLUDE
from werkzeug.exceptions import NotFound
from werkzeug.routing import BaseConverter

from posting.auth.login import SIGNED_IN, user_id
from posting.db import queries
from posting.db.engine import SAFE_METHODS, db
from posting.db.errors import NoSuchUser
from posting.db.types import ID_LENGTH
from posting.db.words import parse_query
from posting.domain.search import paginate_results
from posting.http import errors
from posting.http.endpoint import PUBLIC, Blueprint, Reply
from posting.http.pagination import paginate
from posting.http.rate_limits import Limit
from posting.http.static_files import send_static_file
from posting.http.urls import base_url
from posting.pages import elements, forms, highlight, markdown, threads
from posting.schemas.base import PageQuery
from posting.schemas.fields import IMAGES_PER_POST, Length, Parameter
from posting.schemas.posts import Preview, PreviewInput, sort_field

ABOUT = "about.md"
CUSTOM_CSS = "custom.css"
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
LIMIT = Limit("previews", "LIMIT_POSTS", user_id, times=20)

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
        "count": elements.count,
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


@pages.get("/", access=PUBLIC, query=FrontPageQuery(), documented=False)
def show_latest_posts(query: dict[str, Any]) -> Reply:
    """Show the latest posts."""
    query["limit"], sort = POSTS_PER_PAGE, query.pop("sort")
    order = queries.ORDERS[sort]
    posts = paginate(
        queries.POST_EXCERPTS, query, name=order.name, time=order.time, newest_first=True
    )
    return page("front.html", page=posts, sort=sort)


@pages.get("/search", access=PUBLIC, query=SearchQuery(), documented=False)
def show_search_results(query: dict[str, Any]) -> Reply:
    """Show the form to search, and the posts in which the words occur."""
    query["limit"], words = POSTS_PER_PAGE, query.pop("q")
    found = paginate_results(queries.POSTS_WITH_CONTENT, query, words, max_length=MAX_LENGTH)
    return page("search.html", page=found, q=words, terms=parse_query(words))


@pages.get("/p/<page_id:id>", access=PUBLIC, query=CursorQuery(), documented=False)
def show_post(id: str, query: dict[str, Any]) -> Reply:
    """Show a post with its images and comments."""
    post = queries.get_post(id)
    images = queries.get_images_of_post(id) if post["has_images"] else []
    text = markdown_renderer()(post["content"])
    shown = markdown.image_ids(text)
    query |= {"post": id, "limit": COMMENTS_PER_PAGE}
    comments = paginate(
        queries.COMMENTS_ON_POST, query, name=id, newest_first=False, max_length=MAX_LENGTH
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


@pages.get("/@<member:username>", access=PUBLIC, query=CursorQuery(), documented=False)
def show_member(username: str, query: dict[str, Any]) -> Reply:
    """Show a member's profile and posts."""
    user = queries.find_user(username)
    if user is None:
        raise NoSuchUser
    query |= {"author": user["id"], "limit": POSTS_PER_PAGE}
    posts = paginate(queries.POST_EXCERPTS_OF_AUTHOR, query, name="list_posts", newest_first=True)
    return page("member.html", user=user, page=posts)


@pages.get("/write", access=PUBLIC, documented=False)
def show_editor() -> Reply:
    """Show the form for a new post."""
    return page("write.html", post=None, images=[])


@pages.get("/p/<page_id:id>/edit", access=PUBLIC, documented=False)
def show_edit_form(id: str) -> Reply:
    """Show the form for an edit of a post."""
    post = queries.get_post(id)
    return page("write.html", post=post, images=queries.get_images_of_post(id))


@pages.post("/preview", access=SIGNED_IN, limit=LIMIT, body=PreviewInput(), returns=Preview())
def preview(body: dict[str, str]) -> Reply:
    """Render Markdown as a page will show it."""
    db.session.commit()  # the hit of the limit
    return {"html": markdown_renderer()(body["content"])}


@pages.get("/signin", access=PUBLIC, documented=False)
def show_sign_in() -> Reply:
    """Show the form to sign in."""
    return page("signin.html")


@pages.get("/signup", access=PUBLIC, documented=False)
def show_sign_up() -> Reply:
    """Show the form to sign up."""
    return page("signup.html", is_open=current_app.config["SIGNUP"] == "open")


@pages.get("/settings", access=PUBLIC, documented=False)
def show_settings() -> Reply:
    """Show the forms for one's own account."""
    return page("settings.html")


@pages.get("/about", access=PUBLIC, documented=False)
def show_about() -> Reply:
    """Show what the operator has written in about.md."""
    file = own_file(current_app, ABOUT)
    if not file.is_file():
        raise NotFound
    response = page("about.html", text=file.read_text("utf-8", errors="replace"))
    response.headers["Cache-Control"] = "no-cache"  # the file may change without a commit
    return response


@pages.get("/custom.css", access=PUBLIC, documented=False)
def show_custom_css() -> Reply:
    """Show the style sheet that the operator has written."""
    return send_from_directory(current_app.instance_path, CUSTOM_CSS)


@pages.get("/favicon.svg", access=PUBLIC, documented=False)
def show_icon() -> Reply:
    """Show the icon of the site."""
    return send_static_file("favicon.svg")


@pages.get("/robots.txt", access=PUBLIC, documented=False)
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
