"""The commands that list, show and delete accounts."""

import json
from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa

from posting.accounts import deletion, store
from posting.accounts.models import User
from posting.comments import deletion as comment_deletion
from posting.comments.models import Comment
from posting.db.base import db
from posting.db.transactions import unit_of_work
from posting.db.types import now, to_rfc3339
from posting.invitations.store import create_invitation
from posting.moderation.models import Act
from posting.posts import deletion as post_deletion
from tests.conftest import PASSWORD, apply
from tests.helpers.assertions import assert_problem
from tests.helpers.threads import in_thread

DAY = timedelta(days=1)
START = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def change(app):
    """Return a function that sets columns of an account."""

    def change(username, **values):
        with app.app_context():
            statement = sa.update(User).where(User.username == username)
            db.session.execute(statement.values(**values))
            db.session.commit()

    return change


@pytest.fixture
def names(flask):
    """Return a function that returns the names that `flask users list` prints."""

    def names(*options):
        code, output = flask("users", "list", *options)
        assert code == 0
        heading, *lines = output.splitlines()
        assert heading.split() == ["NAME", "ROLE", "STATE", "CREATED", "LAST", "SEEN"]
        listed = [line.split()[0] for line in lines]
        code, output = flask("users", "list", "--json", *options)
        assert [json.loads(line)["username"] for line in output.splitlines()] == listed
        return listed

    return names


class TestList:
    def test_it_has_who_there_is_in_columns(self, flask, change, alice, moderator):
        change("alice", created_at=START, last_seen_at=START + DAY)
        change("morgan", created_at=START, last_seen_at=None, suspended_at=START)
        assert flask("users", "list")[1].splitlines() == [
            "NAME                             ROLE      STATE     CREATED    LAST SEEN",
            "alice                            member    active    2026-03-01 2026-03-02",
            "morgan                           moderator suspended 2026-03-01 never",
        ]

    def test_scripts_get_an_object_on_each_line(self, flask, change, alice):
        change("alice", created_at=START, last_seen_at=START + DAY)
        code, output = flask("users", "list", "--json")
        assert code == 0
        assert [json.loads(line) for line in output.splitlines()] == [
            {
                "id": alice.user["id"],
                "username": "alice",
                "role": "member",
                "state": "active",
                "created_at": "2026-03-01T12:00:00.000Z",
                "last_seen_at": "2026-03-02T12:00:00.000Z",
            }
        ]

    @pytest.mark.parametrize("batch", [1, 2, 3, 1000])
    def test_it_is_in_the_order_of_names(self, names, sign_in, monkeypatch, batch):
        monkeypatch.setattr(store, "BATCH", batch)
        for name in ("bob", "Alice", "carol-2", "carol", "CAROL_2"):
            sign_in(name)
        assert names() == ["Alice", "bob", "carol", "carol-2", "CAROL_2"]
        assert names("--role", "moderator") == []

    def test_no_transaction_is_open_while_it_is_read(self, app, sign_in, monkeypatch):
        monkeypatch.setattr(store, "BATCH", 1)
        for name in ("alice", "bob"):
            sign_in(name)
        with app.app_context():
            accounts = store.list_accounts()
            assert next(accounts)["username"] == "alice"
            sign_in("carol")  # an open transaction would not see her
            assert [account["username"] for account in accounts] == ["bob", "carol"]

    def test_it_has_the_accounts_in_a_state(self, app, names, change, sign_in):
        for name in ("active", "suspended", "was-suspended"):
            sign_in(name)
        apply(app)
        change("suspended", suspended_at=START)
        change("was-suspended", suspended_at=START, suspended_until=START + DAY)
        assert names("--state", "active") == ["active", "was-suspended"]
        assert names("--state", "suspended") == ["suspended"]
        [pending] = names("--state", "pending")
        assert pending.startswith("hopeful-")

    def test_it_has_the_accounts_with_a_role(self, names, alice, moderator):
        assert names("--role", "member") == ["alice"]
        assert names("--role", "moderator") == ["morgan"]
        assert names("--role", "moderator", "--state", "suspended") == []

    def test_it_has_the_accounts_that_were_used_since_a_day(self, names, change, sign_in):
        midnight = datetime(2026, 6, 1, tzinfo=UTC)
        for name, created_at, last_seen_at in (
            ("seen-before", START, midnight - DAY / 1000),
            ("seen-since", START, midnight),
            ("never-seen", START, None),
            ("new-and-never-seen", midnight, None),
        ):
            sign_in(name)
            change(name, created_at=created_at, last_seen_at=last_seen_at)
        assert names("--seen-since", "2026-06-01") == ["seen-since"]
        assert names("--not-seen-since", "2026-06-01") == ["never-seen", "seen-before"]
        between = ("--seen-since", "2026-05-01", "--not-seen-since", "2026-06-01")
        assert names(*between) == ["seen-before"]

    @pytest.mark.parametrize(
        "options", [["--state", "x"], ["--role", "king"], ["--seen-since", "yesterday"], ["alice"]]
    )
    def test_invalid_filters_are_usage_errors(self, flask, options):
        code, output = flask("users", "list", *options)
        assert code == 2
        assert "Usage:" in output


@pytest.fixture
def invite(make_app):
    """Return a function that signs up a user by an invitation of a member."""
    app = make_app(INVITATIONS="members")

    def invite(creator, username):
        with app.app_context(), unit_of_work():
            _, code = create_invitation(creator.user["id"])
        body = {"username": username, "password": PASSWORD, "invitation": code}
        assert app.test_client().post("/signup", json=body).status_code == 201

    return invite


class TestShow:
    def test_it_has_dates_counts_and_who_invited_whom(self, flask, alice, bob, invite, change):
        post = alice.create_post("On engines")
        alice.create_post("On looms")
        for client in (alice, alice, alice, bob):
            client.add_comment(post, "A comment")
        alice.add_image(post)
        alice.post("/tokens", json={"name": "x", "scope": "read"})
        elsewhere = alice.application.test_client()
        elsewhere.post("/signin", json={"username": "alice", "password": PASSWORD})
        invite(alice, "grace")
        invite(alice, "hedy")
        for name in ("alice", "grace"):
            change(name, created_at=START, last_seen_at=None)
        code, output = flask("users", "show", "ALICE", "--json")
        assert code == 0
        assert json.loads(output) == {
            "id": alice.user["id"],
            "username": "alice",
            "display_name": "Alice",
            "avatar_url": None,
            "role": "member",
            "state": "active",
            "created_at": "2026-03-01T12:00:00.000Z",
            "last_seen_at": None,
            "suspended_at": None,
            "suspended_until": None,
            "suspension_reason": None,
            "application": None,
            "sessions": 2,
            "tokens": 1,
            "posts": 2,
            "comments": 3,
            "images": 1,
            "files": 0,
            "invited_by": None,
            "invited": ["grace", "hedy"],
            "open_reports": 0,
            "closed_reports": 0,
        }
        grace = json.loads(flask("users", "show", "grace", "--json")[1])
        assert (grace["invited_by"], grace["invited"]) == ("alice", [])
        assert (grace["sessions"], grace["posts"]) == (0, 0)

    def test_people_get_a_line_for_each_fact(self, flask, change, alice, invite):
        invite(alice, "grace")
        invite(alice, "hedy")
        change("alice", created_at=START, last_seen_at=None)
        assert flask("users", "show", "alice")[1].splitlines() == [
            f"id:                {alice.user['id']}",
            "username:          alice",
            "display name:      Alice",
            "role:              member",
            "state:             active",
            "created:           2026-03-01T12:00:00.000Z",
            "last seen:         never",
            "sessions:          1",
            "tokens:            0",
            "posts:             0",
            "comments:          0",
            "images:            0",
            "files:             0",
            "invited:           grace, hedy",
            "open reports:      0",
            "closed reports:    0",
        ]
        assert "invited by:        alice\n" in flask("users", "show", "grace")[1]

    def test_it_says_when_a_suspension_ends(self, flask, change, alice):
        until = now() + DAY
        change("alice", suspended_at=now(), suspended_until=until)
        output = flask("users", "show", "alice")[1]
        assert "state:             suspended\n" in output
        assert f"suspended until:   {to_rfc3339(until)}\n" in output

    def test_what_members_write_does_not_control_the_terminal(self, flask, change, alice):
        text = "I\x1b[2J weave.\n\x9bmYes\u202e, tó."
        change("alice", pending_since=now(), application=text, display_name="A\x1b]0;x\x07")
        output = flask("users", "show", "alice")[1]
        assert "application:       I\\x1b[2J weave.\\n\\x9bmYes\\u202e, tó.\n" in output
        assert "display name:      A\\x1b]0;x\\x07\n" in output
        assert output.replace("\n", "").isprintable()
        shown = flask("users", "show", "alice", "--json")[1]
        assert json.loads(shown)["application"] == text
        assert shown.isascii()

    def test_an_unknown_user_is_an_error(self, flask):
        expected = "Error: There is no user named nobody. Check the spelling.\n"
        assert flask("users", "show", "nobody") == (1, expected)


class TestDeletion:
    @pytest.fixture
    def written(self, alice, bob):
        """A post by Alice with a comment of Bob, and a comment by Alice on a post by Bob."""
        own, other = alice.create_post("On engines"), bob.create_post("On looms")
        bob.add_comment(own, "Of Bob")
        alice.add_comment(other, "Of Alice")
        return own, other

    @pytest.mark.usefixtures("stays_consistent")
    @pytest.mark.parametrize("content", ["keep", "delete"])
    def test_it_deletes_an_account_with_or_without_its_content(
        self, flask, app, alice, written, content
    ):
        anonymous = app.test_client()
        code, output = flask("users", "delete", "ALICE", "--content", content, "--yes")
        assert (code, output) == (0, "alice is deleted.\n")
        assert_problem(alice.get("/users/me"), 401)
        assert anonymous.get(f"/users/{alice.user['id']}").status_code == 404
        own, other = (anonymous.get(f"/posts/{post['id']}") for post in written)
        comments = anonymous.get(f"/posts/{written[1]['id']}/comments").json
        if content == "keep":
            assert own.json["author"] is None
            assert [comment["author"] for comment in comments] == [None]
        else:
            assert own.status_code == 404
            assert comments == []
        assert other.json["author"]["username"] == "bob"
        with app.app_context():
            [act] = db.session.scalars(sa.select(Act))
            assert (act.moderator, act.action) == ("operator", "deleted")
            assert (act.target_kind, act.target_id) == ("user", alice.user["id"])

    def test_a_pending_account_is_deleted(self, flask, app):
        id = apply(app)
        with app.app_context():
            name = db.session.get(User, id).username
        assert flask("users", "delete", name, "--content", "keep", "--yes")[0] == 0
        with app.app_context():
            assert db.session.get(User, id) is None

    @pytest.mark.usefixtures("written")
    @pytest.mark.parametrize(
        ("content", "fate"), [("keep", "stay without an author"), ("delete", "are deleted too")]
    )
    def test_it_asks_before(self, flask, anonymous, alice, content, fate):
        arguments = ("users", "delete", "alice", "--content", content)
        question = f"Delete the account of alice? Its posts and comments (2) {fate}. [y/N]: "
        for answer in ("n\n", ""):
            code, output = flask(*arguments, input=answer)
            assert code == 1
            assert output.startswith(question)
            assert anonymous.get(f"/users/{alice.user['id']}").status_code == 200
        code, output = flask(*arguments, input="y\n")
        assert code == 0
        assert output.endswith("alice is deleted.\n")
        assert anonymous.get(f"/users/{alice.user['id']}").status_code == 404

    @pytest.mark.usefixtures("stays_consistent")
    @pytest.mark.parametrize("content", ["keep", "delete"])
    def test_it_goes_in_steps_and_shows_them(self, app, alice, monkeypatch, content):
        post = alice.create_post("On engines")
        for number in range(5):
            alice.add_comment(post, str(number))
        alice.create_post("On looms")
        pauses = []
        monkeypatch.setattr(deletion, "sleep", pauses.append)
        monkeypatch.setattr(comment_deletion, "COMMENTS_PER_STEP", 2)
        monkeypatch.setattr(post_deletion, "POSTS_PER_STEP", 2)
        monkeypatch.setattr("posting.progress.SECONDS_BETWEEN_LINES", 0)
        result = app.test_cli_runner().invoke(
            args=["users", "delete", "alice", "--content", content, "--yes"]
        )
        assert result.exit_code == 0
        lines = [line for line in result.stderr.splitlines() if line.startswith("Deleting")]
        assert lines == [f"Deleting alice: {done} of 7" for done in (0, 2, 4, 5, 7)]
        assert pauses == [0.1, 0.1, 0.1]

    def test_it_can_be_repeated_after_an_interruption(
        self, app, flask, alice, written, monkeypatch
    ):
        def interrupt(*_, **__):
            raise KeyboardInterrupt

        arguments = ("users", "delete", "alice", "--content", "delete", "--yes")
        with monkeypatch.context() as patched:
            patched.setattr("posting.accounts.commands.delete_account", interrupt)
            assert flask(*arguments)[0] == 1
        assert alice.get("/users/me").status_code == 200
        with app.app_context():
            of_alice = sa.select(sa.func.count()).where(Comment.author_id == alice.user["id"])
            assert db.session.scalar(of_alice) == 0
        assert flask(*arguments)[0] == 0
        assert_problem(alice.get("/users/me"), 401)

    @pytest.mark.usefixtures("written")
    def test_what_is_written_meanwhile_is_deleted_too(self, flask, alice, bob, monkeypatch):
        lock_account = store.lock_account

        def write_and_lock(id):
            in_thread(lambda: alice.add_comment(alice.create_post("Spam"), "Spam"))
            return lock_account(id)

        monkeypatch.setattr("posting.accounts.commands.lock_account", write_and_lock)
        assert flask("users", "delete", "alice", "--content", "delete", "--yes")[0] == 0
        assert [post["title"] for post in bob.get("/posts").json] == ["On looms"]

    def test_the_content_must_be_chosen(self, flask, alice):
        code, output = flask("users", "delete", "alice", "--yes")
        assert code == 2
        assert "--content" in output

    def test_an_unknown_user_is_an_error(self, flask):
        expected = "Error: There is no user named nobody. Check the spelling.\n"
        assert flask("users", "delete", "nobody", "--content", "keep", "--yes") == (1, expected)
