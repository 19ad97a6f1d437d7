"""`flask export` and `flask import`, on the same engine and between the two."""

import stat
from datetime import timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa

from posting.comments.models import Comment
from posting.db.base import archived_tables, db
from posting.db.transactions import begin_on, execute, unit_of_work
from posting.db.types import now
from posting.invitations.first_run import describe_first_run
from posting.ops import commands
from posting.ops.archive import exporting, importing
from posting.posts.models import Post
from posting.web.idempotency import IdempotencyKey
from posting.web.limits import RateWindow
from tests.conftest import PASSWORD, POSTGRES
from tests.helpers import pictures
from tests.helpers.archives import (
    count_rows,
    delete_all_rows,
    export,
    import_,
    read_archive,
    run,
    write_archive,
)
from tests.helpers.assertions import assert_consistent, assert_indexed
from tests.helpers.backups import fail_as_full
from tests.helpers.uploads import form

TEXTS = ("🧵 \u2028 \u0085 \r\n \x01 \\ \" ' ﷽ e\u0301", "🧵" * 100_000, "\u2029.")


@pytest.fixture
def filled_app(app, alice, bob, moderator, owner):
    """An app with rows in every table, including text that is easily damaged."""
    post, *_ = (alice.create_post("A title", content=text) for text in TEXTS)
    alice.add_image(post, pictures.photo(), alt=TEXTS[0])
    assert alice.put("/users/me/avatar", data=form()).status_code == 200
    alice.post("/posts", json={"title": "a", "content": "b"}, headers={"Idempotency-Key": "1"})
    picture = bob.send_image(alt=TEXTS[0])["id"]
    comment = bob.add_comment(post, "🧵" * 10_000)
    bob.add_comment(post, "x", files=[bob.send_file(b"\t\n\f\r\xff", "🧵.txt")["id"]])
    bob.send_file()
    bob.send_image()  # which no post or comment has
    bob.add_comment(post, "And 🧵, @alice?", images=[picture])
    alice.add_comment(post, "Thank you.", parent_id=comment["id"])
    report = alice.post(f"/comments/{comment['id']}/reports", json={"reason": "🧵"})
    assert report.status_code == 201
    assert moderator.delete(f"/comments/{comment['id']}?reason=🧵").status_code == 204
    assert run(app, "users", "suspend", "bob")[0] == 0
    subscription = f"/posts/{post['id']}/subscription"
    assert alice.put(subscription, json={"level": "all"}).status_code == 200
    assert alice.put(f"/posts/{post['id']}/seen", json={"up_to": None}).status_code == 200
    topic = owner.post("/topics", json={"name": "🧵", "color": "red"}).json
    edit = alice.patch(f"/posts/{post['id']}", json={"topics": [topic["id"]]})
    assert edit.status_code == 200
    assert alice.put(f"/posts/{post['id']}/reactions/heart").status_code == 200
    assert alice.patch("/users/me/notifications", json={"letter": True}).status_code == 200
    [notification, *_] = alice.get("/notifications").json
    assert alice.post("/notifications/read", json={"up_to": notification["id"]}).json["count"] == 0
    webhook = {"url": "https://chat.example.net/", "events": ["post.created", "post.edited"]}
    webhook["current_password"] = PASSWORD
    assert owner.post("/webhooks", json=webhook).status_code == 201
    assert owner.patch("/site", json={"rules": "🧵"}).status_code == 200
    assert owner.put("/site/logo", data=form()).status_code == 200
    assert owner.put("/site/cover", data=form()).status_code == 200
    assert alice.post("/tokens", json={"name": "x", "scope": "read"}).status_code == 201
    assert run(app, "users", "reset-link", "bob")[0] == 0
    password = {"current_password": PASSWORD}
    assert alice.post("/recovery-codes", json=password).status_code == 201
    invitation = moderator.post("/invitations", json={"note": "🧵"}).json
    newcomer = {"username": "newcomer", "password": PASSWORD}
    newcomer["invitation"] = invitation["url"].partition("#")[2]
    assert app.test_client().post("/signup", json=newcomer).status_code == 201
    with app.app_context():
        db.session.add(RateWindow(key="k", hits=2**31 - 1, ends_at=now()))
        db.session.commit()
    assert all(count_rows(app).values())
    return app


def test_import_restores_every_row(filled_app, tmp_path):
    exported = export(filled_app, tmp_path / "1.gz")
    counts = count_rows(filled_app)
    delete_all_rows(filled_app)
    import_(filled_app, tmp_path / "1.gz")
    assert count_rows(filled_app) == counts
    assert export(filled_app, tmp_path / "2.gz") == exported
    with filled_app.app_context():
        assert_consistent(db.session.connection())
        assert_indexed(db.session.connection())
        assert set(TEXTS) < set(db.session.scalars(sa.select(Post.content)))


def test_archives_move_between_sqlite_and_the_tested_database(filled_app, empty_app, tmp_path):
    """With TEST_DATABASE_URL the rows move from Postgres to SQLite, back, and to SQLite again."""
    exported = export(filled_app, tmp_path / "1.gz")
    import_(empty_app, tmp_path / "1.gz")
    assert export(empty_app, tmp_path / "2.gz") == exported
    delete_all_rows(filled_app)
    import_(filled_app, tmp_path / "2.gz")
    assert export(filled_app, tmp_path / "3.gz") == exported
    delete_all_rows(empty_app)
    import_(empty_app, tmp_path / "3.gz")
    assert export(empty_app, tmp_path / "4.gz") == exported


def test_sessions_and_passwords_work_after_an_import(filled_app, alice, tmp_path):
    export(filled_app, tmp_path / "1.gz")
    delete_all_rows(filled_app)
    assert alice.get("/users/me").status_code == 401
    import_(filled_app, tmp_path / "1.gz")
    assert alice.get("/users/me").json["username"] == "alice"
    credentials = {"username": "alice", "password": PASSWORD}
    assert filled_app.test_client().post("/signin", json=credentials).status_code == 200


def test_an_empty_database_can_be_exported_and_imported(app, tmp_path):
    path = tmp_path / "1.gz"
    assert run(app, "export", path) == (0, f"Exported no rows to {path}.")
    assert run(app, "import", path) == (0, f"Imported no rows from {path}.")


@pytest.mark.parametrize(
    ("posts", "counts"), [(1, "1 user, 1 post, 1 session"), (2, "1 user, 2 posts, 1 session")]
)
def test_the_output_counts_the_rows(app, alice, tmp_path, posts, counts):
    for number in range(posts):
        alice.create_post(str(number))
    path = tmp_path / "1.gz"
    assert run(app, "export", path) == (0, f"Exported {counts} to {path}.")
    delete_all_rows(app)
    assert run(app, "import", path) == (0, f"Imported {counts} from {path}.")


def test_standard_output_has_the_same_bytes_and_nothing_else(filled_app, tmp_path):
    exported = export(filled_app, tmp_path / "1.gz")
    result = filled_app.test_cli_runner().invoke(args=["export", "-"])
    assert result.exit_code == 0
    assert result.stdout_bytes == exported
    *progress, last = result.stderr.splitlines()
    assert progress[0].startswith("Exporting: 0 of ")
    assert last.startswith("Exported ")
    assert not Path("-").exists()


def test_a_terminal_is_no_place_for_an_archive(filled_app, monkeypatch):
    monkeypatch.setattr("click.testing._NamedTextIOWrapper.isatty", lambda _: True)
    result = filled_app.test_cli_runner().invoke(args=["export", "-"])
    assert result.exit_code == 2
    assert "redirect it to a file or a program" in result.stderr


def test_a_full_standard_output_is_an_error(flask, monkeypatch, post):
    monkeypatch.setattr(commands, "export_to_file", fail_as_full)
    expected = "Error: Standard output cannot be written (No space left on device).\n"
    assert flask("export", "-") == (1, expected)


def test_a_database_in_memory_is_refused(make_app, lines, tmp_path):
    app = make_app(DATABASE_URL="sqlite://")
    code, output = run(app, "import", write_archive(tmp_path / "1.gz", *lines))
    assert code == 1
    assert output.startswith("Error: The database is in memory and ends with this command.")


def test_an_archive_has_every_table_and_column(filled_app, tmp_path):
    export(filled_app, tmp_path / "1.gz")
    header, *lines = read_archive(tmp_path / "1.gz")
    assert header["rows"] == count_rows(filled_app)
    assert db.metadata.tables.keys() - header["rows"].keys() == {
        *("changes", "epochs", "outbox", "former_addresses", "deliveries"),
        *("mail_links", "push_subscriptions"),
    }
    assert [line["table"] for line in lines] == [
        name for name, count in header["rows"].items() for _ in range(count)
    ]
    for line in lines:
        assert list(line["row"]) == db.metadata.tables[line["table"]].columns.keys()


def test_cursors_of_changes_expire_with_an_import(empty_app, lines, tmp_path):
    client = empty_app.test_client()
    cursor = client.get("/changes").json["cursor"]
    import_(empty_app, write_archive(tmp_path / "1.gz", *lines))
    response = client.get(f"/changes?after={cursor}")
    assert (response.status_code, response.json["code"]) == (410, "cursor_expired")
    assert client.get("/changes").json["changes"] == []


def test_no_table_has_a_sequence():
    """A sequence is not exported, so it would generate numbers that are already in use."""
    for table in archived_tables():
        assert table.autoincrement_column is None


def test_the_same_rows_give_the_same_bytes(filled_app, tmp_path):
    assert export(filled_app, tmp_path / "1.gz") == export(filled_app, tmp_path / "2.gz")


def test_rows_are_sorted_by_the_bytes_of_their_keys(app, alice, tmp_path):
    values = {"user_id": alice.user["id"], "fingerprint": "", "body": "", "headers": {}}
    with app.app_context():
        db.session.add_all(IdempotencyKey(key=key, **values) for key in "a_B-Zz")
        db.session.commit()
    export(app, tmp_path / "1.gz")
    lines = read_archive(tmp_path / "1.gz")
    assert [line["row"]["key"] for line in lines if "key" in line.get("row", ())] == [*"-BZ_az"]


def test_replies_follow_their_parents(app, post, tmp_path):
    thread, start = ["c" * 21, "b" * 21, "a" * 21], now()
    with app.app_context(), unit_of_work():
        for number, comment_id in enumerate(thread):
            created_at = start + timedelta(milliseconds=number)
            parent_id = thread[number - 1] if number else None
            row = {"id": comment_id, "parent_id": parent_id, "created_at": created_at}
            row |= {"thread_id": thread[0], "thread_at": start}
            execute(sa.insert(Comment), post_id=post["id"], content="x", **row)
        counts = {"comment_count": len(thread), "last_comment_at": created_at}
        execute(sa.update(Post).values(counts))
    export(app, tmp_path / "1.gz")
    lines = read_archive(tmp_path / "1.gz")
    exported = [line["row"]["id"] for line in lines if line.get("table") == "comments"]
    assert exported == thread
    delete_all_rows(app)
    import_(app, tmp_path / "1.gz")


def test_an_export_is_a_snapshot(app, alice, empty_app, tmp_path, monkeypatch):
    post = alice.create_post("On engines")
    export_table = exporting._export_table

    def write_meanwhile(*arguments):
        alice.add_comment(post, "Is it exported yet?")
        alice.add_image(alice.create_post("On looms"))
        return export_table(*arguments)

    monkeypatch.setattr(exporting, "_export_table", write_meanwhile)
    export(app, tmp_path / "1.gz")
    import_(empty_app, tmp_path / "1.gz")
    counts = {table: count for table, count in count_rows(empty_app).items() if count}
    assert counts == {"users": 1, "sessions": 1, "posts": 1}
    assert count_rows(app)["posts"] > 1
    with empty_app.app_context():
        assert_consistent(db.session.connection())


def test_the_documented_example_can_be_imported(app, lines, tmp_path):
    import_(app, write_archive(tmp_path / "1.gz", *lines))
    export(app, tmp_path / "2.gz")
    assert read_archive(tmp_path / "2.gz") == lines


def test_only_the_owner_can_read_an_archive(app, tmp_path):
    export(app, tmp_path / "1.gz")
    assert stat.S_IMODE((tmp_path / "1.gz").stat().st_mode) == 0o600


def test_an_existing_file_is_replaced_only_with_force(app, tmp_path):
    path = tmp_path / "1.gz"
    path.write_text("precious")
    expected = f"Error: {path} already exists. Choose another name, or add --force."
    assert run(app, "export", path) == (1, expected)
    assert path.read_text() == "precious"
    assert run(app, "export", "--force", path)[0] == 0
    assert read_archive(path)[0]["format"] == "posting archive"


def test_folders_and_devices_are_never_replaced(app, tmp_path):
    for path in (tmp_path, Path("/dev/null")):
        code, output = run(app, "export", "--force", path)
        assert (code, "is not a regular file" in output) == (1, True)
    assert not Path("/dev/null").is_file()


@pytest.mark.parametrize("failure", [OSError(28, "No space left"), KeyboardInterrupt()])
@pytest.mark.parametrize(
    "place", ["posting.ops.files._sync", "posting.ops.archive.exporting._export_table"]
)
def test_a_failed_export_leaves_the_existing_file(app, tmp_path, monkeypatch, failure, place):
    def fail(*_):
        raise failure

    (tmp_path / "1.gz").write_text("precious")
    with monkeypatch.context() as patch:
        patch.setattr(place, fail)
        code, output = run(app, "export", "--force", tmp_path / "1.gz")
    expected = f"Error: {tmp_path / '1.gz'} cannot be written (No space left)."
    assert (code, output) == (1, expected if isinstance(failure, OSError) else "Aborted!")
    assert [path.name for path in tmp_path.iterdir()] == ["1.gz"]
    assert (tmp_path / "1.gz").read_text() == "precious"


def test_a_file_that_cannot_be_opened_is_an_error(app, tmp_path):
    missing = tmp_path / "none" / "1.gz"
    for command, verb in {"export": "written", "import": "read"}.items():
        expected = f"Error: {missing} cannot be {verb} (No such file or directory)."
        assert run(app, command, missing) == (1, expected)
    expected = f"Error: {tmp_path} cannot be read (Is a directory)."
    assert run(app, "import", tmp_path) == (1, expected)


def test_import_refuses_a_database_that_is_not_empty(app, post, lines, tmp_path):
    before = export(app, tmp_path / "1.gz")
    code, output = run(app, "import", write_archive(tmp_path / "2.gz", *lines))
    assert (code, output) == (
        1,
        "Error: The database is not empty: table users has rows. "
        "Set POSTING_DATABASE_URL to a new database.",
    )
    assert export(app, tmp_path / "3.gz") == before


def test_import_refuses_a_row_in_any_table(app, lines, tmp_path):
    assert run(app, "invitations", "create")[0] == 0
    code, output = run(app, "import", write_archive(tmp_path / "1.gz", *lines))
    assert (code, "table invitations has rows" in output) == (1, True)
    assert count_rows(app)["invitations"] == 1


def test_a_service_that_was_started_can_import(app, anonymous, lines, tmp_path):
    link = describe_first_run(app, "http://127.0.0.1:8000", with_link=True)
    with app.app_context():
        db.session.add(RateWindow(key="k", hits=1, ends_at=now()))
        db.session.commit()
    lines[0]["rows"]["rate_windows"] = 1
    lines.insert(1, {"table": "rate_windows", "row": {"key": "k", "hits": 7}})
    lines[1]["row"]["ends_at"] = "2026-11-21T09:30:00.125Z"
    import_(app, write_archive(tmp_path / "1.gz", *lines))
    assert (count_rows(app)["invitations"], count_rows(app)["rate_windows"]) == (0, 1)
    new = {"username": "hedy", "password": PASSWORD, "invitation": link.rpartition("#")[2]}
    assert anonymous.post("/signup", json=new).status_code == 422


def test_an_import_that_fails_leaves_the_link_of_the_start(app, anonymous, lines, tmp_path):
    link = describe_first_run(app, "http://127.0.0.1:8000", with_link=True)
    lines[1]["row"]["role"] = "king"
    assert run(app, "import", write_archive(tmp_path / "1.gz", *lines))[0] == 1
    new = {"username": "hedy", "password": PASSWORD, "invitation": link.rpartition("#")[2]}
    assert anonymous.post("/signup", json=new).json["role"] == "owner"


def test_an_import_brings_no_link_for_the_first_owner(app, empty_app, tmp_path):
    assert describe_first_run(app, "http://127.0.0.1:8000", with_link=True)
    assert run(app, "invitations", "create")[0] == 0
    export(app, tmp_path / "1.gz")
    import_(empty_app, tmp_path / "1.gz")
    assert count_rows(empty_app)["invitations"] == 1


@pytest.mark.usefixtures("short_lock_timeout")
def test_import_fails_while_another_process_writes(app, make_app, lines, tmp_path):
    path = write_archive(tmp_path / "1.gz", *lines)
    with make_app().app_context():
        engine = db.engine
    with engine.connect() as connection:
        begin_on(connection, writes=True)
        connection.execute(sa.insert(RateWindow).values(key="k", hits=1, ends_at=now()))
        code, output = run(app, "import", path)
        connection.rollback()
    assert (code, "lock" in output) == (1, True)
    import_(app, path)


@pytest.mark.usefixtures("short_lock_timeout")
def test_clients_cannot_write_during_an_import(app, anonymous, lines, tmp_path, monkeypatch):
    """A sign-up during the import would be lost if the import is rolled back."""
    statuses = []
    import_table = importing._import_table

    def sign_up_meanwhile(*arguments):
        ada = {"username": "ada", "password": PASSWORD}
        statuses.append(anonymous.post("/signup", json=ada).status_code)
        return import_table(*arguments)

    monkeypatch.setattr(importing, "_import_table", sign_up_meanwhile)
    import_(app, write_archive(tmp_path / "1.gz", *lines))
    assert set(statuses) == {503}


def test_export_and_import_have_no_statement_timeout(app, statements, tmp_path, lines):
    import_(app, write_archive(tmp_path / "1.gz", *lines))
    export(app, tmp_path / "2.gz")
    lifted = [sql for sql in statements if sql == "SET LOCAL statement_timeout = 0"]
    # Both commands lift the limit twice: to check the schema, and for their work.
    assert len(lifted) == (4 if POSTGRES else 0)


def test_an_old_schema_is_an_error(app, tmp_path, monkeypatch):
    monkeypatch.setattr("posting.db.migrations.head_revision", lambda: "9999")
    for command in ("export", "import"):
        expected = "Error: The database schema is not current. Run: flask db upgrade"
        assert run(app, command, tmp_path / "1.gz") == (1, expected)
