"""A community that is moved as a whole, in little memory."""

import os
import re
import subprocess
import sys
import time

import pytest
import sqlalchemy as sa

from posting import create_app
from posting.db.engine import db
from posting.db.models import Image, ImageData, Post
from posting.db.types import new_id, now
from tests.conftest import empty_database, upgrade
from tests.live.clients import sized
from tests.live.conftest import ROOT

POSTS = sized(10_000, 100_000)
LARGE_IMAGES = 20
MOST_MEMORY = 200  # MiB; a third of it is Python with what is imported
# The peak that the parent is told would count what the parent itself held when it forked.
MEASURED = """
import atexit
from pathlib import Path
from flask.cli import main
atexit.register(lambda: print(Path("/proc/self/status").read_text()))
main()
"""


def flask(url, *arguments):
    """Run a `flask` command; return how many seconds it took, and the most MiB that it held."""
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


def add_large_images(url):
    """Add images of 5 MiB, together more than the memory that there may be."""
    app = create_app({"DATABASE_URL": url})
    with app.app_context():
        post_id = db.session.scalar(sa.select(Post.id).limit(1))
        for _ in range(LARGE_IMAGES):
            data = os.urandom(2**10) * 5 * 2**10
            shape = {"media_type": "image/png", "width": 1, "height": 1, "size": len(data)}
            image = Image(id=new_id(), post_id=post_id, created_at=now(), **shape)
            db.session.add_all([image, ImageData(image_id=image.id, data=data)])
            db.session.commit()
            db.session.expunge_all()
        db.session.remove()
        db.engine.dispose()


@pytest.fixture
def other_url(tmp_path):
    """The URL of a second database, empty but for its tables."""
    folder = tmp_path / "other"
    folder.mkdir()
    with empty_database(folder) as url:
        upgrade(url)
        yield url


def test_all_of_it_moves_in_little_memory(fresh_url, other_url, tmp_path, figure):
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
    assert max(export[1], import_[1]) < MOST_MEMORY
