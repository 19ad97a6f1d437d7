"""What no archive holds: rows that are at odds with others, or that could not be read again."""

import re

import pytest
import sqlalchemy as sa

from posting.db.engine import db
from tests.helpers.archives import (
    COMMENT,
    DATA,
    IMAGE,
    POST,
    REPLY,
    counted,
    documented,
    dropped,
    on,
    pack,
    rows_of,
    run,
)


def reply_elsewhere(lines):
    other = lines[POST - 1]["row"] | {"id": "x" * 21, "comment_count": 1}
    lines[POST - 1]["row"]["comment_count"] = 1
    lines[REPLY - 1]["row"]["post_id"] = other["id"]
    lines.insert(POST, {"table": "posts", "row": other})
    lines[0]["rows"]["posts"] = 2


def without_bytes(lines):
    counted(image_data=0)(lines)
    dropped(DATA)(lines)


IMAGE_ID, REPLY_ID, POST_ID = (
    documented()[number - 1]["row"]["id"] for number in (IMAGE, REPLY, POST)
)
UNSOUND = {
    "a reply to itself": (
        on(REPLY, parent_id=REPLY_ID),
        f"comment {REPLY_ID} is not on the post of its parent, or not later",
    ),
    "a reply as old as its parent": (
        on(REPLY, created_at="2026-11-21T09:34:00.250Z"),
        f"comment {REPLY_ID} is not on the post of its parent, or not later",
    ),
    "a reply on another post": (
        reply_elsewhere,
        f"comment {REPLY_ID} is not on the post of its parent, or not later",
    ),
    "too many comments": (
        on(POST, comment_count=3),
        f"post {POST_ID} has another number of comments than it counts",
    ),
    "a deleted comment counts": (
        on(COMMENT, content=None, author_id=None),
        f"post {POST_ID} has another number of comments than it counts",
    ),
    "no bytes": (
        without_bytes,
        f"image {IMAGE_ID} has not as many bytes as its size says",
    ),
    "empty bytes": (on(DATA, data=""), f"image {IMAGE_ID} has not as many bytes as its size says"),
    "more bytes": (
        on(IMAGE, size=68),
        f"image {IMAGE_ID} has not as many bytes as its size says",
    ),
}


@pytest.mark.parametrize(("change", "expected"), UNSOUND.values(), ids=UNSOUND)
def test_what_no_line_alone_shows_is_told(app, small, tmp_path, change, expected):
    change(small)
    path = pack(tmp_path / "1.gz", *small)
    said = f"Error: {path}, all lines together: {expected}."
    assert run(app, "import", path) == (1, said)
    assert not any(rows_of(app).values())


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        (
            "UPDATE posts SET title = 'a' || char(0)",
            f"posts.title of '{POST_ID}' must be text, without U+0000 and lone surrogates.",
        ),
        (
            "UPDATE posts SET content = x'00ff'",
            f"posts.content of '{POST_ID}' must be text, without U+0000 and lone surrogates.",
        ),
        (
            "UPDATE idempotency_keys SET headers = '[]'",
            "idempotency_keys.headers of 'V1StGXR8_Z5jdHi6B-myT, 8e03978e-40d5' "
            "must be an object of texts.",
        ),
        ("UPDATE posts SET version = 'zzz'", f"posts.version of '{POST_ID}' must be a whole *"),
        ("UPDATE posts SET created_at = 'zzz'", "A row of posts cannot be read: *zzz*."),
        ("UPDATE posts SET created_at = 1", "A row of posts cannot be read: *."),
        ("UPDATE idempotency_keys SET headers = '{'", "A row of idempotency_keys cannot be read*"),
        (
            "DELETE FROM users",
            "The database is not sound: a row of * refers to none of users; "
            "flask doctor says more.",
        ),
        (
            "UPDATE posts SET comment_count = 1",
            f"The database is not sound: post {POST_ID} has another number of comments "
            "than it counts.",
        ),
    ],
)
def test_what_could_not_be_imported_is_not_exported(empty_app, small, tmp_path, damage, expected):
    assert run(empty_app, "import", pack(tmp_path / "1.gz", *small))[0] == 0
    with empty_app.app_context(), db.engine.begin() as connection:
        connection.connection.driver_connection.execute("COMMIT")
        connection.exec_driver_sql("PRAGMA foreign_keys=OFF")
        connection.exec_driver_sql(damage)
    code, said = run(empty_app, "export", tmp_path / "2.gz")
    parts = map(re.escape, f"Error: {expected}".split("*"))
    assert code == 1
    assert re.fullmatch(".*".join(parts), said), said
    assert [path.name for path in tmp_path.glob("*2.gz*")] == []


def test_a_damaged_database_is_told(empty_app, small, tmp_path):
    assert run(empty_app, "import", pack(tmp_path / "1.gz", *small))[0] == 0
    with empty_app.app_context():
        find_page = sa.text("SELECT rootpage FROM sqlite_schema WHERE name = 'posts'")
        with db.engine.connect() as connection:
            page = connection.scalar(find_page)
        db.engine.dispose()
    with (tmp_path / "other.db").open("r+b") as pages:
        pages.seek(4096 * (page - 1))
        pages.write(b"scribble" * 512)
    assert run(empty_app, "export", tmp_path / "2.gz") == (
        1,
        "Error: The database did not answer (database disk image is malformed). Run: flask doctor",
    )
