"""A machine and services for the tests of `flask doctor`."""

import os
import shutil
from collections import namedtuple

import pytest

from posting.ops.doctor import installation
from tests.helpers.doctor import GOOD, MIB

Usage = namedtuple("Usage", "total used free")


@pytest.fixture(autouse=True)
def machine(monkeypatch, tmp_path):
    """A machine with two cores, without nginx, new, and with space on every disk."""

    def set_space(free, total=10_000 * MIB):
        usage = Usage(total, total - free, free)
        monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)

    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    monkeypatch.setattr(installation, "NGINX", tmp_path / "nginx")
    folder = tmp_path.parent / f"{tmp_path.name}-backups"
    folder.mkdir()
    monkeypatch.setattr(installation, "BACKUPS", folder)
    set_space(5000 * MIB)
    return set_space


@pytest.fixture
def healthy(make_app, moderator):
    """A service on the database of the tests, with a moderator."""
    return make_app(**GOOD)


@pytest.fixture
def own(make_app, tmp_path):
    """A healthy service with a database file of its own, and that file."""
    path = tmp_path / "posting.db"
    app = make_app(DATABASE_URL=f"sqlite:///{path}", **GOOD)
    path.chmod(0o600)
    return app, path
