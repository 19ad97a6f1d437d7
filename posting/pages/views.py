"""The pages of a community. They are the same bytes for all who may read them."""

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from flask import Response, current_app, request, send_file
from flask.sansio.blueprints import BlueprintSetupState
from marshmallow import Schema
from werkzeug.exceptions import NotFound
from werkzeug.routing import BaseConverter

from posting.accounts.current_user import PAGE_READERS, SIGNED_IN, current_user_id
from posting.accounts.store import (
    NoSuchUser,
    add_post_counts,
    find_user,
    list_all_users_by_name,
    list_users,
)
from posting.comments.store import list_comments, list_comments_on
from posting.config import ABOUT, CUSTOM_CSS, everyone_may_read
from posting.db.types import ID_LENGTH
from posting.files.store import list_files_of_posts
from posting.images.store import get_images_of_posts
from posting.languages import direction_of, site_language
from posting.pages import markdown, templating, threads
from posting.pages.attachments import MAX_LENGTH, MEMBERS_PER_PAGE, add_attachments, add_pictures
from posting.pages.problems import words_for
from posting.pages.schemas import (
    DeletedQuery,
    FrontPageQuery,
    MemberQuery,
    MembersQuery,
    PostQuery,
    SearchQuery,
)
from posting.pages.search import find_results
from posting.pages.style_guide import EXAMPLES
from posting.pages.templating import has_about, markdown_renderer, page
from posting.posts.schemas import Preview, PreviewInput
from posting.posts.store import get_post, list_pinned_posts, list_posts
from posting.site.colors import on_dark
from posting.site.settings import find_own_file
from posting.topics.store import NoSuchTopic, list_topics
from posting.web import errors
from posting.web.endpoint import PUBLIC, SAFE_METHODS, SHARED, Access, Blueprint, Reply, View
from posting.web.etags import to_json
from posting.web.limits import Limit
from posting.web.pagination import Page
from posting.web.system import send_static_file

POSTS_PER_PAGE = 20
COMMENTS_PER_PAGE = 50  # that are not in threads
NOT_FOR_ROBOTS = (
    *("/search", "/settings", "/inbox", "/unsent", "/write", "/p/*/edit"),
    *("/account-deleted", "/reset", "/moderation", "/keeping", "/confirm", "/unsubscribe/"),
)
ERROR_TYPES = ["application/problem+json", "application/json", "text/html"]
# A preview is requested several times while a post is written.
PREVIEW_LIMIT = Limit("previews", "LIMIT_POSTS", current_user_id, times=4)

pages = Blueprint("pages", __name__, description="Pages for people")


class PagePath(BaseConverter):
    """An id in the path of a page. A malformed id gets 404, as any unknown page does."""

    regex = f"[A-Za-z0-9_-]{{{ID_LENGTH}}}"


class MemberPath(BaseConverter):
    """A username in the path of a page."""

    regex = "[A-Za-z0-9_-]{1,32}"


@pages.record
def set_up(state: BlueprintSetupState) -> None:
    """Add to the app what the routes need, before they are registered."""
    state.app.url_map.converters |= {"page_id": PagePath, "member": MemberPath}
    state.app.extensions[errors.ERROR_PAGE] = show_error
    templating.init_app(state.app)


def page_at(rule: str, *, access: Access, query: Schema | None = None) -> Callable[[View], View]:
    """Register a page, which is the same for all who may read it, and not in the document."""
    return pages.get(
        rule, access=access, cache=SHARED, query=query, any_query=True, documented=False
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


@page_at("/", access=PAGE_READERS, query=FrontPageQuery())
def show_latest_posts(query: dict[str, Any]) -> Reply:
    """Show the pinned posts, and then the latest ones."""
    posts = list_posts(
        limit=POSTS_PER_PAGE, cursor=query.get("cursor"), sort=query["sort"], text="beginning"
    )
    pinned = [] if "cursor" in query else list_pinned_posts()
    others = [post for post in posts.items if not post["pinned"]]  # on every page
    shown = Page([*pinned, *others], posts.next_cursor)
    add_pictures(shown)
    return page("front.html", page=shown, topics=list_topics(), sort=query["sort"])


@page_at("/t/<page_id:id>", access=PAGE_READERS, query=FrontPageQuery())
def show_topic(id: str, query: dict[str, Any]) -> Reply:
    """Show the latest posts of a topic."""
    topics = list_topics()
    topic = next((topic for topic in topics if topic["id"] == id), None)
    if topic is None:
        raise NoSuchTopic
    posts = list_posts(
        limit=POSTS_PER_PAGE,
        cursor=query.get("cursor"),
        sort=query["sort"],
        topic=id,
        text="beginning",
    )
    add_pictures(posts)
    return page("topic.html", page=posts, current=topic, topics=topics, sort=query["sort"])


@page_at("/search", access=PAGE_READERS, query=SearchQuery())
def show_search_results(query: dict[str, Any]) -> Reply:
    """Show the form to search, and the posts, comments or members that are found."""
    results = find_results(query["q"].strip(), query.get("show"), query.get("cursor"))
    return page("search.html", is_chosen="show" in query, **results)


@page_at("/p/<page_id:id>", access=PAGE_READERS, query=PostQuery())
def show_post(id: str, query: dict[str, Any]) -> Reply:
    """Show a post with its images and comments."""
    post = get_post(id)
    images = get_images_of_posts([id])[id] if post["image_count"] else []
    html = markdown_renderer(images)(post["content"])
    shown = markdown.image_ids(html)
    cursor = query.get("cursor")
    comments = (
        threads.get_page(id, cursor, query.get("comment"))
        if query["sort"] == "oldest"
        else get_newest_comments(id, cursor)
    )
    add_attachments([item.comment for item in comments.items])
    return page(
        "post.html",
        post=post,
        html=html,
        images=images,
        files=list_files_of_posts([id])[id] if post["file_count"] else [],
        images_below=[image for image in images if image["id"] not in shown],
        thread=comments.items,
        next_cursor=comments.next_cursor,
        sort=query["sort"],
        is_continued=not {"cursor", "comment"}.isdisjoint(query),
    )


def get_newest_comments(post_id: str, cursor: str | None) -> threads.ThreadPage:
    """Return a page of the comments on a post, newest first and not in threads."""
    comments = list_comments_on(
        post_id,
        limit=COMMENTS_PER_PAGE,
        cursor=cursor,
        name=f"{post_id}-newest",
        newest_first=True,
        max_length=MAX_LENGTH,
    )
    items = [threads.ThreadItem(comment, 1) for comment in comments.items]
    return threads.ThreadPage(items, comments.next_cursor)


@page_at("/@<member:username>", access=PAGE_READERS, query=MemberQuery())
def show_member(username: str, query: dict[str, Any]) -> Reply:
    """Show a member's profile, and their posts or comments."""
    user = find_user(username)
    if user is None:
        raise NoSuchUser
    id, cursor = user["id"], query.get("cursor")
    if query["show"] == "posts":
        found = list_posts(limit=POSTS_PER_PAGE, cursor=cursor, author=id, text="beginning")
        add_pictures(found)
    else:
        found = list_comments(
            limit=COMMENTS_PER_PAGE, cursor=cursor, author=id, name=id, max_length=MAX_LENGTH
        )
        add_attachments(found.items)
    return page("member.html", user=user, page=found, show=query["show"])


@page_at("/members", access=PAGE_READERS, query=MembersQuery())
def show_members(query: dict[str, Any]) -> Reply:
    """Show all members, newest first or by name."""
    by_name, cursor = query["sort"] == "name", query.get("cursor")
    find = list_all_users_by_name if by_name else list_users
    found = find(limit=MEMBERS_PER_PAGE, cursor=cursor)
    add_post_counts(found.items)
    return page("members.html", page=found, sort=query["sort"])


@page_at("/write", access=PAGE_READERS)
def show_editor() -> Reply:
    """Show the form for a new post."""
    return page("write.html", post=None, topics=list_topics())


@page_at("/p/<page_id:id>/edit", access=PAGE_READERS)
def show_edit_form(id: str) -> Reply:
    """Show the form for an edit of a post."""
    post = get_post(id)
    images, files = get_images_of_posts([id])[id], list_files_of_posts([id])[id]
    return page("write.html", post=post, images=images, files=files, topics=list_topics())


def render_preview(body: dict[str, str]) -> str:
    """Return Markdown as the HTML that a page will show."""
    return markdown_renderer()(body["content"], name="preview")


@pages.post(
    "/preview",
    access=SIGNED_IN,
    limits=[PREVIEW_LIMIT],
    body=PreviewInput(),
    prepare=render_preview,
    returns=Preview(),
)
def preview(body: dict[str, str], prepared: str) -> Reply:
    """Render Markdown as a page will show it."""
    return {"html": prepared}


@page_of_api("/signin")
def show_sign_in() -> Reply:
    """Show the form to sign in."""
    return page("signin.html")


@page_of_api("/signup")
def show_sign_up() -> Reply:
    """Show the form to sign up."""
    return page("signup.html")


@page_at("/reset", access=PUBLIC)
def show_reset() -> Reply:
    """Show the forms to choose a password, with a link or a recovery code."""
    return page("reset.html")


@page_at("/confirm", access=PUBLIC)
def show_confirmation() -> Reply:
    """Show the button that confirms a mail address, with the code of a link."""
    return page("confirm.html")


@page_of_api("/unsubscribe/notifications/<nanoid:id>")
def show_end_of_notifications(id: str) -> Reply:
    """Show the button that ends mails about notifications. The page itself changes nothing."""
    return page("unsubscribe.html", list="notifications")


@page_of_api("/unsubscribe/letter/<nanoid:id>")
def show_end_of_letter(id: str) -> Reply:
    """Show the button that ends the weekly letter."""
    return page("unsubscribe.html", list="letter")


@page_at("/settings", access=PAGE_READERS)
def show_settings() -> Reply:
    """Show the forms for one's own account."""
    return page("settings.html")


@page_at("/inbox", access=PAGE_READERS)
def show_inbox() -> Reply:
    """Show the list of one's own notifications, which the script fills."""
    return page("inbox.html")


@page_at("/moderation", access=PAGE_READERS)
def show_moderation() -> Reply:
    """Show the lists of moderators, which the script fills."""
    return page("moderation.html")


@page_at("/keeping", access=PAGE_READERS)
def show_keeping() -> Reply:
    """Show the forms of owners, which the script fills."""
    return page("keeping.html", has_webhooks=current_app.config["WEBHOOKS"] != "off")


@page_at("/unsent", access=PAGE_READERS)
def show_unsent_texts() -> Reply:
    """Show the list of texts that were not sent, which the script fills."""
    return page("unsent.html")


@page_at("/account-deleted", access=PUBLIC, query=DeletedQuery())
def show_deletion(query: dict[str, Any]) -> Reply:
    """Say what was deleted with an account."""
    return page("deleted.html", content=query["content"])


@page_at("/about", access=PUBLIC)
def show_about() -> Reply:
    """Show the text about the site, which the file about.md wins over, and the rules."""
    if not has_about():
        raise NotFound
    config, file = current_app.config, find_own_file(current_app, ABOUT)
    content = file.read_text("utf-8", errors="replace") if file else config["ABOUT"]
    response = page("about.html", content=content, rules=config["RULES"])
    if file:
        response.headers["Cache-Control"] = "no-cache"  # the file may change without a commit
    return response


@page_at("/styleguide", access=PUBLIC)
def show_style_guide() -> Reply:
    """Show every element of the pages while the service is developed. Raise 404 otherwise."""
    if not current_app.debug:
        raise NotFound
    return page("styleguide.html", **EXAMPLES)


@pages.get("/accent.css", access=PUBLIC, cache=SHARED, any_query=True, documented=False)
def show_accent() -> Reply:
    """Show the style sheet with the color that owners have chosen."""
    accent = current_app.config["ACCENT"]
    if accent is None:
        raise NotFound
    css = f":root {{ --accent: {accent}; --on-accent: #fff; }}\n"
    css += f"@media (prefers-color-scheme: dark) {{ :root {{ --accent: {on_dark(accent)}; "
    css += "--on-accent: #10151d; } }\n"
    return Response(css, mimetype="text/css")


@pages.get("/custom.css", access=PUBLIC, cache=SHARED, any_query=True, documented=False)
def show_custom_css() -> Reply:
    """Show the style sheet that the operator has written."""
    file = find_own_file(current_app, CUSTOM_CSS)
    if file is None:
        raise NotFound
    return send_file(file)


@pages.get("/favicon.svg", access=PUBLIC, cache=SHARED, any_query=True, documented=False)
def show_icon() -> Reply:
    """Show the icon of the site."""
    return send_static_file("favicon.svg")


@pages.get("/favicon.ico", access=PUBLIC, cache=SHARED, any_query=True, documented=False)
def show_former_icon() -> Reply:
    """Show the icon as a PNG, to programs that know no other path."""
    return send_static_file("icon.png")


@pages.get("/manifest.webmanifest", access=PUBLIC, cache=SHARED, any_query=True, documented=False)
def show_manifest() -> Reply:
    """Describe the site, so that people can install it like an app."""
    root, name, language = request.script_root, current_app.config["NAME"], site_language()
    icons = [
        {"src": f"{root}/favicon.svg", "sizes": "any", "type": "image/svg+xml"},
        {"src": f"{root}/favicon.ico", "sizes": "180x180", "type": "image/png"},
    ]
    if logo := current_app.config["LOGO_ID"]:
        src = f"{root}/site/logo/{logo}"
        icons = [{"src": src, "sizes": "256x256", "type": "image/webp"}]
    manifest = {
        "lang": language,
        "dir": direction_of(language),
        "name": name,
        "short_name": name,
        "description": current_app.config["DESCRIPTION"] or name,
        "start_url": f"{root}/",
        "scope": f"{root}/",
        "display": "standalone",
        "background_color": "#fdfdfb",
        "theme_color": "#fdfdfb",
        "icons": icons,
    }
    return Response(to_json(manifest), content_type="application/manifest+json")


@pages.get("/worker.js", access=PUBLIC, cache=SHARED, any_query=True, documented=False)
def show_worker() -> Reply:
    """Show the script that shows notifications, at a path that is above all pages."""
    return send_static_file("worker.js")


@pages.get("/robots.txt", access=PUBLIC, cache=SHARED, any_query=True, documented=False)
def show_robots() -> Reply:
    """Say which pages are not for search engines: all of them if only members may read."""
    paths = NOT_FOR_ROBOTS if everyone_may_read(current_app.config) else ("/",)
    lines = [f"Disallow: {request.script_root}{path}\n" for path in paths]
    return Response(["User-agent: *\n", *lines], mimetype="text/plain")


def show_error(problem: dict[str, Any]) -> Response | None:
    """Return problem details as a page if a page was requested, and otherwise None.

    If only members may read, a visitor gets the form to sign in, which leads back to the page.
    """
    is_page = request.blueprint == pages.name and request.method in SAFE_METHODS
    is_unknown = isinstance(request.routing_exception, NotFound)
    prefers_html = request.accept_mimetypes.best_match(ERROR_TYPES) == "text/html"
    if not is_page and not (is_unknown and prefers_html):
        return None
    if problem["status"] == 401:
        response = page("signin.html", next=current_path())
    else:
        heading, sentence = words_for(problem)
        response = page("error.html", problem=problem, heading=heading, sentence=sentence)
    response.status_code = problem["status"]
    return response


def current_path() -> str:
    """Return the path and the query of the request, to come back to."""
    path = quote(request.script_root + request.path, safe="/@")
    query = request.query_string.decode(errors="replace")
    return f"{path}?{query}" if query else path
