"""The application factory."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from flask import Flask, Response

from posting import cli, config, logs
from posting.accounts import current_user, deletion
from posting.accounts.views.auth import auth
from posting.accounts.views.tokens import tokens
from posting.accounts.views.users import users
from posting.comments import threads
from posting.comments.views import comments
from posting.db import engine, migrations, transactions
from posting.images.views import images, list_images_of_posts
from posting.pages.feeds import feeds
from posting.pages.views import pages
from posting.posts import search, store
from posting.posts import views as post_views
from posting.posts.views import posts
from posting.web import access_log, csrf, errors, etags, headers
from posting.web.endpoint import IdConverter
from posting.web.middleware import body_drain, cors, proxy, response_cache
from posting.web.system import root, system

BLUEPRINTS = (posts, comments, images, users, auth, tokens, system)
BEFORE_REQUEST = (
    access_log.start_timer,  # first, to measure all of the request
    headers.assign_request_id,  # before anything that can fail, since errors name the id
    transactions.end_transaction,  # of an earlier request, when a test keeps its app context
    proxy.refuse_other_hosts,  # before checks that compare the request with its host
    csrf.refuse_cross_site_writes,
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
    """Flask with another default for the instance folder."""

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
    for blueprint in (*BLUEPRINTS, *((pages, feeds) if app.config["PAGES"] == "on" else (root,))):
        app.register_blueprint(blueprint)

    app.before_request(before_request)
    app.after_request(after_request)
    # Each middleware wraps those before it.
    response_cache.init_app(app)
    cors.init_app(app)  # around the cache, whose responses are for every origin
    proxy.init_app(app)  # around the cache, whose keys contain the client's host and scheme
    body_drain.init_app(app)  # around all others, since it must see every response

    post_views.init_app(app, list_images_of_posts)
    deletion.init_app(app, [threads.CONTENT, store.CONTENT])  # in the order of their locks
    migrations.init_app(
        app,
        migrations.Hooks(unmanaged_tables=("post_search",), after_upgrade=(search.fill_if_empty,)),
    )
    return app
