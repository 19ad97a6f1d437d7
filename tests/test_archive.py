"""Everything as one file, and back, on the same engine and between both."""

import gzip
import json
import re
import stat
from datetime import timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa
from asserts import sound
from conftest import PASSWORD, POSTGRES

from posting import archive, create_app
from posting.database import db, now
from posting.models import Comment, IdempotencyKey, Post, RateWindow

DOCUMENT = (Path(__file__).parent.parent / "docs" / "archive.md").read_text()
TEXTS = ("🧵 \u2028 \u0085 \r\n \x01 \\ \" ' ﷽ e\u0301", "🧵" * 100_000, "\u2029.")


def run(app, *arguments):
    """Run a `flask` command; return its exit code and its last line."""
    result = app.test_cli_runner().invoke(args=[str(argument) for argument in arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.output.splitlines()[-1]


def export(app, path):
    code, said = run(app, "export", path)
    assert code == 0, said
    return path.read_bytes()


def import_(app, path):
    code, said = run(app, "import", path)
    assert code == 0, said


def clear(app):
    with app.app_context(), db.engine.begin() as connection:
        for table in reversed(db.metadata.sorted_tables):
            connection.execute(sa.delete(table))


def rows_of(app):
    """Return how many rows each table has."""
    with app.app_context(), db.engine.connect() as connection:
        count = sa.func.count()
        return {
            name: connection.scalar(sa.select(count).select_from(table))
            for name, table in db.metadata.tables.items()
        }


def packed(*lines):
    """Return an archive of these lines: bytes, or what is to be JSON."""
    parts = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines]
    return gzip.compress(b"".join(part + b"\n" for part in parts))


def pack(path, *lines):
    path.write_bytes(packed(*lines))
    return path


def unpack(path):
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).split(b"\n")[:-1]]


@pytest.fixture
def other(tmp_path):
    """An app on an empty SQLite database of its own."""
    url = f"sqlite:///{tmp_path / 'other.db'}"
    app = create_app({"TESTING": True, "DATABASE_URL": url})
    yield app
    with app.app_context():
        db.engine.dispose()


@pytest.fixture
def community(app, alice, bob, moderator):
    """At least one row in each table, with what is hard to carry over."""
    post, *_ = (alice.post_titled("A title", content=text) for text in TEXTS)
    alice.illustrate(post, alt=TEXTS[0])
    alice.post("/posts", json={"title": "a", "content": "b"}, headers={"Idempotency-Key": "1"})
    remark = bob.comment_on(post, "🧵" * 10_000)
    alice.comment_on(post, "Thank you.", parent_id=remark["id"])
    assert moderator.delete(f"/comments/{remark['id']}").status_code == 204
    assert run(app, "users", "suspend", "bob")[0] == 0
    with app.app_context():
        db.session.add(RateWindow(key="k", hits=2**31 - 1, ends_at=now()))
        db.session.commit()
    assert all(rows_of(app).values())
    return app


@pytest.fixture
def small():
    """The archive of docs/archive.md, line by line."""
    [example] = re.findall(r"```json\n(.*?)```", DOCUMENT, re.DOTALL)
    return [json.loads(line) for line in example.splitlines()]


def test_what_comes_back_is_the_same(community, tmp_path):
    written = export(community, tmp_path / "1.gz")
    rows = rows_of(community)
    clear(community)
    import_(community, tmp_path / "1.gz")
    assert rows_of(community) == rows
    assert export(community, tmp_path / "2.gz") == written
    with community.app_context():
        sound(db.session.connection())
        assert set(TEXTS) < set(db.session.scalars(sa.select(Post.content)))


def test_sqlite_to_the_engine_under_test_and_back(community, other, tmp_path):
    """With TEST_DATABASE_URL this is SQLite, Postgres, SQLite."""
    written = export(community, tmp_path / "1.gz")
    import_(other, tmp_path / "1.gz")
    assert export(other, tmp_path / "2.gz") == written
    clear(community)
    import_(community, tmp_path / "2.gz")
    assert export(community, tmp_path / "3.gz") == written
    clear(other)
    import_(other, tmp_path / "3.gz")
    assert export(other, tmp_path / "4.gz") == written


def test_who_could_sign_in_still_can(community, alice, tmp_path):
    export(community, tmp_path / "1.gz")
    clear(community)
    assert alice.get("/users/me").status_code == 401
    import_(community, tmp_path / "1.gz")
    assert alice.get("/users/me").json["username"] == "alice"
    credentials = {"username": "alice", "password": PASSWORD}
    assert community.test_client().post("/signin", json=credentials).status_code == 200


def test_nothing_at_all_is_carried_too(app, tmp_path):
    path = tmp_path / "1.gz"
    assert run(app, "export", path) == (0, f"Exported no rows to {path}.")
    assert run(app, "import", path) == (0, f"Imported no rows from {path}.")


def test_it_is_said_what_there_was(app, post, tmp_path):
    path, what = tmp_path / "1.gz", "1 users, 1 posts, 1 sessions"
    assert run(app, "export", path) == (0, f"Exported {what} to {path}.")
    clear(app)
    assert run(app, "import", path) == (0, f"Imported {what} from {path}.")


def test_every_table_is_in_it(community, tmp_path):
    export(community, tmp_path / "1.gz")
    header, *lines = unpack(tmp_path / "1.gz")
    assert header["rows"] == rows_of(community)
    assert header["rows"].keys() == db.metadata.tables.keys()
    assert [line["table"] for line in lines] == [
        name for name, count in header["rows"].items() for _ in range(count)
    ]
    for line in lines:
        assert list(line["row"]) == db.metadata.tables[line["table"]].columns.keys()


def test_no_sequence_must_be_moved():
    """A number that the database gives would be given again after an import."""
    for table in db.metadata.tables.values():
        assert table.autoincrement_column is None


def test_the_same_rows_give_the_same_bytes(community, tmp_path):
    assert export(community, tmp_path / "1.gz") == export(community, tmp_path / "2.gz")


def test_keys_are_in_the_order_of_bytes(app, alice, tmp_path):
    kept = {"user_id": alice.user["id"], "fingerprint": "", "body": "", "headers": {}}
    with app.app_context():
        db.session.add_all(IdempotencyKey(key=key, **kept) for key in "a_B-Zz")
        db.session.commit()
    export(app, tmp_path / "1.gz")
    lines = unpack(tmp_path / "1.gz")
    assert [line["row"]["key"] for line in lines if "key" in line.get("row", ())] == [*"-BZ_az"]


def test_replies_follow_what_they_reply_to(app, post, tmp_path):
    thread, moment = ["c" * 21, "b" * 21, "a" * 21], now()
    with app.app_context():
        for number, comment_id in enumerate(thread):
            created_at = moment + timedelta(milliseconds=number)
            parent_id = thread[number - 1] if number else None
            row = {"id": comment_id, "parent_id": parent_id, "created_at": created_at}
            db.session.add(Comment(post_id=post["id"], content="x", **row))
            db.session.flush()
        db.session.commit()
    export(app, tmp_path / "1.gz")
    said = [line["row"] for line in unpack(tmp_path / "1.gz") if line.get("table") == "comments"]
    assert [row["id"] for row in said] == thread
    clear(app)
    import_(app, tmp_path / "1.gz")


def test_it_is_of_one_moment(app, alice, other, tmp_path, monkeypatch):
    post = alice.post_titled("On engines")
    read_table = archive._stored

    def write_meanwhile(*arguments):
        alice.comment_on(post, "Has it gone yet?")
        alice.illustrate(alice.post_titled("On looms"))
        return read_table(*arguments)

    monkeypatch.setattr(archive, "_stored", write_meanwhile)
    export(app, tmp_path / "1.gz")
    import_(other, tmp_path / "1.gz")
    found = {table: count for table, count in rows_of(other).items() if count}
    assert found == {"users": 1, "sessions": 1, "posts": 1}
    assert rows_of(app)["posts"] > 1
    with other.app_context():
        sound(db.session.connection())


def test_the_documented_example_is_one(app, small, tmp_path):
    import_(app, pack(tmp_path / "1.gz", *small))
    export(app, tmp_path / "2.gz")
    assert unpack(tmp_path / "2.gz") == small


def test_it_is_for_its_owner_alone(app, tmp_path):
    export(app, tmp_path / "1.gz")
    assert stat.S_IMODE((tmp_path / "1.gz").stat().st_mode) == 0o600


def test_a_file_is_replaced_only_by_force(app, tmp_path):
    path = tmp_path / "1.gz"
    path.write_text("precious")
    expected = f"Error: {path} is there already. Name another file, or replace it: --force"
    assert run(app, "export", path) == (1, expected)
    assert path.read_text() == "precious"
    assert run(app, "export", "--force", path)[0] == 0
    assert unpack(path)[0]["format"] == "posting archive"


def test_what_is_no_file_is_never_replaced(app, tmp_path):
    for path in (tmp_path, Path("/dev/null")):
        code, said = run(app, "export", "--force", path)
        assert (code, "is no ordinary file" in said) == (1, True)
    assert not Path("/dev/null").is_file()


@pytest.mark.parametrize("failure", [OSError(28, "No space left"), KeyboardInterrupt()])
@pytest.mark.parametrize("place", ["posting.files._sync", "posting.archive._stored"])
def test_a_failure_leaves_nothing_behind(app, tmp_path, monkeypatch, failure, place):
    def fail(*_):
        raise failure

    (tmp_path / "1.gz").write_text("precious")
    with monkeypatch.context() as patch:
        patch.setattr(place, fail)
        code, said = run(app, "export", "--force", tmp_path / "1.gz")
    expected = f"Error: {tmp_path / '1.gz'}: No space left."
    assert (code, said) == (1, expected if isinstance(failure, OSError) else "Aborted!")
    assert [path.name for path in tmp_path.iterdir()] == ["1.gz"]
    assert (tmp_path / "1.gz").read_text() == "precious"


def test_what_cannot_be_opened_is_told(app, tmp_path):
    missing = tmp_path / "none" / "1.gz"
    for command in ("export", "import"):
        expected = f"Error: {missing}: No such file or directory."
        assert run(app, command, missing) == (1, expected)
    expected = f"Error: {tmp_path}: Is a directory."
    assert run(app, "import", tmp_path) == (1, expected)


def test_one_that_is_not_empty_is_refused(app, post, small, tmp_path):
    before = export(app, tmp_path / "1.gz")
    code, said = run(app, "import", pack(tmp_path / "2.gz", *small))
    assert (code, said) == (
        1,
        "Error: The database is not empty: table users has rows. "
        "Name a new one with POSTING_DATABASE_URL.",
    )
    assert export(app, tmp_path / "3.gz") == before


def test_any_row_counts(app, small, tmp_path):
    with app.app_context():
        db.session.add(RateWindow(key="k", hits=1, ends_at=now()))
        db.session.commit()
    code, said = run(app, "import", pack(tmp_path / "1.gz", *small))
    assert (code, "table rate_windows has rows" in said) == (1, True)


@pytest.mark.usefixtures("impatient")
def test_one_that_others_write_to_is_left_alone(app, make_app, small, tmp_path):
    path = pack(tmp_path / "1.gz", *small)
    with make_app().app_context():
        engine = db.engine
    with engine.begin() as connection:
        connection.execute(sa.insert(RateWindow).values(key="k", hits=1, ends_at=now()))
        code, said = run(app, "import", path)
        connection.rollback()
    assert (code, "lock" in said) == (1, True)
    import_(app, path)


@pytest.mark.usefixtures("impatient")
def test_nobody_writes_during_an_import(app, anonymous, small, tmp_path, monkeypatch):
    """Who signs up meanwhile would find themselves among rows that may yet be undone."""
    statuses = []
    insert = archive._insert

    def sign_up_meanwhile(*arguments):
        ada = {"username": "ada", "password": PASSWORD}
        statuses.append(anonymous.post("/signup", json=ada).status_code)
        insert(*arguments)

    monkeypatch.setattr(archive, "_insert", sign_up_meanwhile)
    import_(app, pack(tmp_path / "1.gz", *small))
    assert set(statuses) == {503}


def test_nobody_is_hurried(app, statements, tmp_path, small):
    """What is meant for requests does not end what takes long by its nature."""
    import_(app, pack(tmp_path / "1.gz", *small))
    export(app, tmp_path / "2.gz")
    lifted = [sql for sql in statements if sql == "SET LOCAL statement_timeout = 0"]
    assert len(lifted) == (2 if POSTGRES else 0)


def test_a_full_disk_is_told(other, small, tmp_path):
    def fill(connection, *_):
        connection.execute("PRAGMA max_page_count=1")  # which makes it as many as there are

    export(other, tmp_path / "1.gz")
    with other.app_context():
        sa.event.listen(db.engine, "checkout", fill)
    on(POST, content="x" * 100_000)(small)
    assert run(other, "import", pack(tmp_path / "2.gz", *small)) == (
        1,
        "Error: The database did not answer (database or disk is full). "
        "Check that it is up, has room, and that nothing else writes.",
    )
    assert not any(rows_of(other).values())


def test_an_old_schema_is_told(app, tmp_path, monkeypatch):
    monkeypatch.setattr("posting.migrations.newest", lambda: "9999")
    for command in ("export", "import"):
        expected = "Error: The database schema is not current. Run: flask db upgrade"
        assert run(app, command, tmp_path / "1.gz") == (1, expected)


def on(line, **values):
    """Change values of the row in a line."""

    def change(lines):
        lines[line - 1]["row"] |= values

    return change


def header(**values):
    def change(lines):
        lines[0] |= values

    return change


def counted(**counts):
    def change(lines):
        lines[0]["rows"] |= counts

    return change


def line(number, content):
    def change(lines):
        lines[number - 1] = content

    return change


def dropped(number, column=None):
    def change(lines):
        if column:
            del lines[number - 1]["row"][column]
        else:
            del lines[number - 1]

    return change


def swapped(one, another):
    def change(lines):
        lines[one - 1], lines[another - 1] = lines[another - 1], lines[one - 1]

    return change


def added(content):
    return lambda lines: lines.append(content)


A_MOMENT = "must be a moment such as 2026-11-21T09:30:00.125Z"
# The example of docs/archive.md has in line 2 and 3 users, 4 an idempotency key, 5 a post,
# 6 and 7 a comment and a reply, 8 an image, 9 its bytes.
USER, KEY, POST, COMMENT, REPLY, IMAGE, DATA = 2, 4, 5, 6, 7, 8, 9
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
    (on(USER, id="x" * 22), "line 2: users.id must have at most 21 characters."),
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
    (
        on(KEY, headers={"ETag": float("inf")}),
        "line 4: idempotency_keys.headers must not hold a number that is not finite.",
    ),
    (on(USER, role="king"), "line 2: refused by the database (*ck_users_role*)."),
    (on(USER, username="ab"), "line 2: refused by the database (*ck_users_username_length*)."),
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
    expected = expected.format(newest=archive.newest(), c="characters")
    parts = map(re.escape, expected.split("*"))
    assert re.fullmatch(".*".join(parts), said), said


def test_it_is_told_which_row_of_many(refused, small):
    small[1:3] = [
        {"table": "users", "row": small[1]["row"] | {"id": f"{n}", "username": f"user-{n}"}}
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


@pytest.mark.parametrize(("depth", "takes"), [(100, True), (101, False), (900, False)])
def test_json_is_nested_a_hundred_deep_at_most(app, small, tmp_path, depth, takes):
    """Beyond that it depends on who calls whether Python can encode what it could parse."""
    headers = []
    for _ in range(depth - 1):
        headers = [headers]
    on(KEY, headers=headers)(small)
    code, said = run(app, "import", pack(tmp_path / "1.gz", *small))
    assert code == (0 if takes else 1)
    rule = "line 4: idempotency_keys.headers must not be nested more than 100 deep."
    assert takes or said.endswith(rule)
