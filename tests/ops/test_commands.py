"""The `flask` commands."""

import os
import subprocess
import sys

import pytest
import sqlalchemy as sa

from posting.accounts.models import User
from posting.comments.models import Comment
from posting.db.base import db
from posting.db.types import now
from posting.images import codec as imaging
from posting.images.models import Image
from posting.ops import demo
from posting.posts.models import Post
from tests.conftest import PASSWORD, POSTGRES
from tests.helpers import ROOT
from tests.helpers.assertions import assert_consistent, assert_indexed, assert_problem, follow_list
from tests.helpers.doctor import unstarted


def test_promote_and_demote_change_the_role(flask, alice):
    assert flask("users", "promote", "ALICE") == (0, "alice is a moderator now.\n")
    assert alice.get("/users/me").json["role"] == "moderator"
    assert flask("users", "demote", "alice") == (0, "alice is a member now.\n")
    assert alice.get("/users/me").json["role"] == "member"


def test_reset_password_ends_all_sessions(flask, alice, anonymous):
    code, output = flask("users", "reset-password", "alice", input="quite another one\n")
    assert (code, output) == (0, "alice has a new password and is signed out everywhere.\n")
    assert_problem(alice.get("/users/me"), 401)
    for password, status in ((PASSWORD, 401), ("quite another one", 200)):
        response = anonymous.post("/signin", json={"username": "alice", "password": password})
        assert response.status_code == status


def test_no_lock_is_held_while_the_operator_types(flask, alice, monkeypatch):
    def type_slowly():
        assert alice.post("/posts", json={"title": "a", "content": "b"}).status_code == 201
        return "quite another one"

    monkeypatch.setattr("posting.accounts.commands._read_password", type_slowly)
    assert flask("users", "reset-password", "alice")[0] == 0


@pytest.mark.parametrize("password", ["", "short", "password1", "x" * 257, "a\x00" * 8])
def test_an_invalid_password_is_an_error(flask, alice, password):
    code, output = flask("users", "reset-password", "alice", input=password + "\n")
    assert code == 1
    assert output.startswith("Error: The password is not accepted.")
    assert alice.get("/users/me").status_code == 200


@pytest.fixture
def shell(fresh_url, tmp_path):
    """Return a function that runs a line of the shell; it returns the exit code and the output."""

    def shell(line):
        process = subprocess.run(
            ["sh", "-c", f'flask() {{ "{sys.executable}" -m flask --app posting "$@"; }}; {line}'],
            cwd=ROOT,
            env=os.environ | {"POSTING_DATABASE_URL": fresh_url, "FILE": str(tmp_path / "file")},
            capture_output=True,
            text=True,
            check=False,
        )
        return process.returncode, process.stdout + process.stderr

    return shell


def test_a_closed_standard_output_is_no_place_for_an_archive(shell):
    expected = "Error: Standard output is closed. Redirect it to a file or a program.\n"
    assert shell("flask export - >&-") == (1, expected)


def test_commands_work_without_standard_output_and_standard_error(shell):
    assert shell("flask export $FILE >&- 2>&- && flask search rebuild 2>&-")[0] == 0
    if not POSTGRES:
        assert shell("flask backup --force $FILE >&- 2>&-") == (0, "")


@pytest.mark.parametrize(
    "command", ["approve", "promote", "demote", "reset-link", "reset-password"]
)
def test_an_unknown_user_is_an_error(flask, command):
    code, output = flask("users", command, "nobody", input="quite another one\n")
    assert (code, output) == (1, "Error: There is no user named nobody. Check the spelling.\n")


def test_demo_fills_the_database(flask, anonymous, app):
    numbers = {"--users": 300, "--posts": 2500, "--comments": 2000, "--images": 26}
    code, output = flask("demo", *(str(part) for option in numbers.items() for part in option))
    assert code == 0
    assert "Added 300 users and 2,500 posts with 2,000 comments and 26 images." in output
    with app.app_context():
        counts = [sa.select(sa.func.count(kind.id)) for kind in (User, Post, Comment, Image)]
        counts[0] = counts[0].where(~User.is_pending)
        assert [db.session.scalar(count) for count in counts] == list(numbers.values())
        assert_consistent(db.session.connection())
        assert_indexed(db.session.connection())
        with_replies = sa.select(Comment.post_id).where(Comment.parent_id.is_not(None)).limit(1)
        post_id = db.session.scalar(with_replies)
        assert db.session.scalar(sa.select(sa.func.max(Comment.created_at))) < now()
        name = db.session.scalar(sa.select(User.username).where(~User.is_pending).limit(1))
    assert flask("users", "promote", name)[0] == 0
    response = anonymous.post("/signin", json={"username": name, "password": demo.PASSWORD})
    assert response.status_code == 200
    assert len(anonymous.get("/posts?pinned=true").json) == 1
    [applicant] = anonymous.get("/applications").json
    assert "I have moved here" in applicant["application"]
    assert len(anonymous.get("/reports").json) == 3
    [invitation] = anonymous.get("/invitations").json
    assert (invitation["uses_left"], len(invitation["used_by"])) == (1, 1)
    posts = anonymous.get("/posts?limit=100").json
    assert len({post["author"]["username"] for post in posts}) > 10
    assert posts[0]["created_at"] > posts[-1]["created_at"]
    comments = anonymous.get(f"/posts/{post_id}/comments?limit=100").json
    assert {comment["parent_id"] for comment in comments} > {None}


def test_one_is_not_many(flask):
    one = ("--posts", "1", "--users", "1", "--comments", "1", "--images", "1")
    output = flask("demo", *one)[1]
    assert output.startswith("Added 1 user and 1 post with 1 comment and 1 image.")
    assert flask("search", "rebuild") == (0, "Indexed 1 post, 1 comment and 2 users.\n")


def test_demo_images_are_valid(flask, anonymous):
    assert flask("demo", "--posts", "1", "--users", "1", "--images", "10")[0] == 0
    [post] = anonymous.get("/posts").json
    images = anonymous.get(f"/posts/{post['id']}").json["images"]
    for comment in follow_list(anonymous, "/comments?limit=100"):
        images += comment["images"]
    assert len(images) == 10
    for image in images:
        response = anonymous.get(f"/images/{image['id']}")
        reencoded = imaging.reencode(response.data, max_bytes=2**20)
        assert response.content_type == image["media_type"] == reencoded.media_type
        assert (image["width"], image["height"]) == (reencoded.width, reencoded.height)
        assert image["size"] == len(response.data)


def test_demo_can_run_twice_with_force(flask):
    for force in ([], ["--force"]):
        assert flask("demo", "--posts", "1", "--users", "900", "--images", "0", *force)[0] == 0


@pytest.mark.parametrize("existing", ["user", "post without author"])
def test_demo_refuses_a_database_that_is_not_empty(flask, app, alice, post, existing):
    if existing != "user":
        alice.delete(f"/users/{alice.user['id']}")
    code, output = flask("demo", "--posts", "1", "--images", "0")
    assert code == 1
    assert output.startswith("Error: The database holds users or posts, and the password")
    assert "--force" in output
    with app.app_context():
        assert db.session.scalar(sa.select(sa.func.count(Post.id))) == 1


def test_progress_is_printed_as_lines_without_a_terminal(app, monkeypatch, empty_app, tmp_path):
    monkeypatch.setattr("posting.progress.SECONDS_BETWEEN_LINES", 0)

    def lines(*arguments, on=app):
        result = on.test_cli_runner().invoke(args=arguments)
        assert result.exit_code == 0, result.stderr
        assert result.stdout.count("\n") == 1
        return [line for line in result.stderr.splitlines() if " of " in line]

    posts = ("--posts", "3000", "--users", "1", "--comments", "0", "--images", "0")
    assert lines("demo", *posts) == [
        "Writing posts: 0 of 3,000",
        "Writing posts: 834 of 3,000",
        "Writing posts: 1,668 of 3,000",
        "Writing posts: 2,500 of 3,000",
        "Writing posts: 3,000 of 3,000",
    ]
    exported = lines("export", str(tmp_path / "archive"))
    rows = exported[-1].rpartition(" ")[2]  # topics and reactions vary
    assert (len(exported), exported[-1]) == (11, f"Exporting: {rows} of {rows}")
    imported = lines("import", str(tmp_path / "archive"), on=empty_app)
    assert imported[-1] == "Indexing for search: 3,002 of 3,002"
    assert f"Importing: {rows} of {rows}" in imported
    monkeypatch.setattr("posting.progress.SECONDS_BETWEEN_LINES", 60)
    ends = [f"Exporting: 0 of {rows}", f"Exporting: {rows} of {rows}"]
    assert lines("export", str(tmp_path / "other")) == ends


@pytest.mark.parametrize(
    "arguments",
    [
        ["--posts", "0"],
        ["--posts", "x"],
        ["--users", "0"],
        ["--comments", "-1"],
        ["--posts", "2", "--images", "21"],
        ["5"],
    ],
)
def test_invalid_arguments_are_usage_errors(flask, arguments):
    code, output = flask("demo", *arguments)
    assert code == 2
    assert "Usage:" in output


@pytest.mark.parametrize(
    "command",
    [
        ["demo"],
        ["export"],
        ["import"],
        ["backup"],
        ["restore"],
        ["doctor"],
        ["users", "create"],
        ["users", "list"],
        ["users", "show"],
        ["users", "delete"],
        ["users", "approve"],
        ["users", "promote"],
        ["users", "demote"],
        ["users", "suspend"],
        ["users", "restore"],
        ["users", "reset-link"],
        ["users", "reset-password"],
        ["invitations", "create"],
        ["invitations", "list"],
        ["invitations", "end"],
        ["moderation", "log"],
    ],
)
def test_help_shows_an_example(flask, command):
    code, output = flask(*command, "--help")
    assert code == 0
    assert f"Examples:\n    flask {' '.join(command)}" in output


def test_an_old_schema_is_an_error(flask, monkeypatch):
    monkeypatch.setattr("posting.db.migrations.head_revision", lambda: "9999")
    for command in (["demo"], ["users", "promote", "alice"]):
        expected = "Error: The database schema is not current. Run: flask db upgrade\n"
        assert flask(*command) == (1, expected)


@pytest.mark.parametrize("content", [None, b""], ids=["missing", "empty"])
@pytest.mark.parametrize(
    "command",
    [
        ["users", "promote", "alice"],
        ["moderation", "log"],
        ["search", "rebuild"],
        ["demo"],
        ["export", "archive"],
        ["backup", "copy.db"],
        ["db", "current"],
        ["db", "check"],
        ["db", "stamp"],
        ["db", "downgrade"],
        ["db", "downgrade", "--yes"],
    ],
    ids=" ".join,
)
def test_a_missing_database_is_named_and_not_created(flask, tmp_path, command, content):
    file = tmp_path / "instance" / "posting.db"
    if content is not None:
        file.parent.mkdir()
        file.write_bytes(content)
    before = sorted(tmp_path.rglob("*"))
    app = unstarted(INSTANCE_PATH=str(file.parent), DATABASE_URL="sqlite:///posting.db")
    code, output = flask(*command, on=app)
    assert code == 1
    assert output.startswith(f"Error: There is no database at {file}. Check POSTING_DATABASE_URL")
    assert "flask db upgrade" in output
    assert sorted(tmp_path.rglob("*")) == before
    assert content is None or file.read_bytes() == content


def test_help_needs_no_database(flask, tmp_path):
    app = unstarted(INSTANCE_PATH=str(tmp_path / "instance"), DATABASE_URL="sqlite:///posting.db")
    for command in (["users", "promote"], ["moderation", "log"], ["search", "rebuild"]):
        assert flask(*command, "--help", on=app)[0] == 0
    assert list(tmp_path.iterdir()) == []
