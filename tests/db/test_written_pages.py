"""The number of pages that a write adds to the log of SQLite, which is most of its cost."""

import random
from contextlib import closing
from pathlib import Path

import nanoid
import pytest
from pysqlite3 import dbapi2 as sqlite

from posting.testbed import sign_in
from tests.conftest import PASSWORD, POSTGRES

pytestmark = pytest.mark.skipif(bool(POSTGRES), reason="SQLite only")

HEADER, FRAME = 32, 24 + 4096  # https://www.sqlite.org/fileformat2.html#walformat
TRIES = 9


@pytest.fixture
def count_pages(fresh_url):
    """Return a function that returns how many pages each of several requests writes."""
    file = Path(fresh_url.removeprefix("sqlite:///"))
    log = file.with_name(f"{file.name}-wal")

    def count_pages(send, status):
        counts = []
        for number in range(TRIES):
            with closing(sqlite.connect(file)) as connection:
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            assert send(number).status_code == status
            counts.append((log.stat().st_size - HEADER) / FRAME)
        return counts

    return count_pages


@pytest.fixture
def same_ids(monkeypatch):
    """Let each run use the same ids. They decide which pages of an index are written."""
    choices = random.Random(1).choices
    letters = nanoid.resources.alphabet
    monkeypatch.setattr(nanoid, "generate", lambda size: "".join(choices(letters, k=size)))


@pytest.fixture
def ada(same_ids, make_app, fresh_url):
    """A member with a post, comments and open windows, so that tables and indexes have pages."""
    ada = sign_in(make_app(DATABASE_URL=fresh_url, RATE_LIMITS="on"), "ada")
    ada.post_path = f"/posts/{ada.create_post('On engines')['id']}"
    for number in range(30):
        ada.create_post(f"Post {number}")
        ada.post(f"{ada.post_path}/comments", json={"content": str(number)})
    return ada


@pytest.mark.parametrize(
    ("write", "status", "expected"),
    # One page of each is of rate limits, and one of each but the sign-in is of changes.
    [("post", 201, 12), ("comment", 201, 15), ("edit", 200, 7), ("sign in", 200, 8)],
)
def test_a_write_adds_few_pages(ada, count_pages, write, status, expected):
    text = "They weave algebra as a loom weaves cloth."
    credentials = {"username": "ada", "password": PASSWORD}
    send = {
        "post": lambda n: ada.post("/posts", json={"title": f"Loom {n}", "content": text}),
        "comment": lambda _: ada.post(f"{ada.post_path}/comments", json={"content": text}),
        "edit": lambda n: ada.patch(ada.post_path, json={"content": f"{text} {n}"}),
        "sign in": lambda _: ada.copy().post("/signin", json=credentials),
    }
    assert min(count_pages(send[write], status)) == expected  # others also fill up a page


def test_a_notification_adds_few_pages(ada, count_pages):
    """Compare with a comment whose post the author has muted, so that it adds no notification."""
    bob = sign_in(ada.application, "bob")
    comments = f"{ada.post_path}/comments"
    for number in range(30):  # so that the table and its indexes have pages
        author = sign_in(ada.application, f"author-{number}")
        others = f"/posts/{author.create_post('On looms')['id']}/comments"
        for path in (others, others, comments):
            assert bob.post(path, json={"content": "x"}).status_code == 201

    def count():
        return count_pages(lambda _: bob.post(comments, json={"content": "And cloth?"}), 201)

    ada.put(f"{ada.post_path}/subscription", json={"level": "muted"})
    before = count()
    ada.delete(f"{ada.post_path}/subscription")
    after = count()
    assert 0 < min(after) - min(before) <= 4
