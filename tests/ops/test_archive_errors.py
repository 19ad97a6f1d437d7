"""What an archive must not hold: where it is wrong is told, and nothing of it stays."""

import json
import re

import pytest
import sqlalchemy as sa

from posting.db.engine import db
from posting.ops import archive
from tests.helpers.archives import (
    COMMENT,
    DATA,
    IMAGE,
    KEY,
    POST,
    REPLY,
    USER,
    added,
    counted,
    dropped,
    export,
    header,
    line,
    on,
    pack,
    packed,
    rows_of,
    run,
    swapped,
)

A_MOMENT = "must be a moment such as 2026-11-21T09:30:00.125Z"
BROKEN = [
    (line(1, b"posting"), "line 1: not JSON in UTF-8."),
    (line(1, b'{"format": NaN}'), "line 1: not the header of a Posting archive."),
    (line(1, []), "line 1: not the header of a Posting archive."),
    (header(format="tar"), "line 1: not the header of a Posting archive."),
    (header(version=2), "line 1: another version of the format than 1, which is read here."),
    (
        header(schema="0001"),
        "line 1: schema '0001', but this installation has {newest!r}. Bring both to the same "
        "release, run flask db upgrade there, and export again.",
    ),
    (header(rows=[]), "line 1: not a count of the rows of each table."),
    (header(rows={"users": 2}), "line 1: not a count of the rows of each table."),
    (counted(users=-1), "line 1: not a count of the rows of each table."),
    (counted(users=True), "line 1: not a count of the rows of each table."),
    (counted(users="2"), "line 1: not a count of the rows of each table."),
    (counted(users=2**63), "line 1: not a count of the rows of each table."),
    (counted(badges=0), "line 1: not a count of the rows of each table."),
    (counted(users=1), "line 3: not a row of idempotency_keys, of which line 1 counts more."),
    (counted(users=3), "line 4: not a row of users, of which line 1 counts more."),
    (counted(image_data=2), "line 10: the file ends before it."),
    (counted(image_data=0), "line 9: more than line 1 counts."),
    (dropped(DATA), "line 9: the file ends before it."),
    (dropped(3), "line 3: not a row of users, of which line 1 counts more."),
    (added({}), "line 10: more than line 1 counts."),
    (added(b""), "line 10: more than line 1 counts."),
    (line(USER, b""), "line 2: not JSON in UTF-8."),
    (line(USER, b'{"table":'), "line 2: not JSON in UTF-8."),
    (line(USER, b"[" * 100_000), "line 2: not JSON in UTF-8."),
    (line(USER, b"1" * 5_000), "line 2: not JSON in UTF-8."),
    (line(USER, b'{"table": "\xff"}'), "line 2: not JSON in UTF-8."),
    (line(USER, json.dumps("ada").encode("utf-16")), "line 2: not JSON in UTF-8."),
    (line(USER, None), 'line 2: not of the form {{"table": …, "row": {{…}}}}.'),
    (line(USER, {"table": "users"}), 'line 2: not of the form {{"table": …, "row": {{…}}}}.'),
    (
        line(USER, {"table": "badges", "row": {}}),
        "line 2: not a row of users, of which line 1 counts more.",
    ),
    (
        line(IMAGE, {"table": "images", "row": []}),
        "line 8: not the columns of images, which are id, post_id, media_type, width, height, "
        "size, alt, created_at.",
    ),
    (on(DATA, size=3), "line 9: not the columns of image_data, which are image_id, data."),
    (
        dropped(DATA, "data"),
        "line 9: not the columns of image_data, which are image_id, data.",
    ),
    (on(USER, id=None), "line 2: users.id must not be null."),
    (on(USER, id=1), "line 2: users.id must be text, without U+0000 and lone surrogates."),
    (on(POST, title=[]), "line 5: posts.title must be text, without U+0000 and lone surrogates."),
    (
        on(POST, title="a\0"),
        "line 5: posts.title must be text, without U+0000 and lone surrogates.",
    ),
    (
        on(POST, title="\ud800"),
        "line 5: posts.title must be text, without U+0000 and lone surrogates.",
    ),
    *(
        (
            on(USER, id=user_id),
            "line 2: users.id must be 21 characters of A-Z, a-z, 0-9, '_' and '-'.",
        )
        for user_id in ("", "x" * 20, "x" * 22, "x" * 20 + "/", "x" * 20 + "\n")
    ),
    (
        line(USER, b'{"table": "users", "table": "users", "row": {}}'),
        "line 2: a key twice in one object.",
    ),
    (on(USER, password_hash="x" * 257), "line 2: users.password_hash must have at most 256 {c}."),
    (on(POST, title="🧵" * 201), "line 5: posts.title must have at most 200 characters."),
    (on(POST, version="1"), "line 5: posts.version must be a whole number of 32 bits."),
    (on(POST, version=1.0), "line 5: posts.version must be a whole number of 32 bits."),
    (on(POST, version=True), "line 5: posts.version must be a whole number of 32 bits."),
    (on(POST, version=2**31), "line 5: posts.version must be a whole number of 32 bits."),
    *(
        (on(POST, created_at=moment), f"line 5: posts.created_at {A_MOMENT}.")
        for moment in (
            "yesterday",
            "",
            1,
            [],
            "2026-11-21",
            "2026-11-21T09:30:00Z",
            "2026-11-21T09:30:00.125",
            "2026-11-21T09:30:00.125+00:00",
            "2026-11-21T10:30:00.125+01:00",
            "2026-11-21T09:30:00.125001Z",
            "2026-11-31T09:30:00.125Z",
        )
    ),
    *(
        (on(DATA, data=data), "line 9: image_data.data must be base64.")
        for data in ("?", "YQ", "YQ==YQ==", "Y Q==", "é", 1, [])
    ),
    *(
        (on(KEY, headers=headers), "line 4: idempotency_keys.headers must be an object of texts.")
        for headers in ([], "ETag", 1)
    ),
    *(
        (
            on(KEY, headers=headers),
            "line 4: idempotency_keys.headers must be text, without U+0000 and lone surrogates.",
        )
        for headers in ({"ETag": 1}, {"ETag": None}, {"ETag": {}}, {"ETag": "\0"}, {"\ud800": ""})
    ),
    (on(USER, role="king"), "line 2: refused by the database (*ck_users_role*)."),
    (on(USER, display_name="x" * 65), "line 2: users.display_name must have at most 64 {c}."),
    *(
        (
            on(USER, username=name),
            "line 2: users.username must be a name to sign up with.",
        )
        for name in ("ab", "_da", "a da", "adá", "ada\n")
    ),
    (on(POST, content=""), "line 5: refused by the database (*ck_posts_content_length*)."),
    (on(POST, content="🧵" * 100_001), "line 5: refused *ck_posts_content_length*)."),
    (on(3, username="ADA"), "line 3: refused by the database (*uq_users_username*)."),
    (on(POST, author_id="x" * 21), "line 5: refused by the database (*"),
    (on(REPLY, parent_id="x" * 21), "line 7: refused by the database (*"),
    (swapped(COMMENT, REPLY), "line 6: refused by the database (*"),
    (on(IMAGE, width=0), "line 8: refused by the database (*ck_images_dimensions*)."),
]


@pytest.fixture
def refused(app, tmp_path):
    """Import an archive of which nothing may stay; return what is said of it."""

    def refused(data):
        path = tmp_path / "refused.gz"
        path.write_bytes(data)
        code, said = run(app, "import", path)
        assert code == 1, said
        assert not any(rows_of(app).values())
        start = f"Error: {path}, "
        assert said.startswith(start)
        return said.removeprefix(start)

    return refused


@pytest.mark.parametrize(("change", "expected"), BROKEN, ids=[text[:50] for _, text in BROKEN])
def test_the_line_is_told(refused, small, change, expected):
    change(small)
    said = refused(packed(*small))
    expected = expected.format(newest=archive.head_revision(), c="characters")
    parts = map(re.escape, expected.split("*"))
    assert re.fullmatch(".*".join(parts), said), said


def test_it_is_told_which_row_of_many(refused, small):
    small[1:3] = [
        {"table": "users", "row": small[1]["row"] | {"id": f"{n:021}", "username": f"user-{n}"}}
        for n in range(3000)
    ]
    small[2000]["row"]["role"] = "king"
    small[0]["rows"]["users"] = 3000
    assert refused(packed(*small)).startswith("line 2001: refused")


def test_no_hash_is_told(refused, small):
    on(USER, role="king", password_hash="scrypt:secret")(small)
    assert "secret" not in refused(packed(*small))


def test_what_is_damaged_is_told(refused, small):
    whole = packed(*small)
    damaged = {
        b"": "line 1: the file ends before it.",
        b"posting": "line 1: damaged, or not packed by gzip (Not a gzipped file (b'po')).",
        whole[:-20]: "damaged, or not packed by gzip (Compressed file ended before",
        whole[:-4]: "damaged, or not packed by gzip (Compressed file ended before",
        whole[:-8] + bytes(8): "line 10: damaged, or not packed by gzip (CRC check failed",
        whole[:100] + b"\xff\xff\xff" + whole[103:]: "line ",
        whole + b"x": "damaged, or not packed by gzip (Not a gzipped file",
        whole + whole: "line 10: more than line 1 counts.",
    }
    for data, expected in damaged.items():
        assert expected in refused(data)


def test_wherever_it_is_cut_off(refused, small):
    whole = packed(*small)
    for length in range(0, len(whole), 97):
        refused(whole[:length])


@pytest.mark.parametrize(
    ("number", "limit"),
    [(1, "LONGEST_HEADER"), (POST, "LONGEST_LINE"), (DATA, "LONGEST_LINE_WITH_BYTES")],
)
def test_no_line_is_endless(refused, small, monkeypatch, number, limit):
    monkeypatch.setattr(archive, limit, 60_000)
    line(number, b" " * 60_001)(small)
    assert refused(packed(*small)) == f"line {number}: longer than 60,000 bytes."


def test_the_largest_image_fits_into_a_line():
    largest = 2**28  # as POSTING_MAX_IMAGE_BYTES permits
    assert largest * 4 / 3 + 1000 < archive.LONGEST_LINE_WITH_BYTES


def test_a_full_disk_is_told(empty_app, small, tmp_path):
    def fill(connection, *_):
        connection.execute("PRAGMA max_page_count=1")  # which makes it as many as there are

    export(empty_app, tmp_path / "1.gz")
    with empty_app.app_context():
        sa.event.listen(db.engine, "checkout", fill)
    on(POST, content="x" * 100_000)(small)
    assert run(empty_app, "import", pack(tmp_path / "2.gz", *small)) == (
        1,
        "Error: The database did not answer (database or disk is full). "
        "Check that it is up, has room, and that nothing else writes.",
    )
    assert not any(rows_of(empty_app).values())
