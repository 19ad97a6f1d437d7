"""What the templates of pages use, and the response with a page that they render."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from flask import Response, current_app, render_template, request
from flask.sansio.app import App
from markupsafe import Markup

from posting.comments.schemas import IMAGES_PER_COMMENT
from posting.config import CUSTOM_CSS, FIXED, sends_mails
from posting.files.formats import FORMATS
from posting.invitations import models as invitations
from posting.languages import LANGUAGES, current_language, direction_of
from posting.markdown import excerpt
from posting.pages import elements, forms, highlight, markdown
from posting.pages.fragments import Fragments
from posting.pages.markdown import image_ids
from posting.posts.schemas import FILES_PER_TEXT, IMAGES_PER_POST
from posting.reactions.models import EMOJI
from posting.site.settings import find_own_file
from posting.topics.models import COLORS, TOPICS_PER_POST
from posting.web.hosts import base_url, external_url
from posting.web.schemas import Item

FRAGMENTS = "posting.fragments"

# The editor shows images that are not sent yet, from blob: URLs.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; "
    "connect-src 'self'; manifest-src 'self'; worker-src 'self'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'"
)


def init_app(app: App) -> None:
    """Give templates the values and functions that they use."""
    # While somebody develops templates, nothing is kept.
    app.extensions[FRAGMENTS] = Fragments(0) if app.debug else Fragments()
    config = app.config
    app.jinja_env.globals |= {
        "mail": sends_mails(config),
        "invitation_days": invitations.LIFETIME.days,
        "max_invitation_days": invitations.MAX_LIFETIME.days,
        "password_min": config["PASSWORD_MIN"],
        "max_images": IMAGES_PER_POST,
        "max_images_of_comment": IMAGES_PER_COMMENT,
        "max_image_bytes": config["MAX_IMAGE_BYTES"],
        "has_custom_css": find_own_file(app, CUSTOM_CSS) is not None,
        "image_types": forms.image_types(),
        "max_files": FILES_PER_TEXT,
        "max_file_bytes": config["MAX_FILE_BYTES"],
        "file_types": ",".join(f".{extension}" for extension in FORMATS),
        "attributes": forms.attributes,
        "author": elements.author,
        "avatar": elements.avatar,
        "initial_of": elements.initial_of,
        "external_url": external_url,
        "icon": elements.icon,
        "CELL": elements.CELL,
        "COLUMN": elements.COLUMN,
        "image_ids": image_ids,
        "image_sizes": elements.image_sizes,
        "reactions": elements.reactions,
        "EMOJI": EMOJI,
        "topic": elements.topic,
        "topics_of": elements.topics,
        "topic_colors": COLORS,
        "max_topics": TOPICS_PER_POST,
        "LANGUAGES": LANGUAGES,
        "text": elements.text,
        "time": elements.time,
    }
    app.jinja_env.filters |= {
        "excerpt": excerpt,
        "filesize": elements.size,
        "highlight": highlight.highlight,
        "highlighted_excerpt": highlight.excerpt,
    }
    app.context_processor(add_paths)
    app.context_processor(describe_site)


def markdown_renderer(images: Sequence[Item] = ()) -> Callable[..., Markup]:
    """Return a function that renders Markdown, with images from this service only.

    The sizes of `images` are known.
    """
    root = request.script_root
    image_urls, member_url = (f"{root}/images/", f"{base_url()}/images/"), f"{root}/@"

    def render(text: str, heading: int = 2, name: str = "text") -> Markup:
        html = markdown.render(
            text, image_urls=image_urls, member_url=member_url, heading=heading, name=name
        )
        if images and "<img" in html:
            html = markdown.add_sizes(html, root, images)
        return Markup(html)  # noqa: S704 - sanitized

    return render


def page(template: str, *, images: Sequence[Item] = (), **context: Any) -> Response:
    """Return the response with a page. The sizes of `images` are known, which texts may show."""
    render = markdown_renderer(images)
    fragments: Fragments = current_app.extensions[FRAGMENTS]
    # An image gets its sizes once.
    keys = (f"{image['id']} {len(image['sizes'])}" for image in images)
    key = (request.script_root, base_url(), *describe_site().values(), *keys)
    once = partial(fragments.once, key)
    html = render_template(
        f"pages/{template}", markdown=render, once=once, images=images, **context
    )
    return Response(html, headers={"Content-Security-Policy": POLICY})


def add_paths() -> dict[str, Any]:
    """Return what templates know of the request: the path of this service and that of the page."""
    return {"root": request.script_root, "here": request.script_root + request.path}


def describe_site() -> dict[str, Any]:
    """Return what templates know of the site."""
    config, language = current_app.config, current_language()
    return {
        "language": language,
        "direction": direction_of(language),
        "community": config["NAME"],
        "description": config["DESCRIPTION"],
        "signup": config["SIGNUP"],
        "inviters": config["INVITATIONS"],
        "has_about": has_about(),
        "accent": config["ACCENT"],
        "has_rules": bool(config["RULES"]),
        "logo": config["LOGO_ID"],
        "cover": config["COVER_ID"],
    }


def has_about() -> bool:
    """Return whether the site has a page about itself, with a text or with rules."""
    config = current_app.config
    return bool(config["ABOUT"] or config["RULES"] or "ABOUT" in config[FIXED])
