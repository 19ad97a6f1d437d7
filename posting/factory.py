"""The application factory."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import orjson
from flask import Flask, Response, current_app
from flask.json.provider import DefaultJSONProvider

from posting import cli, config, logs
from posting.auth import sessions
from posting.blueprints.auth import auth
from posting.blueprints.comments import comments
from posting.blueprints.images import images
from posting.blueprints.posts import posts
from posting.blueprints.system import system
from posting.blueprints.users import users
from posting.db import engine, migrations
from posting.http import (
    access_log,
    body_drain,
    csrf,
    errors,
    etags,
    headers,
    openapi,
    proxy,
    response_cache,
)
from posting.http.endpoint import IdConverter


class JsonProvider(DefaultJSONProvider):
    """Answers in compact JSON with its text as it is."""

    ensure_ascii = False
    sort_keys = False

    def response(self, *args: Any, **kwargs: Any) -> Response:
        body = orjson.dumps(
            self._prepare_response_obj(args, kwargs), option=orjson.OPT_PASSTHROUGH_DATETIME
        )
        return current_app.response_class(body + b"\n", mimetype=self.mimetype)


class Service(Flask):
    """Flask, whose views and hooks are all synchronous here, so that none is looked at for it."""

    def ensure_sync(self, func: Callable[..., Any]) -> Callable[..., Any]:
        return func

    def auto_find_instance_path(self) -> str:
        """Return `instance/` beside the code of a checkout, else in the working directory.

        Flask's own place for an installed package is inside its virtual environment.
        """
        path = super().auto_find_instance_path()
        return path if Path(path).name == "instance" else str(Path.cwd() / "instance")


def create_app(given: Mapping[str, Any] | None = None) -> Flask:
    """Return the service as a WSGI app.

    `given` holds settings without their prefix, such as `{"DATABASE_URL": "sqlite://"}`, and
    configuration keys of Flask, such as `{"TESTING": True}`; it wins over the environment.

    Errors: StartError says what is wrong and what to do next.
    """
    given = given or {}
    app = Service("posting", instance_path=config.instance_path(given))
    app.json = JsonProvider(app)
    app.url_map.merge_slashes = False
    app.url_map.converters["nanoid"] = IdConverter

    config.load(app, given)
    logs.init_app(app)
    engine.init_app(app)
    access_log.init_app(app)
    etags.init_app(app)
    response_cache.init_app(app)
    headers.init_app(app)
    errors.init_app(app)
    proxy.init_app(app)
    csrf.init_app(app)
    sessions.init_app(app)
    cli.init_app(app)

    api = openapi.Api(app, IdConverter, sessions.cookie_name(app))
    for blueprint in (posts, comments, images, users, auth, system):
        api.register_blueprint(blueprint)

    body_drain.add_middleware(app)
    migrations.init_app(app)
    return app
