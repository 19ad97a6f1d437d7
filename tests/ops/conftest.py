"""Fixtures for the tests of archives and backups."""

import shutil

import pytest

from posting.db.engine import sqlite_file
from tests.helpers.archives import example_archive


@pytest.fixture
def lines():
    """The lines of the example archive, for a test to change."""
    return example_archive()


@pytest.fixture
def database(app):
    """The database file of the service."""
    with app.app_context():
        return sqlite_file()


@pytest.fixture
def folder(tmp_path):
    """A folder for backups."""
    path = tmp_path / "backups"
    path.mkdir()
    return path


@pytest.fixture
def copy(flask, alice, post, folder):
    """A backup of a database with a post and an image."""
    alice.add_image(post)
    file = folder / "copy.db"
    assert flask("backup", str(file))[0] == 0
    return file


@pytest.fixture
def elsewhere(copy, make_app, tmp_path):
    """Another service with the same rows, in a folder of its own."""
    path = tmp_path / "elsewhere" / "posting.db"
    path.parent.mkdir()
    shutil.copy(copy, path)
    app = make_app(DATABASE_URL=f"sqlite:///{path}")
    app.file = path
    return app
