"""The application factory."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from flask import Flask, Response

from posting import cli, config, logs, search
from posting.accounts import current_user, deletion, facts, invited, names
from posting.accounts.queries import count_applications
from posting.accounts.views.applications import applications
from posting.accounts.views.auth import auth
from posting.accounts.views.recovery import recovery
from posting.accounts.views.tokens import tokens
from posting.accounts.views.users import users
from posting.changes.listeners import LISTENERS as CHANGE_LISTENERS
from posting.changes.views import changes
from posting.comments import search as comment_search
from posting.comments import store as comment_store
from posting.comments.queries import count_comments_by
from posting.comments.views import comments
from posting.db import engine, events, migrations, transactions
from posting.images.queries import count_images_by
from posting.images.views import images, list_images_of_posts
from posting.invitations.queries import find_inviter_of, list_invited_by
from posting.invitations.store import record_use, take_use
from posting.invitations.views import invitations
from posting.moderation.listeners import LISTENERS as MODERATION_LISTENERS
from posting.moderation.queries import count_open_reports, count_reports_on
from posting.moderation.views.acts import moderation
from posting.moderation.views.records import records
from posting.moderation.views.reports import reports
from posting.notifications import deletion as notification_deletion
from posting.notifications.listeners import LISTENERS as NOTIFICATION_LISTENERS
from posting.notifications.views import notifications
from posting.pages.feeds import feeds
from posting.pages.views import pages
from posting.posts import search as post_search
from posting.posts import store as post_store
from posting.posts import views as post_views
from posting.posts.queries import count_posts_by
from posting.posts.views import posts
from posting.site.views import site
from posting.web import access_log, csrf, errors, etags, gauges, headers
from posting.web.endpoint import IdConverter
from posting.web.gauges import Gauge
from posting.web.middleware import body_drain, cors, proxy, response_cache
from posting.web.system import root, system

BLUEPRINTS = (
    posts,
    comments,
    images,
    users,
    auth,
    applications,
    recovery,
    tokens,
    invitations,
    notifications,
    changes,
    reports,
    moderation,
    records,
    site,
    system,
)
INDEXES = (post_search.INDEX, comment_search.INDEX, names.INDEX)
BEFORE_REQUEST = (
    access_log.start_timer,  # first, to measure all of the request
    headers.assign_request_id,  # before anything that can fail, since errors name the id
    headers.drop_invalid_dates,
    transactions.end_transaction,  # of an earlier request, when a test keeps its app context
    proxy.refuse_other_hosts,  # before checks that compare the request with its host
    csrf.refuse_cross_site_writes,
    current_user.refuse_visitors_without_endpoint,  # last: 401 comes after the errors of the others
)
AFTER_REQUEST = (
    errors.catch_failed_rollback,  # before the others, since it may replace the response
    headers.add_headers,  # before those below: the ETag is made from the whole response
    response_cache.store,  # with all headers, but before a 304 loses its body
    etags.make_conditional,
    access_log.record,  # last: it logs the status that is sent
)


def before_request() -> None:
    for check in BEFORE_REQUEST:
        check()


def after_request(response: Response) -> Response:
    for finish in AFTER_REQUEST:
        response = finish(response)
    return response


class Service(Flask):
    """Flask with another default for the instance folder, and without paths in its log."""

    def log_exception(self, exc_info: Any) -> None:
        """Log an error with the route of the request. The path may contain a token."""
        self.logger.error("Exception on %s", access_log.route(), exc_info=exc_info)

    def auto_find_instance_path(self) -> str:
        """Return `instance/` beside the code of a checkout, or else in the working directory.

        Flask's own default for an installed package is inside its virtual environment.
        """
        path = super().auto_find_instance_path()
        return path if Path(path).name == "instance" else str(Path.cwd() / "instance")


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
    headers.init_app(app)
    errors.init_app(app)
    current_user.init_app(app)
    cli.init_app(app)
    for blueprint in (*BLUEPRINTS, *((pages, feeds) if app.config["PAGES"] else (root,))):
        app.register_blueprint(blueprint)

    app.before_request(before_request)
    app.after_request(after_request)
    # Each middleware wraps those before it.
    response_cache.init_app(app)
    cors.init_app(app)  # around the cache, whose responses are for every origin
    proxy.init_app(app)  # around the cache, whose keys contain the client's host and scheme
    body_drain.init_app(app)  # around all others, since it must see every response

    post_views.init_app(app, list_images_of_posts)
    invited.init_app(app, invited.Invitations(take_use, record_use))
    facts.init_app(
        app,
        {
            "posts": count_posts_by,
            "comments": count_comments_by,
            "images": count_images_by,
            "invited_by": find_inviter_of,
            "invited": list_invited_by,
            "open_reports": partial(count_reports_on, are_open=True),
            "closed_reports": partial(count_reports_on, are_open=False),
        },
    )
    gauges.init_app(
        app,
        {
            "posting_open_reports": Gauge("Reports that are open", count_open_reports),
            "posting_pending_applications": Gauge("Accounts to approve", count_applications),
        },
    )
    listeners = (*NOTIFICATION_LISTENERS, *CHANGE_LISTENERS, *MODERATION_LISTENERS)
    events.init_app(app, listeners)
    # In the order of their locks.
    deletion.init_app(
        app,
        [
            comment_store.CONTENT,
            post_store.CONTENT,
            notification_deletion.CONTENT,
            deletion.STORED_RESPONSES,
        ],
    )
    search.init_app(app, INDEXES)
    migrations.init_app(app, unmanaged_tables=tuple(index.table for index in INDEXES))
    return app
