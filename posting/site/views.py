"""The site, for apps that work with any."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import prometheus_client
import sqlalchemy as sa
from flask import Response, current_app
from marshmallow import Schema
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector
from werkzeug.exceptions import NotFound

from posting.accounts.current_user import EDIT_LIMIT, OWNER_SESSION_REQUIRED, lock_as_owner
from posting.accounts.fields import MAX_PASSWORD_LENGTH, MAX_USERNAME_LENGTH, MIN_USERNAME_LENGTH
from posting.accounts.models import TOKENS_PER_USER
from posting.accounts.passwords import ACCOUNT_USE_LIMIT, ADDRESS_USE_LIMIT
from posting.accounts.schemas import Profile, SignUp
from posting.accounts.store import count_applications
from posting.attachments import MAX_UNATTACHED, largest_total
from posting.comments.schemas import IMAGES_PER_COMMENT, CommentInput, CommentsQuery
from posting.config import FIXED, VERSION, sends_mails
from posting.db.transactions import Row
from posting.files.formats import FORMATS
from posting.images import codec
from posting.images.schemas import MEDIA_TYPES, ImageUpload
from posting.images.views import (
    IMAGE_LIMIT,
    ImagesBusy,
    OwnImageInProgress,
    decoding,
    headers_of_file,
)
from posting.invitations.models import OPEN_PER_USER
from posting.languages import known
from posting.mail.store import CONFIRMATION_ADDRESS_LIMIT, PASSWORD_ADDRESS_LIMIT, PASSWORD_LIMIT
from posting.moderation import log
from posting.moderation.store import count_open_reports
from posting.notifications.telling import MENTION_LIMIT
from posting.outbox.store import count_failed, count_waiting
from posting.posts.schemas import (
    FILES_PER_TEXT,
    IMAGES_PER_POST,
    MAX_EXPANDED,
    PostInput,
    PostsQuery,
)
from posting.site import schemas, store
from posting.site.models import ONLY
from posting.site.settings import CHOICES, TEXTS, read_settings
from posting.site.store import NoSuchCover, NoSuchLogo
from posting.web.endpoint import PUBLIC, SHARED, Blueprint, Endpoint, Reply
from posting.web.errors import InvalidInput, Message, input_error
from posting.web.etags import Condition, if_none_match
from posting.web.hosts import external_url
from posting.web.logs import render_metrics
from posting.web.schemas import MAX_PAGE_SIZE, Length

READING = "Posting-Reading"  # a header
SET_BY_OPERATOR = Message(
    "fixed", "The operator of this service has set this, so that it cannot be changed here."
)

site = Blueprint("site", __name__, description="The community and its limits")


@site.get("/site", access=PUBLIC, cache=SHARED, returns=schemas.Site(), headers=[READING])
def get_site() -> Reply:
    """Read the name of the community, its rules for sign-up and reading, and all limits.

    The header `Posting-Reading` says who may read, for proxies that cache.
    """
    config = current_app.config
    return describe_site(config), {READING: config["READING"]}


@site.patch(
    "/site",
    access=OWNER_SESSION_REQUIRED,
    limits=[EDIT_LIMIT],
    body=schemas.SiteInput(partial=True),
    conditional=True,
    returns=schemas.Site(),
)
def edit_site(body: dict[str, str | None], condition: Condition) -> Reply:
    """Change what the site is, and who may do what.

    It holds from the next request. The operator's own settings, which `fixed` lists, get 422.
    """
    row = lock_site()
    condition.require_body(describe_site(read_settings()))
    require_not_fixed(body)
    if changed := store.edit_site(row, body):
        log.record_act("edited", "site", ONLY, None, reason=", ".join(changed))
    return describe_site(read_settings())


def lock_site() -> Row:
    """Lock the row of the site. Raise 403 if the current user is not an owner any more."""
    row = store.lock_site()
    lock_as_owner()
    return row


def require_not_fixed(body: Iterable[str]) -> None:
    """Raise 422 if a body would change what the operator has set."""
    fixed = [name for name in body if name.upper() in current_app.config[FIXED]]
    if fixed:
        raise InvalidInput([input_error(SET_BY_OPERATOR, pointer=f"/{name}") for name in fixed])


def prepare_logo(form: dict[str, Any]) -> list[bytes]:
    """Decode the file of an upload, and make a logo of it, large and small."""
    with decoding():
        return [*codec.make_faces(form["file"]).values()]


@site.put(
    "/site/logo",
    access=OWNER_SESSION_REQUIRED,
    limits=[IMAGE_LIMIT],
    form=schemas.PictureUpload(),
    prepare=prepare_logo,
    returns=schemas.Site(),
    errors=[ImagesBusy, OwnImageInProgress],
)
def replace_logo(form: dict[str, Any], prepared: list[bytes]) -> Reply:
    """Set the logo of the site: the largest square in the middle of an image.

    It is stored without metadata, in 256 and 64 pixels.
    """
    return replace_picture("logo", prepared)


@site.delete("/site/logo", access=OWNER_SESSION_REQUIRED, status=204)
def delete_logo() -> Reply:
    """Delete the logo of the site. Always returns 204."""
    delete_picture("logo")
    return None


@site.get(
    "/site/logo/<nanoid:id>",
    access=PUBLIC,
    cache=SHARED,
    returns={"type": "string", "format": "binary"},
    media_type="image/webp",
    errors=[NoSuchLogo],
)
def get_logo(id: str) -> Reply:
    """Read the logo, of 256 pixels. It never changes, so it can be cached forever."""
    return send_picture("logo", id)


@site.get(
    "/site/logo/<nanoid:id>/64",
    access=PUBLIC,
    cache=SHARED,
    returns={"type": "string", "format": "binary"},
    media_type="image/webp",
    errors=[NoSuchLogo],
)
def get_small_logo(id: str) -> Reply:
    """Read the logo, of 64 pixels. It never changes, so it can be cached forever."""
    return send_picture("logo", id, is_small=True)


def prepare_cover(form: dict[str, Any]) -> list[bytes]:
    """Decode the file of an upload, and make a cover of it, large and small."""
    with decoding():
        return [*codec.make_covers(form["file"]).values()]


@site.put(
    "/site/cover",
    access=OWNER_SESSION_REQUIRED,
    limits=[IMAGE_LIMIT],
    form=schemas.PictureUpload(),
    prepare=prepare_cover,
    returns=schemas.Site(),
    errors=[ImagesBusy, OwnImageInProgress],
)
def replace_cover(form: dict[str, Any], prepared: list[bytes]) -> Reply:
    """Set the cover of the site: the middle of an image, three times as wide as high.

    It is stored without metadata, in widths of at most 1280 and 768 pixels.
    """
    return replace_picture("cover", prepared)


@site.delete("/site/cover", access=OWNER_SESSION_REQUIRED, status=204)
def delete_cover() -> Reply:
    """Delete the cover of the site. Always returns 204."""
    delete_picture("cover")
    return None


@site.get(
    "/site/cover/<nanoid:id>",
    access=PUBLIC,
    cache=SHARED,
    returns={"type": "string", "format": "binary"},
    media_type="image/webp",
    errors=[NoSuchCover],
)
def get_cover(id: str) -> Reply:
    """Read the cover, at most 1280 pixels wide. It never changes, so it can be cached forever."""
    return send_picture("cover", id)


@site.get(
    "/site/cover/<nanoid:id>/768",
    access=PUBLIC,
    cache=SHARED,
    returns={"type": "string", "format": "binary"},
    media_type="image/webp",
    errors=[NoSuchCover],
)
def get_small_cover(id: str) -> Reply:
    """Read the cover, at most 768 pixels wide. It never changes, so it can be cached forever."""
    return send_picture("cover", id, is_small=True)


def replace_picture(name: str, files: Sequence[bytes]) -> dict[str, Any]:
    """Set the logo or the cover from its large and small file, and return what the site is."""
    store.replace_picture(lock_site(), name, files)
    log.record_act("edited", "site", ONLY, None, reason=name)
    return describe_site(read_settings())


def delete_picture(name: str) -> None:
    """Delete the logo or the cover if there is one."""
    row = lock_site()
    if row._mapping[f"{name}_id"]:
        store.replace_picture(row, name, None)
        log.record_act("edited", "site", ONLY, None, reason=name)


def send_picture(name: str, id: str, *, is_small: bool = False) -> Response:
    """Return the response with the logo or the cover, which every page may show."""
    file = store.get_picture(name, id, is_small=is_small, without_data=if_none_match(id))
    headers = headers_of_file(id, is_public=True, shown_on="cross-origin")
    return Response(file, headers=headers, content_type="image/webp")


def describe_site(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return what `GET /site` responds with these settings of owners."""
    config = current_app.config
    logo, cover = settings["LOGO_ID"], settings["COVER_ID"]
    return {
        "name": settings["NAME"],
        "description": settings["DESCRIPTION"],
        "version": VERSION,
        "signup": settings["SIGNUP"],
        "invitations": settings["INVITATIONS"],
        "reading": settings["READING"],
        "moderation_log": settings["MODERATION_LOG"],
        "language": known(settings["LANGUAGE"]),
        "about": settings["ABOUT"],
        "rules": settings["RULES"],
        "accent": settings["ACCENT"],
        "logo_url": logo and external_url("site.get_logo", id=logo),
        "cover_url": cover and external_url("site.get_cover", id=cover),
        "fixed": [name for name in (*TEXTS, *CHOICES) if name.upper() in config[FIXED]],
        "mail": sends_mails(config),
        "texts": {
            "username": {"min": MIN_USERNAME_LENGTH, "max": MAX_USERNAME_LENGTH},
            "password": {"min": config["PASSWORD_MIN"], "max": MAX_PASSWORD_LENGTH},
            "display_name": length_of(Profile(), "display_name"),
            "bio": length_of(Profile(), "bio"),
            "application": length_of(SignUp(), "application"),
            "title": length_of(PostInput(), "title"),
            "content": length_of(PostInput(), "content"),
            "comment": length_of(CommentInput(), "content"),
            "alt": length_of(ImageUpload(), "alt"),
        },
        "images": {
            "per_post": IMAGES_PER_POST,
            "per_comment": IMAGES_PER_COMMENT,
            "unattached": MAX_UNATTACHED,
            "max_bytes": config["MAX_IMAGE_BYTES"],
            "max_member_bytes": config["MAX_MEMBER_BYTES"],
            "media_types": [*MEDIA_TYPES],
        },
        "files": {
            "per_text": FILES_PER_TEXT,
            "unattached": MAX_UNATTACHED,
            "max_bytes": config["MAX_FILE_BYTES"],
            "extensions": [*FORMATS],
        },
        "users": {"open_invitations": OPEN_PER_USER, "tokens": TOKENS_PER_USER},
        "page_sizes": {
            "posts": PostsQuery().fields["limit"].load_default,
            "comments": CommentsQuery().fields["limit"].load_default,
            "max": MAX_PAGE_SIZE,
            "max_expanded": MAX_EXPANDED,
        },
        "max_json_bytes": config["MAX_JSON_BYTES"],
        "rate_limits": [*rate_limits()],
    }


class Gauges(Collector):
    """Numbers that are counted when Prometheus asks. All workers count the same rows."""

    def collect(self) -> Iterator[GaugeMetricFamily]:
        with suppress(sa.exc.SQLAlchemyError):  # the other metrics say why they are missing
            reports, applications = count_open_reports(), count_applications()
            yield GaugeMetricFamily("posting_open_reports", "Reports that are open", reports)
            name, text = "posting_pending_applications", "Accounts to approve"
            yield GaugeMetricFamily(name, text, applications)
            name, text = ("posting_outbox_waiting", "Mails and other things that are to be sent")
            yield GaugeMetricFamily(name, text, count_waiting())
            name, text = ("posting_outbox_failed", "Mails and other things that were given up")
            yield GaugeMetricFamily(name, text, count_failed())
            name, text = "posting_largest_member_bytes", "Images and files of who has the most"
            yield GaugeMetricFamily(name, text, largest_total())


@site.get("/metrics", access=PUBLIC, any_query=True, documented=False)
def get_metrics() -> Reply:
    """Return metrics for Prometheus, if they are enabled."""
    if not current_app.config["METRICS"]:
        raise NotFound
    registry = prometheus_client.CollectorRegistry(auto_describe=False)
    registry.register(Gauges())
    metrics = render_metrics() + prometheus_client.generate_latest(registry)
    headers = {"Cache-Control": "no-store"}
    return Response(metrics, headers=headers, content_type=prometheus_client.CONTENT_TYPE_LATEST)


def length_of(schema: Schema, name: str) -> dict[str, int | None]:
    """Return the numbers of characters that a field accepts."""
    [length] = [each for each in schema.fields[name].validators if isinstance(each, Length)]
    return {"min": length.min or 0, "max": length.max}


def rate_limits() -> Iterator[dict[str, Any]]:
    """Yield the limits that endpoints declare, and those that views count, unless they are off."""
    if not current_app.config["RATE_LIMITS"]:
        return
    views = current_app.view_functions.values()
    limits = {limit for view in views if isinstance(view, Endpoint) for limit in view.limits}
    limits |= {ACCOUNT_USE_LIMIT, ADDRESS_USE_LIMIT, MENTION_LIMIT}
    if sends_mails(current_app.config):
        limits |= {CONFIRMATION_ADDRESS_LIMIT, PASSWORD_LIMIT, PASSWORD_ADDRESS_LIMIT}
    for limit in sorted(limits, key=lambda limit: limit.name):
        if rate := limit.rate(current_app.config):
            seconds = round(rate.window.total_seconds())
            yield {"name": limit.name, "requests": rate.amount, "seconds": seconds}
