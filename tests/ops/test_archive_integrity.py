"""Integrity checks of archives: inconsistent rows are neither imported nor exported."""

import re

import pytest
import sqlalchemy as sa

from posting.db.base import db
from posting.db.engine import close_connections
from posting.db.transactions import transaction
from tests.helpers.archives import (
    COMMENT,
    DATA,
    IMAGE,
    POST,
    REPLY,
    count_rows,
    delete_line,
    example_archive,
    run,
    set_counts,
    set_values,
    write_archive,
)


def reply_on_another_post(lines):
    other = lines[POST - 1]["row"] | {"id": "x" * 21, "comment_count": 1}
    lines[POST - 1]["row"] |= {"comment_count": 1, "last_comment_at": "2026-11-21T09:34:00.250Z"}
    lines[REPLY - 1]["row"]["post_id"] = other["id"]
    lines.insert(POST, {"table": "posts", "row": other})
    lines[0]["rows"]["posts"] = 2


def delete_bytes(lines):
    set_counts(image_data=0)(lines)
    delete_line(DATA)(lines)


IMAGE_ID, REPLY_ID, POST_ID = (
    example_archive()[number - 1]["row"]["id"] for number in (IMAGE, REPLY, POST)
)
INCONSISTENT = {
    "a reply to itself": (
        set_values(REPLY, parent_id=REPLY_ID),
        f"comment {REPLY_ID} is not on the post of its parent, or not later than it",
    ),
    "a reply as old as its parent": (
        set_values(REPLY, created_at="2026-11-21T09:34:00.250Z"),
        f"comment {REPLY_ID} is not on the post of its parent, or not later than it",
    ),
    "a reply on another post": (
        reply_on_another_post,
        f"comment {REPLY_ID} is not on the post of its parent, or not later than it",
    ),
    "too many comments": (
        set_values(POST, comment_count=3),
        f"the comment_count of post {POST_ID} is wrong",
    ),
    "too many images": (
        set_values(POST, image_count=3),
        f"the image_count of post {POST_ID} is wrong",
    ),
    "a deleted comment counts": (
        set_values(COMMENT, content=None, author_id=None),
        f"the comment_count of post {POST_ID} is wrong",
    ),
    "an earlier comment is the last": (
        set_values(POST, last_comment_at="2026-11-21T09:34:00.250Z"),
        f"the last_comment_at of post {POST_ID} is wrong",
    ),
    "no comment is the last": (
        set_values(POST, last_comment_at=None),
        f"the last_comment_at of post {POST_ID} is wrong",
    ),
    "no bytes": (delete_bytes, f"the size of image {IMAGE_ID} is not the number of its bytes"),
}


@pytest.mark.parametrize(("change", "expected"), INCONSISTENT.values(), ids=INCONSISTENT)
def test_inconsistent_rows_are_not_imported(app, lines, tmp_path, change, expected):
    change(lines)
    path = write_archive(tmp_path / "1.gz", *lines)
    assert run(app, "import", path) == (1, f"Error: {path} is inconsistent: {expected}.")
    assert not any(count_rows(app).values())


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        (
            "UPDATE posts SET title = 'a' || char(0)",
            f"A row of posts cannot be exported: title of '{POST_ID}' must be a string without "
            "U+0000 and lone surrogates.",
        ),
        (
            "UPDATE posts SET content = x'00ff'",
            f"A row of posts cannot be exported: content of '{POST_ID}' must be a string without "
            "U+0000 and lone surrogates.",
        ),
        (
            "UPDATE idempotency_keys SET headers = '[]'",
            "A row of idempotency_keys cannot be exported: headers of "
            "'V1StGXR8_Z5jdHi6B-myT, 8e03978e-40d5' must be an object of strings.",
        ),
        (
            "UPDATE posts SET version = 'zzz'",
            f"A row of posts cannot be exported: version of '{POST_ID}' must be a 32-bit integer.",
        ),
        ("UPDATE posts SET created_at = 'zzz'", "A row of posts cannot be exported: *zzz*."),
        ("UPDATE posts SET created_at = 1", "A row of posts cannot be exported: *."),
        (
            "UPDATE idempotency_keys SET headers = '{'",
            "A row of idempotency_keys cannot be exported*",
        ),
        (
            "DELETE FROM users",
            "The database is inconsistent: a row of * refers to a missing row of users. "
            "Run: flask doctor",
        ),
        (
            "UPDATE posts SET comment_count = 1",
            f"The database is inconsistent: the comment_count of post {POST_ID} is wrong. "
            "Run: flask doctor",
        ),
    ],
)
def test_rows_that_could_not_be_imported_are_not_exported(
    empty_app, lines, tmp_path, damage, expected
):
    assert run(empty_app, "import", write_archive(tmp_path / "1.gz", *lines))[0] == 0
    with empty_app.app_context(), transaction() as connection:
        connection.connection.driver_connection.execute("COMMIT")
        connection.exec_driver_sql("PRAGMA foreign_keys=OFF")
        connection.exec_driver_sql(damage)
    code, output = run(empty_app, "export", tmp_path / "2.gz")
    parts = map(re.escape, f"Error: {expected}".split("*"))
    assert code == 1
    assert re.fullmatch(".*".join(parts), output), output
    assert [path.name for path in tmp_path.glob("*2.gz*")] == []


def test_a_damaged_database_is_not_exported(empty_app, lines, tmp_path):
    assert run(empty_app, "import", write_archive(tmp_path / "1.gz", *lines))[0] == 0
    with empty_app.app_context():
        find_page = sa.text("SELECT rootpage FROM sqlite_schema WHERE name = 'posts'")
        with db.engine.connect() as connection:
            page = connection.scalar(find_page)
        close_connections()
    with (tmp_path / "other.db").open("r+b") as pages:
        pages.seek(4096 * (page - 1))
        pages.write(b"scribble" * 512)
    assert run(empty_app, "export", tmp_path / "2.gz") == (
        1,
        "Error: The database failed (database disk image is malformed). Run: flask doctor",
    )
