"""Invalid archives: the error names the line, and nothing is imported."""

import json
import re

import pytest
import sqlalchemy as sa

from posting.db.base import db
from posting.db.migrations.revisions import head_revision
from posting.ops.archive import importing
from tests.helpers.archives import (
    COMMENT,
    DATA,
    IMAGE,
    KEY,
    POST,
    REPLY,
    THUMBNAIL,
    USER,
    append_line,
    compress,
    count_rows,
    delete_column,
    delete_line,
    export,
    run,
    set_counts,
    set_header,
    set_line,
    set_values,
    swap_lines,
    write_archive,
)

TIMESTAMP_RULE = "must be a timestamp such as 2026-11-21T09:30:00.125Z"


def reverse_tables(lines):
    lines[0]["rows"] = dict(reversed(lines[0]["rows"].items()))


INVALID = [
    (set_line(1, b"posting"), "line 1: not JSON in UTF-8."),
    (set_line(1, b'{"format": NaN}'), "line 1: not the header of a Posting archive."),
    (set_line(1, []), "line 1: not the header of a Posting archive."),
    (set_header(format="tar"), "line 1: not the header of a Posting archive."),
    (set_header(version=3), "line 1: the format has version 3 and not 2."),
    (
        set_header(schema="9999"),
        "line 1: schema '9999', which this installation does not know; its own is {newest!r}. "
        "Import it with the release that exported it, or later.",
    ),
    (set_header(rows=[]), "line 1: rows must give the number of rows of each table."),
    (set_header(schema=["0001"]), "line 1: schema ['0001'], which this installation*."),
    (set_header(version=1), "line 1: the format has version 1 and not 2."),
    (
        set_header(rows={"users": 2}),
        "line 4: the file should end here, as line 1 counts no more rows.",
    ),
    (set_counts(users=-1), "line 1: rows must give the number of rows of each table."),
    (set_counts(users=True), "line 1: rows must give the number of rows of each table."),
    (set_counts(users="2"), "line 1: rows must give the number of rows of each table."),
    (set_counts(users=2**63), "line 1: rows must give the number of rows of each table."),
    (reverse_tables, "line 1: table thumbnails must come after images."),
    (set_counts(badges=0), "line 1: schema {newest} has no table badges."),
    (
        set_counts(users=1),
        "line 3: not a row of idempotency_keys, although line 1 counts more of them.",
    ),
    (set_counts(users=3), "line 4: not a row of users, although line 1 counts more of them."),
    (set_counts(thumbnails=2), "line 13: the file ends before this line."),
    (set_counts(thumbnails=0), "line 12: the file should end here, as line 1 counts no more rows."),
    (delete_line(THUMBNAIL), "line 12: the file ends before this line."),
    (delete_line(3), "line 3: not a row of users, although line 1 counts more of them."),
    (append_line({}), "line 13: the file should end here, as line 1 counts no more rows."),
    (append_line(b""), "line 13: the file should end here, as line 1 counts no more rows."),
    (set_line(USER, b""), "line 2: not JSON in UTF-8."),
    (set_line(USER, b'{"table":'), "line 2: not JSON in UTF-8."),
    (set_line(USER, b"[" * 100_000), "line 2: not JSON in UTF-8."),
    (set_line(USER, b"1" * 5_000), "line 2: not JSON in UTF-8."),
    (set_line(USER, b'{"table": "\xff"}'), "line 2: not JSON in UTF-8."),
    (set_line(USER, json.dumps("ada").encode("utf-16")), "line 2: not JSON in UTF-8."),
    (set_line(USER, None), 'line 2: not of the form {{"table": …, "row": {{…}}}}.'),
    (set_line(USER, {"table": "users"}), 'line 2: not of the form {{"table": …, "row": {{…}}}}.'),
    (
        set_line(USER, {"table": "badges", "row": {}}),
        "line 2: not a row of users, although line 1 counts more of them.",
    ),
    (
        set_line(IMAGE, {"table": "images", "row": []}),
        "line 9: a row of images must have the columns id, post_id, comment_id, owner_id, "
        "media_type, width, height, size, alt, position, created_at, unattached_since, resized_at, "
        "edited_at.",
    ),
    (
        set_values(DATA, size=3),
        "line 11: a row of image_data must have the columns image_id, data.",
    ),
    (
        delete_column(DATA, "data"),
        "line 11: a row of image_data must have the columns image_id, data.",
    ),
    (set_values(USER, id=None), "line 2: users.id must not be null."),
    (
        set_values(USER, id=1),
        "line 2: users.id must be a string without U+0000 and lone surrogates.",
    ),
    (
        set_values(POST, title=[]),
        "line 5: posts.title must be a string without U+0000 and lone surrogates.",
    ),
    (
        set_values(POST, title="a\0"),
        "line 5: posts.title must be a string without U+0000 and lone surrogates.",
    ),
    (
        set_values(POST, title="\ud800"),
        "line 5: posts.title must be a string without U+0000 and lone surrogates.",
    ),
    *(
        (
            set_values(USER, id=user_id),
            "line 2: users.id must be 21 characters of A-Z, a-z, 0-9, '_' and '-'.",
        )
        for user_id in ("", "x" * 20, "x" * 22, "x" * 20 + "/", "x" * 20 + "\n")
    ),
    (
        set_line(USER, b'{"table": "users", "table": "users", "row": {}}'),
        "line 2: a JSON object has a duplicate key.",
    ),
    (
        set_values(USER, password_hash="x" * 257),
        "line 2: users.password_hash must have at most 256 {c}.",
    ),
    (set_values(POST, title="🧵" * 201), "line 5: posts.title must have at most 200 characters."),
    (set_values(POST, version="1"), "line 5: posts.version must be a 32-bit integer."),
    (set_values(POST, version=1.0), "line 5: posts.version must be a 32-bit integer."),
    (set_values(POST, version=True), "line 5: posts.version must be a 32-bit integer."),
    (set_values(POST, version=2**31), "line 5: posts.version must be a 32-bit integer."),
    *(
        (set_values(POST, created_at=timestamp), f"line 5: posts.created_at {TIMESTAMP_RULE}.")
        for timestamp in (
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
        (set_values(DATA, data=data), "line 11: image_data.data must be base64.")
        for data in ("?", "YQ", "YQ==YQ==", "Y Q==", "é", 1, [])
    ),
    *(
        (
            set_values(KEY, headers=headers),
            "line 4: idempotency_keys.headers must be an object of strings.",
        )
        for headers in ([], "ETag", 1)
    ),
    *(
        (
            set_values(KEY, headers=headers),
            "line 4: idempotency_keys.headers must be a string without U+0000 and lone surrogates.",
        )
        for headers in ({"ETag": 1}, {"ETag": None}, {"ETag": {}}, {"ETag": "\0"}, {"\ud800": ""})
    ),
    (set_values(USER, role="king"), "line 2: rejected by the database (*ck_users_role*)."),
    (
        set_values(USER, display_name="x" * 65),
        "line 2: users.display_name must have at most 64 {c}.",
    ),
    *(
        (set_values(USER, username=name), "line 2: users.username must be a valid username.")
        for name in ("ab", "_da", "a da", "adá", "ada\n")
    ),
    (set_values(3, username="ADA"), "line 3: rejected by the database (*uq_users_username*)."),
    (set_values(POST, author_id="x" * 21), "line 5: rejected by the database (*"),
    (set_values(REPLY, parent_id="x" * 21), "line 7: rejected by the database (*"),
    (swap_lines(COMMENT, REPLY), "line 6: rejected by the database (*"),
    (set_values(IMAGE, width=0), "line 9: rejected by the database (*ck_images_dimensions*)."),
    (set_values(THUMBNAIL, image_id="x" * 21), "line 12: rejected by the database (*"),
]


@pytest.fixture
def refused(app, tmp_path):
    """Import an invalid archive, check that no row stays, and return the error."""

    def refused(data):
        path = tmp_path / "refused.gz"
        path.write_bytes(data)
        code, output = run(app, "import", path)
        assert code == 1, output
        assert not any(count_rows(app).values())
        start = f"Error: {path}, "
        assert output.startswith(start)
        return output.removeprefix(start)

    return refused


@pytest.mark.parametrize(("change", "expected"), INVALID, ids=[text[:50] for _, text in INVALID])
def test_the_error_names_the_line(refused, lines, change, expected):
    change(lines)
    error = refused(compress(*lines))
    expected = expected.format(newest=head_revision(), c="characters")
    parts = map(re.escape, expected.split("*"))
    assert re.fullmatch(".*".join(parts), error), error


def test_the_error_names_the_line_of_a_row_in_a_batch(refused, lines):
    lines[1:3] = [
        {"table": "users", "row": lines[1]["row"] | {"id": f"{n:021}", "username": f"user-{n}"}}
        for n in range(3000)
    ]
    lines[2000]["row"]["role"] = "king"
    lines[0]["rows"]["users"] = 3000
    assert refused(compress(*lines)).startswith("line 2001: rejected")


def test_an_error_never_shows_a_password_hash(refused, lines):
    set_values(USER, role="king", password_hash="scrypt:secret")(lines)
    assert "secret" not in refused(compress(*lines))


def test_damaged_archives_are_errors(refused, lines):
    whole = compress(*lines)
    damaged = {
        b"": "line 1: the file ends before this line.",
        b"posting": "line 1: damaged, or not compressed with gzip (Not a gzipped file (b'po')).",
        whole[:-20]: "damaged, or not compressed with gzip (Compressed file ended before",
        whole[:-4]: "damaged, or not compressed with gzip (Compressed file ended before",
        whole[:-8] + bytes(8): "line 13: damaged, or not compressed with gzip (CRC check failed",
        whole[:100] + b"\xff\xff\xff" + whole[103:]: "line ",
        whole + b"x": "damaged, or not compressed with gzip (Not a gzipped file",
        whole + whole: "line 13: the file should end here, as line 1 counts no more rows.",
    }
    for data, expected in damaged.items():
        assert expected in refused(data)


def test_an_archive_cut_off_anywhere_is_an_error(refused, lines):
    whole = compress(*lines)
    for length in range(0, len(whole), 97):
        refused(whole[:length])


@pytest.mark.parametrize(
    ("number", "limit"),
    [(1, "MAX_HEADER_BYTES"), (POST, "MAX_LINE_BYTES"), (DATA, "MAX_DATA_LINE_BYTES")],
)
def test_lines_have_a_maximum_length(refused, lines, monkeypatch, number, limit):
    monkeypatch.setattr(importing, limit, 60_000)
    set_line(number, b" " * 60_001)(lines)
    assert refused(compress(*lines)) == f"line {number}: longer than 60,000 bytes."


def test_the_largest_image_fits_into_a_line():
    largest = 2**28  # the maximum of POSTING_MAX_IMAGE_BYTES
    assert largest * 4 / 3 + 1000 < importing.MAX_DATA_LINE_BYTES


def test_a_full_disk_is_an_error(empty_app, lines, tmp_path):
    def fill(connection, *_):
        connection.execute("PRAGMA max_page_count=1")  # SQLite raises this to the current size

    export(empty_app, tmp_path / "1.gz")
    with empty_app.app_context():
        sa.event.listen(db.engine, "checkout", fill)
    set_values(POST, content="x" * 100_000)(lines)
    assert run(empty_app, "import", write_archive(tmp_path / "2.gz", *lines)) == (
        1,
        "Error: The database failed (database or disk is full). "
        "Check that it is running, that its disk has space and that nothing else writes.",
    )
    assert not any(count_rows(empty_app).values())
