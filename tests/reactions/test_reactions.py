"""Reactions to posts and comments: their numbers, and the notifications about them."""

from datetime import timedelta
from io import BytesIO
from zipfile import ZipFile

import pytest
import sqlalchemy as sa

from posting.accounts.deletion import clear_account
from posting.comments.models import Comment
from posting.db.base import db
from posting.db.types import now
from posting.posts.models import Post
from posting.reactions import deletion, store
from posting.reactions.models import NAMES, NO_REACTIONS, Reaction
from tests.conftest import PASSWORD
from tests.helpers.assertions import assert_problem
from tests.helpers.notifications import choose, told

pytestmark = pytest.mark.usefixtures("stays_consistent")
UNKNOWN = "a" * 21


def path_of(text, reaction="heart"):
    kind = "comments" if "post_id" in text else "posts"
    return f"/{kind}/{text['id']}/reactions/{reaction}"


def react(client, text, reaction="heart"):
    """React to a text, and return its counts."""
    response = client.put(path_of(text, reaction))
    assert response.status_code == 200, response.text
    return response.json


def take_back(client, text, reaction="heart"):
    response = client.delete(path_of(text, reaction))
    assert response.status_code == 200, response.text
    return response.json


def counts(**numbers):
    return NO_REACTIONS | numbers


def counts_of(client, text):
    kind = "comments" if "post_id" in text else "posts"
    return client.get(f"/{kind}/{text['id']}").json["reactions"]


def own(client, post):
    found = client.get(f"/posts/{post['id']}/reactions").json
    return {each["id"]: each["reaction"] for each in found}


@pytest.fixture(params=["post", "comment"])
def text(request, alice, post):
    """A text by Alice: a post, or a comment on it."""
    return post if request.param == "post" else alice.add_comment(post, "And cloth?")


class TestCounts:
    @pytest.mark.parametrize("reaction", NAMES)
    def test_a_reaction_counts(self, bob, text, reaction):
        assert text["reactions"] == NO_REACTIONS
        assert react(bob, text, reaction) == counts(**{reaction: 1})
        assert counts_of(bob, text) == counts(**{reaction: 1})

    def test_those_of_several_members_are_added(self, alice, bob, eve, text):
        react(alice, text)
        react(bob, text)
        assert react(eve, text, "thanks") == counts(heart=2, thanks=1)

    def test_a_second_reaction_replaces_the_first(self, bob, eve, text):
        react(bob, text)
        react(eve, text)
        assert react(bob, text, "laugh") == counts(heart=1, laugh=1)

    def test_the_same_reaction_again_changes_nothing(self, bob, text):
        assert react(bob, text) == react(bob, text) == counts(heart=1)

    def test_a_reaction_is_taken_back(self, bob, eve, text):
        react(bob, text)
        react(eve, text)
        assert take_back(bob, text) == counts(heart=1)
        assert take_back(bob, text) == counts(heart=1)

    def test_another_one_than_ones_own_is_not_taken_back(self, bob, eve, text):
        react(bob, text)
        react(eve, text, "laugh")
        assert take_back(bob, text, "laugh") == counts(heart=1, laugh=1)

    def test_it_is_no_edit(self, alice, bob, post):
        before = alice.get(f"/posts/{post['id']}")
        react(bob, post)
        after = alice.get(f"/posts/{post['id']}")
        assert after.headers["ETag"] != before.headers["ETag"]
        assert after.json["updated_at"] == before.json["updated_at"]
        edit = {"json": {"title": "On looms"}, "headers": {"If-Match": before.headers["ETag"]}}
        assert alice.patch(f"/posts/{post['id']}", **edit).status_code == 200

    def test_lists_have_them(self, alice, bob, post):
        comment = alice.add_comment(post, "And cloth?")
        react(bob, post)
        react(bob, comment, "party")
        assert [each["reactions"] for each in bob.get("/posts").json] == [counts(heart=1)]
        for path in ("/comments", f"/posts/{post['id']}/comments"):
            assert [each["reactions"] for each in bob.get(path).json] == [counts(party=1)]

    def test_a_locked_post_takes_them(self, bob, moderator, post):
        assert moderator.put(f"/posts/{post['id']}/lock").status_code == 204
        assert react(bob, post) == counts(heart=1)


class TestErrors:
    @pytest.mark.parametrize("method", ["PUT", "DELETE"])
    @pytest.mark.parametrize("kind", ["posts", "comments"])
    def test_a_text_that_does_not_exist(self, bob, kind, method):
        response = bob.open(f"/{kind}/{UNKNOWN}/reactions/heart", method=method)
        assert_problem(response, 404)
        assert response.json["code"] == f"no_such_{kind[:-1]}"

    def test_a_reaction_that_does_not_exist(self, bob, text):
        assert_problem(bob.put(path_of(text, "thumbs_down")), 404)

    def test_a_comment_that_is_kept_for_its_replies(self, alice, bob, post):
        comment = alice.add_comment(post, "And cloth?")
        alice.add_comment(post, "Cloth too.", parent_id=comment["id"])
        react(bob, comment)
        assert alice.delete(f"/comments/{comment['id']}").status_code == 204
        assert counts_of(bob, comment) == NO_REACTIONS
        assert_problem(bob.put(path_of(comment)), 404)
        assert own(bob, post) == {}

    def test_more_than_the_limit(self, make_app, bob, post):
        limited = bob.copy(make_app(RATE_LIMITS="on", LIMIT_COMMENTS="1/hour"))
        for _ in range(4):
            react(limited, post)
        assert_problem(limited.put(path_of(post)), 429)
        assert_problem(limited.delete(path_of(post)), 429)


class TestOwn:
    def test_a_member_reads_their_own_to_a_post_and_its_comments(self, alice, bob, eve, post):
        comments = [alice.add_comment(post, text) for text in ("One", "Two")]
        react(bob, post)
        react(bob, comments[0], "party")
        react(eve, comments[1])
        react(bob, alice.create_post("On looms"))
        assert own(bob, post) == {post["id"]: "heart", comments[0]["id"]: "party"}
        assert own(alice, post) == {}

    def test_the_latest_are_listed_up_to_a_maximum(self, app, alice, bob, post, monkeypatch):
        monkeypatch.setattr(store, "MAX_LISTED", 2)
        first, *others = [post, *(alice.add_comment(post, "x") for _ in range(2))]
        react(bob, first)
        with app.app_context():
            later = now() + timedelta(seconds=1)
            of_bob = {"user_id": bob.user["id"], "post_id": post["id"], "name": "party"}
            rows = [
                of_bob | {"text_id": each["id"], "comment_id": each["id"], "created_at": later}
                for each in others
            ]
            db.session.execute(sa.insert(Reaction), rows)
            db.session.execute(sa.update(Comment).values(party=1))
            db.session.commit()
        assert own(bob, post) == {each["id"]: "party" for each in others}


class TestNotifications:
    def test_the_author_of_the_text_is_told(self, alice, bob, post, text):
        react(bob, text)
        [notification] = told(alice)
        assert notification["kind"] == "reaction"
        assert notification["actor"]["username"] == "bob"
        assert notification["post"]["id"] == post["id"]
        assert (notification["comment"] or notification["post"])["id"] == text["id"]

    def test_nobody_is_told_of_their_own_or_of_a_change(self, alice, bob, text):
        react(alice, text)
        assert told(alice) == []
        react(bob, text)
        react(bob, text, "laugh")
        assert len(told(alice)) == 1

    def test_who_takes_a_reaction_back_takes_the_notification_back(self, alice, bob, eve, text):
        react(bob, text)
        react(eve, text)
        take_back(bob, text)
        assert [each["actor"]["username"] for each in told(alice)] == ["eve"]

    def test_a_muted_post_is_silent(self, alice, bob, post, text):
        choose(alice, post, "muted")
        react(bob, text)
        assert told(alice) == []

    def test_the_inbox_gathers_those_of_a_text(self, alice, bob, eve, post):
        comment = alice.add_comment(post, "And cloth?")
        for client in (bob, eve):
            react(client, post)
            react(client, comment)
        bob.add_comment(post, "Cloth too.")
        groups = alice.get("/notifications/posts").json
        kinds = [(group["latest"]["kind"], group["unread"]) for group in groups]
        assert kinds == [("comment", 1), ("reaction", 2), ("reaction", 2)]
        assert [actor["username"] for actor in groups[1]["actors"]] == ["eve", "bob"]
        assert {group["latest"]["comment"] and "comment" for group in groups[1:]} == {
            None,
            "comment",
        }

    def test_who_reads_the_post_has_read_them(self, alice, bob, post, text):
        other = alice.create_post("On looms")
        react(bob, text)
        react(bob, other)
        seen = alice.put(f"/posts/{post['id']}/seen", json={"up_to": None})
        assert seen.status_code == 200
        assert [each["post"]["id"] for each in told(alice, "?unread=true")] == [other["id"]]


class TestDeletion:
    def test_reactions_end_with_their_text(self, app, alice, bob, post, text):
        react(bob, text)
        path = "comments" if "post_id" in text else "posts"
        assert alice.delete(f"/{path}/{text['id']}").status_code == 204
        with app.app_context():
            assert db.session.scalars(sa.select(Reaction)).all() == []

    def test_those_of_a_deleted_account_no_longer_count(self, alice, bob, eve, post):
        comment = alice.add_comment(post, "And cloth?")
        for client in (bob, eve):
            react(client, post)
            react(client, comment, "party")
        response = bob.delete("/users/me", json={"current_password": PASSWORD})
        assert response.status_code == 204, response.text
        assert counts_of(alice, post) == counts(heart=1)
        assert counts_of(alice, comment) == counts(party=1)

    def test_those_of_a_deleted_account_are_no_longer_in_the_inbox(self, alice, bob, eve, text):
        for client in (bob, eve):
            react(client, text)
        assert bob.delete("/users/me", json={"current_password": PASSWORD}).status_code == 204
        assert [each["actor"]["username"] for each in told(alice)] == ["eve"]

    def test_a_comment_with_replies_loses_them_all(self, alice, bob, eve, post, monkeypatch):
        monkeypatch.setattr(deletion, "REACTIONS_PER_STEP", 2)
        comment = alice.add_comment(post, "And cloth?")
        bob.add_comment(post, "A reply", parent_id=comment["id"])
        for client in (alice, bob, eve):
            react(client, comment)
        assert alice.delete(f"/comments/{comment['id']}").status_code == 204
        assert counts_of(alice, comment) == counts()
        assert own(bob, post) == {}

    @pytest.mark.parametrize("with_content", [False, True])
    def test_an_account_with_many_is_cleared_in_steps(
        self, app, alice, bob, monkeypatch, with_content
    ):
        monkeypatch.setattr(deletion, "REACTIONS_PER_STEP", 2)
        post = alice.create_post("On engines")
        texts = [post, *(alice.add_comment(post, "x") for _ in range(4))]
        for text in texts:
            react(bob, text)
            react(alice, text)
        with app.app_context():
            clear_account(bob.user["id"], with_content=with_content)
        assert [counts_of(alice, text)["heart"] for text in texts] == [1] * 5
        with app.app_context():
            clear_account(alice.user["id"], with_content=with_content)
            assert db.session.scalars(sa.select(Reaction)).all() == []
            assert len(db.session.scalars(sa.select(Post)).all()) == (0 if with_content else 1)

    def test_the_export_of_a_member_has_them(self, bob, post):
        react(bob, post)
        bob.post("/session-confirmations", json={"current_password": PASSWORD})
        response = bob.get("/users/me/export")
        with ZipFile(BytesIO(response.data)) as archive:
            assert post["id"] in archive.read("reactions.json").decode()
