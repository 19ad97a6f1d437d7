"""The application factory."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from flask import Flask

from posting import cli, config, languages
from posting.accounts import current_user
from posting.accounts.views.applications import applications
from posting.accounts.views.auth import auth
from posting.accounts.views.export import own_data
from posting.accounts.views.recovery import recovery
from posting.accounts.views.tokens import tokens
from posting.accounts.views.users import users
from posting.avatars.views import avatars
from posting.changes.views import changes
from posting.comments.views import comments
from posting.db import engine, migrations, transactions
from posting.files.views import files
from posting.images.views import images
from posting.indexes import INDEXES
from posting.invitations.views import invitations
from posting.mail.channel import MailChannel
from posting.mail.views import mails
from posting.moderation.views.acts import moderation
from posting.moderation.views.records import records
from posting.moderation.views.reports import reports
from posting.notifications.views import notifications
from posting.ops.views import keeping
from posting.outbox import delivery
from posting.pages.feeds import feeds
from posting.pages.views import pages
from posting.posts.views import posts
from posting.push.channel import PushChannel
from posting.push.views import push
from posting.reactions.views import reactions
from posting.site import settings as site_settings
from posting.site.views import site
from posting.topics.views import topics
from posting.web import errors, etags, hosts, logs, request_body, response_cache, security
from posting.web.endpoint import IdConverter
from posting.web.system import root, system
from posting.webhooks.channel import WebhookChannel
from posting.webhooks.views import webhooks

BLUEPRINTS = (
    posts,
    topics,
    comments,
    reactions,
    images,
    files,
    avatars,
    users,
    own_data,
    auth,
    applications,
    recovery,
    tokens,
    invitations,
    notifications,
    mails,
    push,
    webhooks,
    changes,
    reports,
    moderation,
    records,
    site,
    keeping,
    system,
)
BEFORE_REQUEST = (
    logs.start_request,  # first, to measure all of the request, and since errors name its id
    etags.drop_invalid_dates,
    transactions.roll_back_session,  # of an earlier request, when a test keeps its app context
    hosts.refuse_other_hosts,  # before checks that compare the request with its host
    security.refuse_cross_site_writes,
)
AFTER_REQUEST = (
    security.add_headers,  # first: the ETag is made from the whole response
    response_cache.store_shared,  # with all headers, but before a 304 loses its body
    etags.make_conditional,
    logs.log_request,  # last: it logs the status that is sent
)


class Service(Flask):
    """Flask with another default for the instance folder, and without paths in its log."""

    def log_exception(self, exc_info: Any) -> None:
        """Log an error with the route of the request. The path may contain a token."""
        self.logger.error("Exception on %s", logs.route(), exc_info=exc_info)

    def auto_find_instance_path(self) -> str:
        """Return `instance/` beside the code of a checkout, and otherwise in the working directory.

        Flask's own default for an installed package is inside its virtual environment.
        """
        path = super().auto_find_instance_path()
        return path if Path(path).name == "instance" else str(Path.cwd() / "instance")


def make_channels(app: Flask) -> list[delivery.Channel]:
    """Return the ways to send something that the settings allow."""
    channels: list[delivery.Channel] = [PushChannel()]
    if config.sends_mails(app.config):
        channels.append(MailChannel(app))
    if app.config["WEBHOOKS"] != "off":
        channels.append(WebhookChannel())
    return channels


def create_app(overrides: Mapping[str, Any] | None = None) -> Flask:
    """Return the service as a WSGI app.

    `overrides` contains settings without their prefix, such as `{"DATABASE_URL": "sqlite://"}`, and
    configuration keys of Flask, such as `{"TESTING": True}`. They win over the environment.

    Raise StartError, which says what is wrong and what to do next.
    """
    overrides = overrides or {}
    app = Service("posting", instance_path=config.instance_path(overrides), static_folder=None)
    app.url_map.merge_slashes = False
    app.url_map.converters["nanoid"] = IdConverter

    config.load(app, overrides)
    logs.init_app(app)
    engine.init_app(app)
    transactions.init_app(app)
    errors.init_app(app)
    current_user.init_app(app)
    cli.init_app(app)
    languages.init_app(app)
    for blueprint in (*BLUEPRINTS, *((pages, feeds) if app.config["PAGES"] else (root,))):
        app.register_blueprint(blueprint)

    for check in BEFORE_REQUEST:
        app.before_request(check)
    app.before_request(current_user.refuse_visitors_without_endpoint)  # after other errors
    for finish in reversed(AFTER_REQUEST):  # Flask calls the last one first
        app.after_request(finish)
    # Each middleware wraps those before it.
    response_cache.init_app(app)
    security.init_app(app)  # around the cache, whose responses are for every origin
    site_settings.init_app(app)  # around both, which depend on who may read
    hosts.init_app(app)  # around the cache, whose keys contain the client's host and scheme
    request_body.init_app(app)  # around all others, since it must see every response

    delivery.init_app(app, make_channels(app))
    migrations.init_app(app, unmanaged_tables=tuple(index.table for index in INDEXES))
    return app
