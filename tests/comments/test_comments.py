"""Comments and replies: create, read, list, edit, delete."""

import random
from datetime import timedelta

import pytest
import sqlalchemy as sa

from posting.accounts.models import Session
from posting.comments import views
from posting.db.transactions import transaction
from posting.db.types import now
from posting.reactions.models import NO_REACTIONS
from posting.web.limits import Hits
from tests.helpers.assertions import assert_problem, error_locations, follow_pages, next_url

pytestmark = pytest.mark.usefixtures("stays_consistent")
UNKNOWN = "a" * 21


def list_path(post):
    return f"/posts/{post['id']}/comments"


def path(comment):
    return f"/comments/{comment['id']}"


def comments_on(client, post):
    return client.get(list_path(post)).json


def comment_count(client, post):
    return client.get(f"/posts/{post['id']}").json["comment_count"]


def delete(client, comment):
    response = client.delete(path(comment))
    assert (response.status_code, response.data) == (204, b"")


@pytest.fixture
def comment(alice, post):
    return alice.add_comment(post, "And cloth?")


def test_a_comment_is_created_and_read(alice, anonymous, post):
    created = alice.post(list_path(post), json={"content": "And *cloth*?\n🧵"})

    assert created.status_code == 201
    comment = created.json
    assert comment == {
        "id": comment["id"],
        "post_id": post["id"],
        "parent_id": None,
        "author": post["author"],
        "content": "And *cloth*?\n🧵",
        "deleted": False,
        "created_at": comment["created_at"],
        "updated_at": comment["created_at"],
        "reactions": NO_REACTIONS,
        "images": [],
        "files": [],
    }
    assert created.headers["Location"] == f"http://localhost{path(comment)}"
    read = anonymous.get(created.headers["Location"])
    assert read.json == comment
    assert read.headers["ETag"] == created.headers["ETag"]
    assert comments_on(anonymous, post) == [comment]


def test_a_comment_changes_the_count_but_not_the_version_of_its_post(alice, bob, anonymous, post):
    etag = anonymous.get(f"/posts/{post['id']}").headers["ETag"]
    bob.add_comment(post, "One")
    alice.add_comment(post, "Two")
    read = anonymous.get(f"/posts/{post['id']}", headers={"If-None-Match": etag})
    assert read.status_code == 200
    changed = {"comment_count": 2, "last_activity_at": read.json["last_activity_at"]}
    assert read.json == post | changed
    assert anonymous.get("/posts").json[0]["comment_count"] == 2
    edit = alice.patch(f"/posts/{post['id']}", json={"title": "x"}, headers={"If-Match": etag})
    assert edit.status_code == 200


def test_the_first_page_has_a_new_etag_once_a_second_page_exists(alice, anonymous, post):
    for number in range(2):
        alice.add_comment(post, str(number))
    url = f"{list_path(post)}?limit=2"
    before = anonymous.get(url)
    alice.add_comment(post, "2")
    after = anonymous.get(url, headers={"If-None-Match": before.headers["ETag"]})
    assert (after.status_code, after.json) == (200, before.json)
    assert next_url(after)


def test_replies_nest_to_any_depth(alice, bob, anonymous, post):
    parent_id = None
    for depth in range(60):
        author = (alice, bob)[depth % 2]
        parent_id = author.add_comment(post, str(depth), parent_id=parent_id)["id"]
    rows = [row for page in follow_pages(anonymous, list_path(post)) for row in page]
    assert [row["content"] for row in rows] == [str(depth) for depth in range(60)]
    assert [row["parent_id"] for row in rows] == [None, *(row["id"] for row in rows[:-1])]
    assert comment_count(anonymous, post) == 60


@pytest.mark.parametrize("limit", [1, 2, 7, 100])
def test_a_parent_precedes_its_replies_on_all_pages(alice, anonymous, post, limit, monkeypatch):
    """Even if the clock stands still, or is behind the clock of another machine."""
    start = now()
    times = [start - timedelta(seconds=second) for second in range(3)]
    monkeypatch.setattr("posting.comments.store.now", lambda: random.choice(times))
    comments = [alice.add_comment(post, "root")]
    for number in range(20):
        parent_id = random.choice(comments)["id"] if number % 3 else None
        comments.append(alice.add_comment(post, str(number), parent_id=parent_id))
    rows = [
        row for page in follow_pages(anonymous, f"{list_path(post)}?limit={limit}") for row in page
    ]
    assert rows == sorted(comments, key=lambda row: (row["created_at"], row["id"]))
    seen = {None}
    for row in rows:
        assert row["parent_id"] in seen
        seen.add(row["id"])


def test_a_page_has_fifty_comments_by_default(alice, anonymous, post):
    for number in range(51):
        alice.add_comment(post, str(number))
    first = anonymous.get(list_path(post))
    assert len(first.json) == 50
    [last] = anonymous.get(next_url(first)).json
    assert last["content"] == "50"


@pytest.mark.parametrize("name", ["sort", "order"])
def test_a_list_may_begin_with_the_newest(alice, anonymous, post, name):
    """`order` is the former name of `sort`."""
    rows = [alice.add_comment(post, str(number)) for number in range(5)]
    url = f"{list_path(post)}?{name}=newest&limit=2"
    assert [row for page in follow_pages(anonymous, url) for row in page] == rows[::-1]
    cursor = next_url(anonymous.get(url)).rpartition("=")[2]
    assert error_locations(anonymous.get(f"{list_path(post)}?cursor={cursor}")) == {"cursor"}
    assert anonymous.get(f"{list_path(post)}?{name}=oldest").json == rows
    assert error_locations(anonymous.get(f"{list_path(post)}?{name}=best")) == {name}


def test_a_list_takes_only_one_name_of_its_order(anonymous, post):
    for order in ("newest", "oldest"):
        response = anonymous.get(f"{list_path(post)}?sort=newest&order={order}")
        assert error_locations(response) == {"order"}


def test_the_comments_of_a_user_are_listed_newest_first(alice, bob, anonymous, post):
    other = bob.create_post("Another")
    rows = [alice.add_comment((post, other)[number % 2], str(number)) for number in range(5)]
    reply = bob.add_comment(post, "A reply", parent_id=rows[0]["id"])
    delete(alice, rows[0])
    delete(alice, rows[3])
    path = f"/users/{alice.user['id']}/comments"
    pages = follow_pages(anonymous, f"{path}?limit=2")
    expected = [
        row | {"post_title": on["title"]}
        for row, on in ((rows[4], post), (rows[2], post), (rows[1], other))
    ]
    assert [row for page in pages for row in page] == expected
    [found] = anonymous.get(f"/users/{bob.user['id']}/comments").json
    assert found == reply | {"post_title": post["title"]}


def test_a_user_without_comments_has_an_empty_list_and_an_unknown_one_none(alice, anonymous):
    assert anonymous.get(f"/users/{alice.user['id']}/comments").json == []
    response = anonymous.get(f"/users/{UNKNOWN}/comments")
    assert assert_problem(response, 404)["detail"] == "There is no such user."


def test_changes_between_pages_neither_repeat_nor_skip_a_comment(alice, anonymous, post):
    rows = [alice.add_comment(post, str(number)) for number in range(6)]
    first = anonymous.get(f"{list_path(post)}?limit=3")
    delete(alice, rows[2])
    delete(alice, rows[4])
    new = alice.add_comment(post, "new")
    rest = [row for page in follow_pages(anonymous, next_url(first)) for row in page]
    assert rest == [rows[3], rows[5], new]


def test_a_cursor_of_another_post_gets_422(alice, anonymous, post):
    other = alice.create_post("Another")
    for number in range(2):
        alice.add_comment(post, str(number))
    url = next_url(anonymous.get(f"{list_path(post)}?limit=1"))
    query = url.partition("?")[2]
    assert error_locations(anonymous.get(f"{list_path(other)}?{query}")) == {"cursor"}


def test_the_list_is_empty_without_comments_and_404_without_a_post(anonymous, post):
    empty = anonymous.get(list_path(post))
    assert (empty.status_code, empty.json) == (200, [])
    response = anonymous.get(f"/posts/{UNKNOWN}/comments")
    assert assert_problem(response, 404)["detail"] == "There is no such post."
    assert error_locations(anonymous.get("/posts/short/comments?limit=0")) == {"id", "limit"}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({}, {"/content"}),
        ({"content": ""}, {"/content"}),
        ({"content": " \n"}, {"/content"}),
        ({"content": "x" * 10_001}, {"/content"}),
        ({"content": None}, {"/content"}),
        ({"content": "a\x00b"}, {"/content"}),
        ({"content": "x", "parent_id": "short"}, {"/parent_id"}),
        ({"content": "x", "parent_id": 7}, {"/parent_id"}),
        ({"content": "x", "parent_id": UNKNOWN}, {"/parent_id"}),
        ({"content": "x", "post_id": UNKNOWN, "deleted": True}, {"/post_id", "/deleted"}),
    ],
)
def test_an_invalid_comment_gets_422_and_not_saved(alice, post, body, expected):
    assert error_locations(alice.post(list_path(post), json=body)) == expected
    assert comments_on(alice, post) == []
    assert comment_count(alice, post) == 0


def test_the_longest_comment_is_stored_as_sent(alice, post):
    content = "ß" * 9_998 + " \n"
    assert alice.add_comment(post, content)["content"] == content


def test_a_reply_on_a_post_that_is_deleted_meanwhile_gets_404(
    alice, bob, post, comment, monkeypatch
):
    """And not 422, although its parent is gone as well."""
    is_locked = views.is_locked

    def delete_then(id):
        monkeypatch.setattr(views, "is_locked", is_locked)
        locked = is_locked(id)
        assert alice.delete(f"/posts/{id}").status_code == 204
        return locked

    monkeypatch.setattr(views, "is_locked", delete_then)
    body = {"content": "x", "parent_id": comment["id"]}
    assert_problem(bob.post(list_path(post), json=body), 404)


def test_a_parent_must_be_an_undeleted_comment_on_the_same_post(alice, bob, post, comment):
    elsewhere = alice.add_comment(alice.create_post("Another"), "Elsewhere")
    bob.add_comment(post, "A reply", parent_id=comment["id"])
    delete(alice, comment)
    for parent in (elsewhere, comment):
        body = {"content": "x", "parent_id": parent["id"]}
        assert error_locations(bob.post(list_path(post), json=body)) == {"/parent_id"}


def test_a_comment_on_an_unknown_post_gets_404(alice):
    body = {"content": "x", "parent_id": UNKNOWN}
    assert_problem(alice.post(f"/posts/{UNKNOWN}/comments", json=body), 404)
    assert error_locations(alice.post("/posts/short/comments", json={})) == {"id", "/content"}


def test_a_session_that_ends_during_the_request_does_not_comment(alice, post, monkeypatch):
    """The account's lock is what a deletion of the account waits for, and checks the session."""

    def end_sessions(*_):
        with transaction() as connection:
            connection.execute(sa.delete(Session))

    monkeypatch.setattr(Hits, "count", end_sessions)
    assert_problem(alice.post(list_path(post), json={"content": "Too late"}), 401)
    assert comments_on(alice, post) == []


class TestEdit:
    def test_an_edit_changes_the_content(self, alice, anonymous, post, comment):
        edited = alice.patch(path(comment), json={"content": "And silk?"})
        assert edited.status_code == 200
        assert edited.json["content"] == "And silk?"
        assert edited.json["updated_at"] >= comment["updated_at"]
        unchanged = comment.keys() - {"content", "updated_at"}
        assert all(edited.json[name] == comment[name] for name in unchanged)
        read = anonymous.get(path(comment))
        assert (read.json, read.headers["ETag"]) == (edited.json, edited.headers["ETag"])
        assert comments_on(anonymous, post) == [edited.json]

    @pytest.mark.parametrize("body", [{}, {"content": "And cloth?"}])
    def test_an_edit_without_changes_keeps_the_etag(self, alice, comment, body):
        before = alice.get(path(comment)).headers["ETag"]
        edited = alice.patch(path(comment), json=body)
        assert (edited.status_code, edited.json) == (200, comment)
        assert edited.headers["ETag"] == before

    @pytest.mark.parametrize(
        ("body", "expected"),
        [
            ({"content": None}, {"/content"}),
            ({"content": "\t"}, {"/content"}),
            ({"parent_id": None, "author": None}, {"/parent_id", "/author"}),
        ],
    )
    def test_an_invalid_edit_gets_422_and_changes_nothing(self, alice, comment, body, expected):
        assert error_locations(alice.patch(path(comment), json=body)) == expected
        assert alice.get(path(comment)).json == comment

    def test_only_the_author_edits_a_comment(self, bob, moderator, comment):
        for other in (bob, moderator):
            assert_problem(other.patch(path(comment), json={"content": "Mine"}), 403)
        assert bob.get(path(comment)).json == comment

    def test_a_change_with_an_old_etag_gets_412(self, alice, comment):
        headers = {"If-Match": alice.get(path(comment)).headers["ETag"]}
        edited = alice.patch(path(comment), json={"content": "Two"}, headers=headers)
        assert edited.status_code == 200
        assert_problem(alice.patch(path(comment), json={"content": "3"}, headers=headers), 412)
        assert_problem(alice.delete(path(comment), headers=headers), 412)
        assert alice.get(path(comment)).json == edited.json


class TestDeletion:
    def test_a_comment_without_replies_is_removed(self, alice, anonymous, post, comment):
        delete(alice, comment)
        assert_problem(alice.delete(path(comment)), 404)
        assert_problem(anonymous.get(path(comment)), 404)
        assert comments_on(anonymous, post) == []
        assert comment_count(anonymous, post) == 0

    def test_a_comment_with_replies_becomes_a_placeholder(
        self, alice, bob, anonymous, post, comment
    ):
        reply = bob.add_comment(post, "A reply", parent_id=comment["id"])
        etag = anonymous.get(path(comment)).headers["ETag"]
        delete(alice, comment)

        placeholder = anonymous.get(path(comment), headers={"If-None-Match": etag}).json
        deleted = {"deleted": True, "content": None, "author": None}
        assert placeholder == comment | deleted | {"updated_at": placeholder["updated_at"]}
        assert comments_on(anonymous, post) == [placeholder, reply]
        assert comment_count(anonymous, post) == 1

    def test_a_placeholder_cannot_be_edited_or_deleted(self, alice, bob, moderator, post, comment):
        bob.add_comment(post, "A reply", parent_id=comment["id"])
        delete(alice, comment)
        for client in (alice, bob, moderator):
            assert_problem(client.patch(path(comment), json={"content": "x"}), 404)
            assert_problem(client.delete(path(comment)), 404)
        assert comment_count(alice, post) == 1

    def test_a_placeholder_is_removed_with_its_last_reply(
        self, alice, bob, anonymous, post, comment
    ):
        replies = [bob.add_comment(post, "Reply", parent_id=comment["id"]) for _ in range(2)]
        delete(alice, comment)
        delete(bob, replies[0])
        remaining = [row["id"] for row in comments_on(anonymous, post)]
        assert remaining == [comment["id"], replies[1]["id"]]
        delete(bob, replies[1])
        assert comments_on(anonymous, post) == []

    @pytest.mark.parametrize("deepest_first", [True, False])
    def test_a_chain_of_placeholders_is_removed_with_its_last_reply(
        self, alice, bob, post, comment, deepest_first
    ):
        chain = [comment]
        for _ in range(12):
            chain.append(bob.add_comment(post, "Deeper", parent_id=chain[-1]["id"]))
        other = bob.add_comment(post, "Beside", parent_id=chain[5]["id"])
        *above, last = chain
        for row in reversed(above) if deepest_first else above:
            delete(alice if row is comment else bob, row)
        assert len(comments_on(alice, post)) == 14
        assert comment_count(alice, post) == 2
        delete(bob, last)
        remaining = [row["id"] for row in comments_on(alice, post)]
        assert remaining == [row["id"] for row in (*chain[:6], other)]
        delete(bob, other)
        assert comments_on(alice, post) == []

    def test_placeholders_above_an_undeleted_comment_are_kept(
        self, alice, bob, anonymous, post, comment
    ):
        kept = bob.add_comment(post, "Kept", parent_id=comment["id"])
        below = alice.add_comment(post, "Below", parent_id=kept["id"])
        leaf = alice.add_comment(post, "Leaf", parent_id=below["id"])
        for row in (comment, below, leaf):
            delete(alice, row)
        assert [row["deleted"] for row in comments_on(anonymous, post)] == [True, False]

    def test_a_moderator_deletes_a_comment_but_another_member_does_not(
        self, bob, moderator, post, comment
    ):
        assert_problem(bob.delete(path(comment)), 403)
        delete(moderator, comment)
        assert comment_count(bob, post) == 0

    def test_comments_are_deleted_with_their_post(self, alice, bob, anonymous, post, comment):
        reply = bob.add_comment(post, "A reply", parent_id=comment["id"])
        bob.add_comment(post, "Deeper", parent_id=reply["id"])
        delete(bob, reply)
        assert alice.delete(f"/posts/{post['id']}").status_code == 204
        assert_problem(anonymous.get(list_path(post)), 404)
        for row in (comment, reply):
            assert_problem(anonymous.get(path(row)), 404)


class TestAccountDeletion:
    @pytest.fixture
    def thread(self, alice, bob):
        """A post by Bob with comments by Alice and Bob: a > b > c, a > d, e, f > g."""
        post = bob.create_post("Bob's")
        comments = {}
        for name, author, parent in (
            ("a", alice, None),
            ("b", bob, "a"),
            ("c", alice, "b"),
            ("d", alice, "a"),
            ("e", alice, None),
            ("f", alice, None),
            ("g", alice, "f"),
        ):
            parent_id = comments[parent]["id"] if parent else None
            comments[name] = author.add_comment(post, name, parent_id=parent_id)
        return post

    def delete_account(self, client, content):
        response = client.delete(f"/users/{client.user['id']}?content={content}")
        assert response.status_code == 204

    def test_comments_are_kept_without_an_author(self, alice, anonymous, thread):
        before = comments_on(anonymous, thread)
        self.delete_account(alice, "keep")
        after = comments_on(anonymous, thread)
        assert [row["content"] for row in after] == list("abcdefg")
        for old, new in zip(before, after, strict=True):
            own = old["author"]["username"] == "alice"
            assert new == old | ({"author": None} if own else {})
        assert comment_count(anonymous, thread) == 7

    def test_comments_are_deleted_on_request_and_become_placeholders_if_replied_to(
        self, alice, anonymous, thread
    ):
        self.delete_account(alice, "delete")
        remaining = [(row["content"], row["deleted"]) for row in comments_on(anonymous, thread)]
        assert remaining == [(None, True), ("b", False)]
        assert comment_count(anonymous, thread) == 1

    def test_posts_are_deleted_on_request_with_the_comments_on_them(self, bob, anonymous, thread):
        self.delete_account(bob, "delete")
        assert_problem(anonymous.get(list_path(thread)), 404)

    @pytest.mark.parametrize(("content", "remaining"), [("keep", 3), ("delete", 0)])
    def test_placeholders_are_kept_or_removed_with_the_replies_below_them(
        self, alice, bob, content, remaining
    ):
        post = bob.create_post("Bob's")
        root = bob.add_comment(post, "root")
        below = alice.add_comment(post, "below", parent_id=root["id"])
        alice.add_comment(post, "leaf", parent_id=below["id"])
        delete(bob, root)
        delete(alice, below)
        self.delete_account(alice, content)
        assert len(comments_on(bob, post)) == remaining

    def test_only_a_moderator_deletes_a_comment_without_an_author(
        self, alice, bob, moderator, anonymous, thread
    ):
        self.delete_account(alice, "keep")
        [orphan, *_] = comments_on(anonymous, thread)
        assert_problem(bob.patch(path(orphan), json={"content": "x"}), 403)
        assert_problem(bob.delete(path(orphan)), 403)
        delete(moderator, orphan)
