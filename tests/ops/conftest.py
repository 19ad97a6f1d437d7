"""Fixtures for the tests of archives and backups."""

import os
import shutil
from pathlib import Path

import pytest

from posting.db.engine import sqlite_file
from posting.db.migrations import revisions, upgrades
from tests.helpers.archives import example_archive
from tests.helpers.backups import SERVICE

NEXT_MIGRATION = """
import sqlalchemy as sa
from alembic import op

revision, down_revision = "{next}", "{head}"


def upgrade():
    op.add_column("posts", sa.Column("summary", sa.String(200)))
    op.execute("UPDATE posts SET summary = 'About ' || title")


def downgrade():
    op.drop_column("posts", "summary")
"""


@pytest.fixture
def next_revision(tmp_path, monkeypatch):
    """The revision of one more migration, which adds a column to posts and fills it."""
    head = revisions.head_revision()
    revision = f"{int(head) + 1:04}"
    folder = tmp_path / "migrations"
    shutil.copytree(revisions.FOLDER, folder, ignore=shutil.ignore_patterns("__pycache__"))
    file = folder / "versions" / f"{revision}_next.py"
    file.write_text(NEXT_MIGRATION.format(head=head, next=revision))
    for module in (revisions, upgrades):
        monkeypatch.setattr(module, "FOLDER", folder)
    revisions.known_revisions.cache_clear()
    yield revision
    revisions.known_revisions.cache_clear()


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


@pytest.fixture
def owners(monkeypatch):
    """The owners that a command gives to files, by their names.

    The command runs as root, and the files of the service that exist belong to `SERVICE`.
    """
    found, names, stat = {}, ("posting.db", "about.md", "custom.css"), Path.stat

    def fake_stat(path, **options):
        result = stat(path, **options)
        if not path.name.startswith(names):
            return result
        return os.stat_result([*result[:4], *SERVICE, *result[6:]])

    def fake_chown(file, *owner):
        found[Path(file).name[1:].rpartition(".")[0]] = owner

    monkeypatch.setattr(Path, "stat", fake_stat)
    monkeypatch.setattr(os, "chown", fake_chown)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    return found
