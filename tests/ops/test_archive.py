"""Everything as one file, and back, on the same engine and between both."""

import stat
from datetime import timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa

from posting.db.engine import db
from posting.db.models import Comment, IdempotencyKey, Post, RateWindow
from posting.db.types import now
from posting.ops import archive
from tests.conftest import PASSWORD, POSTGRES
from tests.helpers.archives import clear, export, import_, pack, rows_of, run, unpack
from tests.helpers.assertions import sound

TEXTS = ("🧵 \u2028 \u0085 \r\n \x01 \\ \" ' ﷽ e\u0301", "🧵" * 100_000, "\u2029.")


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


def test_sqlite_to_the_engine_under_test_and_back(community, empty_app, tmp_path):
    """With TEST_DATABASE_URL this is SQLite, Postgres, SQLite."""
    written = export(community, tmp_path / "1.gz")
    import_(empty_app, tmp_path / "1.gz")
    assert export(empty_app, tmp_path / "2.gz") == written
    clear(community)
    import_(community, tmp_path / "2.gz")
    assert export(community, tmp_path / "3.gz") == written
    clear(empty_app)
    import_(empty_app, tmp_path / "3.gz")
    assert export(empty_app, tmp_path / "4.gz") == written


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
            db.session.execute(Post.count_comment(post["id"]))
            db.session.flush()
        db.session.commit()
    export(app, tmp_path / "1.gz")
    said = [line["row"] for line in unpack(tmp_path / "1.gz") if line.get("table") == "comments"]
    assert [row["id"] for row in said] == thread
    clear(app)
    import_(app, tmp_path / "1.gz")


def test_it_is_of_one_moment(app, alice, empty_app, tmp_path, monkeypatch):
    post = alice.post_titled("On engines")
    read_table = archive._stored

    def write_meanwhile(*arguments):
        alice.comment_on(post, "Has it gone yet?")
        alice.illustrate(alice.post_titled("On looms"))
        return read_table(*arguments)

    monkeypatch.setattr(archive, "_stored", write_meanwhile)
    export(app, tmp_path / "1.gz")
    import_(empty_app, tmp_path / "1.gz")
    found = {table: count for table, count in rows_of(empty_app).items() if count}
    assert found == {"users": 1, "sessions": 1, "posts": 1}
    assert rows_of(app)["posts"] > 1
    with empty_app.app_context():
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
    expected = f"Error: {path} already exists. Choose another name, or add --force."
    assert run(app, "export", path) == (1, expected)
    assert path.read_text() == "precious"
    assert run(app, "export", "--force", path)[0] == 0
    assert unpack(path)[0]["format"] == "posting archive"


def test_what_is_no_file_is_never_replaced(app, tmp_path):
    for path in (tmp_path, Path("/dev/null")):
        code, said = run(app, "export", "--force", path)
        assert (code, "is not a regular file" in said) == (1, True)
    assert not Path("/dev/null").is_file()


@pytest.mark.parametrize("failure", [OSError(28, "No space left"), KeyboardInterrupt()])
@pytest.mark.parametrize("place", ["posting.ops.files._sync", "posting.ops.archive._stored"])
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


def test_an_old_schema_is_told(app, tmp_path, monkeypatch):
    monkeypatch.setattr("posting.db.migrations.head_revision", lambda: "9999")
    for command in ("export", "import"):
        expected = "Error: The database schema is not current. Run: flask db upgrade"
        assert run(app, command, tmp_path / "1.gz") == (1, expected)
