"""The site, for apps that work with any."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import prometheus_client
import sqlalchemy as sa
from flask import Response, current_app
from marshmallow import Schema
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector
from werkzeug.exceptions import NotFound

from posting.accounts.fields import MAX_PASSWORD_LENGTH, MAX_USERNAME_LENGTH, MIN_USERNAME_LENGTH
from posting.accounts.models import TOKENS_PER_USER
from posting.accounts.passwords import ACCOUNT_USE_LIMIT, ADDRESS_USE_LIMIT
from posting.accounts.schemas import Profile, SignUp
from posting.accounts.store import count_applications
from posting.attachments import MAX_UNATTACHED, largest_total
from posting.comments.schemas import IMAGES_PER_COMMENT, CommentInput, CommentsQuery
from posting.config import VERSION
from posting.files.formats import FORMATS
from posting.images.schemas import MEDIA_TYPES, ImageUpload
from posting.invitations.models import OPEN_PER_USER
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
from posting.site import schemas
from posting.web.endpoint import PUBLIC, SHARED, Blueprint, Endpoint, Reply
from posting.web.logs import render_metrics
from posting.web.schemas import MAX_PAGE_SIZE, Length

site = Blueprint("site", __name__, description="The community and its limits")


@site.get("/site", access=PUBLIC, cache=SHARED, returns=schemas.Site())
def get_site() -> Reply:
    """Read the name of the community, its rules for sign-up and reading, and all limits."""
    config = current_app.config
    return {
        "name": config["NAME"],
        "description": config["DESCRIPTION"],
        "version": VERSION,
        "signup": config["SIGNUP"],
        "invitations": config["INVITATIONS"],
        "reading": config["READING"],
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
            name, text = "posting_outbox_waiting", "Mails and the like that are to be sent"
            yield GaugeMetricFamily(name, text, count_waiting())
            name, text = "posting_outbox_failed", "Mails and the like that were given up"
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
    for limit in sorted(limits, key=lambda limit: limit.name):
        if rate := limit.rate(current_app.config):
            seconds = round(rate.window.total_seconds())
            yield {"name": limit.name, "requests": rate.amount, "seconds": seconds}
