"""The settings that owners choose, in the `app.config` of each process.

A setting of the operator wins: no owner changes what the environment or `create_app` sets. Each
request asks for the version of the database. After a commit, it also reads the row of the site. So
a choice holds from the next request, in all processes.
"""

import os
from collections.abc import Callable, Iterable
from itertools import count
from pathlib import Path
from threading import Lock
from typing import Any

import sqlalchemy as sa
from flask import Flask, current_app
from flask.sansio.app import App

from posting.config import ABOUT, FIXED
from posting.db.base import db
from posting.db.commits import CommitWatch, Version
from posting.db.engine import is_in_memory, on_close
from posting.db.transactions import fetch_one
from posting.site.models import ONLY, Site

EXTENSION = "posting.site"
VERSION = "posting.version"  # in the environ: that of the database as the request began, or None
PATIENCE = 0.1  # seconds to wait while another thread asks the database for its version
# The columns that owners choose. The setting of each has its name in capitals.
TEXTS = ("name", "description", "about", "rules", "accent")
CHOICES = ("signup", "invitations", "reading", "moderation_log", "language")
PICTURE_IDS = ("logo_id", "cover_id")
_SITE = sa.select(*(getattr(Site, name) for name in (*TEXTS, *CHOICES, *PICTURE_IDS)))
_SITE = _SITE.where(Site.id == ONLY)

Environ = dict[str, Any]


class SiteSettings:
    """WSGI middleware that reads the settings of the site again after each commit."""

    def __init__(self, app: Flask, watch: CommitWatch | None) -> None:
        self._app, self._flask, self._watch = app.wsgi_app, app, watch
        self._asking, self._reading, self._lock = Lock(), Lock(), Lock()
        self._version: Version | None = None
        self._numbers, self._applied = count(1), 0  # of reads of the row, in their order
        self._chosen: dict[str, Any] = {}
        names = [name.upper() for name in (*TEXTS, *CHOICES, *PICTURE_IDS)]
        self.defaults = {name: app.config.setdefault(name, None) for name in names}

    def __call__(self, environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        version = self._ask()
        environ[VERSION] = version if self._is_up_to_date(version) else None
        return self._app(environ, start_response)

    def _ask(self) -> Version | None:
        """Return the version of the database, or None if the database does not answer at once."""
        if self._watch is None or not self._asking.acquire(timeout=PATIENCE):
            return None
        try:
            return self._watch.version()
        finally:
            self._asking.release()

    def _is_up_to_date(self, version: Version | None) -> bool:
        """Return whether the settings are those of a version. Read them again if this is not known.

        Without a version, one thread reads at a time, and the others continue with what is known.
        """
        if version is not None and version == self._version:
            return True
        if version is None and not self._reading.acquire(timeout=PATIENCE):
            return False
        try:
            self.refresh(version)
        except sa.exc.SQLAlchemyError:  # the app responds to it
            self._close_if_unknown()
            return False
        finally:
            if version is None:
                self._reading.release()
        return True

    def refresh(
        self, version: Version | None = None, connection: sa.Connection | None = None
    ) -> None:
        """Read what owners have chosen. `version` is that of the database, if it is known."""
        number = next(self._numbers)
        with self._flask.app_context():
            chosen = find_choices(connection)
        with self._lock:
            if number > self._applied:  # else another thread has read later
                self._apply(chosen)
                self._applied, self._version = number, version

    def _close_if_unknown(self) -> None:
        """Let only members read until it is known what owners have chosen."""
        with self._lock:
            if not self._applied and "READING" not in self._flask.config[FIXED]:
                self._apply({"READING": "members"})

    def _apply(self, chosen: dict[str, Any]) -> None:
        """Change the settings whose choices have changed."""
        for name in self._chosen.keys() | chosen.keys():
            value = chosen.get(name, self.defaults[name])
            if self._chosen.get(name, self.defaults[name]) != value:
                self._flask.config[name] = value
        self._chosen = chosen


def find_choices(connection: sa.Connection | None = None) -> dict[str, Any]:
    """Return what owners have chosen, by the names of the settings, without what is fixed."""
    row = connection.execute(_SITE).one_or_none() if connection else fetch_one(_SITE)
    if row is None:
        return {}
    fixed = current_app.config[FIXED]
    chosen = {name.upper(): value for name, value in row._mapping.items() if value is not None}
    return {name: value for name, value in chosen.items() if name not in fixed}


def read_settings() -> dict[str, Any]:
    """Return the settings that owners can choose, as the transaction sees them."""
    settings: SiteSettings = current_app.extensions[EXTENSION]
    return settings.defaults | find_choices()


def refresh(connection: sa.Connection | None = None) -> None:
    """Read the settings of the site again, such as in a command, perhaps on a connection."""
    settings: SiteSettings = current_app.extensions[EXTENSION]
    settings.refresh(connection=connection)


def find_own_file(app: App, name: str) -> Path | None:
    """Return a file that the operator has put into the instance folder, if it can be read."""
    file = Path(app.instance_path) / name
    if not file.is_file():
        return None
    if not os.access(file, os.R_OK):
        app.logger.error("%s cannot be read by the user of the service.", file)
        return None
    return file


def init_app(app: Flask) -> None:
    """Add the middleware. It asks a database in memory for no version, and reads it each time."""
    with app.app_context():
        watch = None if is_in_memory() else CommitWatch(db.engine)
    if watch:
        on_close(app, watch.close)
    if find_own_file(app, ABOUT):
        app.config[FIXED] |= {"ABOUT"}
    settings = app.extensions[EXTENSION] = SiteSettings(app, watch)
    app.wsgi_app = settings  # type: ignore[method-assign]  # as Flask documents
