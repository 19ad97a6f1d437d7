"""`flask export` and `flask import` of a large database, in little memory."""

import os
import re
import subprocess
import sys
import time

import pytest
import sqlalchemy as sa

from posting import attachments, create_app
from posting.db.base import db
from posting.db.engine import close_connections
from posting.db.transactions import unit_of_work
from posting.db.types import new_id, now
from posting.images.models import Image, ImageData
from posting.posts.models import Post
from tests.conftest import new_database
from tests.live.clients import scaled
from tests.live.conftest import ROOT

POSTS = scaled(10_000, 100_000)
LARGE_IMAGES = 20
MAX_MEMORY = 200  # MiB; a third of it is Python with its imports
# Measured in the child: the peak that wait() reports includes the memory of the forking parent.
MEASURED = """
import atexit
from pathlib import Path
from flask.cli import main
atexit.register(lambda: print(Path("/proc/self/status").read_text()))
main()
"""


def flask(url, *arguments):
    """Run a `flask` command; return its duration in seconds and its peak memory in MiB."""
    started = time.perf_counter()
    result = subprocess.run(
        [sys.executable, "-c", MEASURED, *map(str, arguments)],
        cwd=ROOT,
        env=os.environ | {"POSTING_DATABASE_URL": url},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    [peak] = re.findall(r"^VmHWM:\s+(\d+) kB", result.stdout, re.MULTILINE)
    return time.perf_counter() - started, int(peak) // 1024


def add_large_images(url, number=LARGE_IMAGES):
    """Add images of 5 MiB to a post, too many to hold in memory at once."""
    app = create_app({"DATABASE_URL": url})
    with app.app_context():
        post_id = db.session.scalar(sa.select(Post.id).limit(1))
        for _ in range(number):
            data = os.urandom(5 * 2**20)  # which gzip cannot make smaller
            shape = {"media_type": "image/png", "width": 1, "height": 1, "size": len(data)}
            image = Image(id=new_id(), post_id=post_id, created_at=now(), **shape)
            db.session.add_all([image, ImageData(image_id=image.id, data=data)])
            db.session.commit()
            db.session.expunge_all()
        db.session.remove()
        with unit_of_work():
            attachments.count(Image, post_id)
        close_connections()


@pytest.fixture
def other_url(template_url, tmp_path):
    """The URL of a second database, with empty tables."""
    folder = tmp_path / "other"
    folder.mkdir()
    with new_database(folder, template_url) as url:
        yield url


def test_a_large_database_is_moved_in_little_memory(fresh_url, other_url, tmp_path, figure):
    sizes = {"--posts": POSTS, "--comments": POSTS, "--users": 1000, "--images": POSTS // 100}
    flask(fresh_url, "demo", *(part for option in sizes.items() for part in option))
    add_large_images(fresh_url)
    first, second = tmp_path / "1.jsonl.gz", tmp_path / "2.jsonl.gz"
    export = flask(fresh_url, "export", first)
    import_ = flask(other_url, "import", first)
    figure(
        f"{POSTS:,} posts, as many comments, {LARGE_IMAGES} images of 5 MiB: exported in "
        "{:.1f} s with {} MiB, imported in {:.1f} s with {} MiB".format(*export, *import_)
    )
    flask(other_url, "export", second)
    assert first.read_bytes() == second.read_bytes()
    assert max(export[1], import_[1]) < MAX_MEMORY
