"""Comments and replies over HTTP."""

import random
from datetime import timedelta

import pytest

from posting.db.types import now
from tests.helpers.assertions import faults, next_url, problem, walk

pytestmark = pytest.mark.usefixtures("stays_consistent")
UNKNOWN = "a" * 21


def comments_of(post):
    return f"/posts/{post['id']}/comments"


def path(comment):
    return f"/comments/{comment['id']}"


def listed(client, post):
    return client.get(comments_of(post)).json


def count(client, post):
    return client.get(f"/posts/{post['id']}").json["comment_count"]


def delete(client, comment):
    answer = client.delete(path(comment))
    assert (answer.status_code, answer.data) == (204, b"")


@pytest.fixture
def comment(alice, post):
    return alice.add_comment(post, "And cloth?")


def test_a_comment_is_written_and_read(alice, anonymous, post):
    created = alice.post(comments_of(post), json={"content": "And *cloth*?\n🧵"})

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
    }
    assert created.headers["Location"] == f"http://localhost{path(comment)}"
    read = anonymous.get(created.headers["Location"])
    assert read.json == comment
    assert read.headers["ETag"] == created.headers["ETag"]
    assert listed(anonymous, post) == [comment]


def test_commenting_counts_and_is_no_edit_of_the_post(alice, bob, anonymous, post):
    tag = anonymous.get(f"/posts/{post['id']}").headers["ETag"]
    bob.add_comment(post, "One")
    alice.add_comment(post, "Two")
    read = anonymous.get(f"/posts/{post['id']}", headers={"If-None-Match": tag})
    assert read.status_code == 200
    assert read.json == post | {"comment_count": 2}
    assert anonymous.get("/posts").json[0]["comment_count"] == 2
    edit = alice.patch(f"/posts/{post['id']}", json={"title": "x"}, headers={"If-Match": tag})
    assert edit.status_code == 200


def test_a_first_page_is_another_one_when_there_is_more(alice, anonymous, post):
    for number in range(2):
        alice.add_comment(post, f"{number}")
    url = f"{comments_of(post)}?limit=2"
    before = anonymous.get(url)
    alice.add_comment(post, "And more.")
    after = anonymous.get(url, headers={"If-None-Match": before.headers["ETag"]})
    assert (after.status_code, after.json) == (200, before.json)
    assert next_url(after)


def test_replies_nest_to_any_depth(alice, bob, anonymous, post):
    parent_id = None
    for depth in range(60):
        author = (alice, bob)[depth % 2]
        parent_id = author.add_comment(post, str(depth), parent_id=parent_id)["id"]
    rows = [row for page in walk(anonymous, comments_of(post)) for row in page]
    assert [row["content"] for row in rows] == [str(depth) for depth in range(60)]
    assert [row["parent_id"] for row in rows] == [None, *(row["id"] for row in rows[:-1])]
    assert count(anonymous, post) == 60


@pytest.mark.parametrize("limit", [1, 2, 7, 100])
def test_a_parent_comes_before_its_replies_on_all_pages(alice, anonymous, post, limit, monkeypatch):
    """Even when a clock stands still, or is behind that of another machine."""
    moment = now()
    behind = [moment - timedelta(seconds=second) for second in range(3)]
    monkeypatch.setattr("posting.db.models.now", lambda: random.choice(behind))
    made = [alice.add_comment(post, "root")]
    for number in range(20):
        parent_id = random.choice(made)["id"] if number % 3 else None
        made.append(alice.add_comment(post, str(number), parent_id=parent_id))
    rows = [row for page in walk(anonymous, f"{comments_of(post)}?limit={limit}") for row in page]
    assert rows == sorted(made, key=lambda row: (row["created_at"], row["id"]))
    seen = {None}
    for row in rows:
        assert row["parent_id"] in seen
        seen.add(row["id"])


def test_a_page_holds_fifty_unless_told(alice, anonymous, post):
    for number in range(51):
        alice.add_comment(post, str(number))
    first = anonymous.get(comments_of(post))
    assert len(first.json) == 50
    [last] = anonymous.get(next_url(first)).json
    assert last["content"] == "50"


def test_what_comes_and_goes_between_pages_repeats_and_skips_nothing(alice, anonymous, post):
    rows = [alice.add_comment(post, str(number)) for number in range(6)]
    first = anonymous.get(f"{comments_of(post)}?limit=3")
    delete(alice, rows[2])
    delete(alice, rows[4])
    new = alice.add_comment(post, "new")
    rest = [row for page in walk(anonymous, next_url(first)) for row in page]
    assert rest == [rows[3], rows[5], new]


def test_a_cursor_is_good_for_the_comments_of_one_post(alice, anonymous, post):
    other = alice.create_post("Another")
    for number in range(2):
        alice.add_comment(post, str(number))
    url = next_url(anonymous.get(f"{comments_of(post)}?limit=1"))
    query = url.partition("?")[2]
    assert faults(anonymous.get(f"{comments_of(other)}?{query}")) == {"cursor"}


def test_a_post_without_comments_is_not_one_that_is_not(anonymous, post):
    empty = anonymous.get(comments_of(post))
    assert (empty.status_code, empty.json) == (200, [])
    answer = anonymous.get(f"/posts/{UNKNOWN}/comments")
    assert problem(answer, 404)["detail"] == "There is no such post."
    assert faults(anonymous.get("/posts/short/comments?limit=0")) == {"id", "limit"}


@pytest.mark.parametrize(
    ("body", "wrong"),
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
def test_an_invalid_comment_is_refused_whole(alice, post, body, wrong):
    assert faults(alice.post(comments_of(post), json=body)) == wrong
    assert listed(alice, post) == []
    assert count(alice, post) == 0


def test_the_longest_comment_is_kept_as_sent(alice, post):
    content = "ß" * 9_998 + " \n"
    assert alice.add_comment(post, content)["content"] == content


def test_a_parent_must_be_a_live_comment_of_the_same_post(alice, bob, post, comment):
    elsewhere = alice.add_comment(alice.create_post("Another"), "Elsewhere")
    bob.add_comment(post, "A reply", parent_id=comment["id"])
    delete(alice, comment)
    for parent in (elsewhere, comment):
        body = {"content": "x", "parent_id": parent["id"]}
        assert faults(bob.post(comments_of(post), json=body)) == {"/parent_id"}


def test_a_comment_on_no_post_is_404(alice):
    body = {"content": "x", "parent_id": UNKNOWN}
    problem(alice.post(f"/posts/{UNKNOWN}/comments", json=body), 404)
    assert faults(alice.post("/posts/short/comments", json={})) == {"id", "/content"}


class TestEditing:
    def test_an_edit_changes_the_content(self, alice, anonymous, post, comment):
        edited = alice.patch(path(comment), json={"content": "And silk?"})
        assert edited.status_code == 200
        assert edited.json["content"] == "And silk?"
        assert edited.json["updated_at"] >= comment["updated_at"]
        unchanged = comment.keys() - {"content", "updated_at"}
        assert all(edited.json[name] == comment[name] for name in unchanged)
        read = anonymous.get(path(comment))
        assert (read.json, read.headers["ETag"]) == (edited.json, edited.headers["ETag"])
        assert listed(anonymous, post) == [edited.json]

    @pytest.mark.parametrize("body", [{}, {"content": "And cloth?"}])
    def test_an_edit_that_changes_nothing_keeps_the_version(self, alice, comment, body):
        before = alice.get(path(comment)).headers["ETag"]
        edited = alice.patch(path(comment), json=body)
        assert (edited.status_code, edited.json) == (200, comment)
        assert edited.headers["ETag"] == before

    @pytest.mark.parametrize(
        ("body", "wrong"),
        [
            ({"content": None}, {"/content"}),
            ({"content": "\t"}, {"/content"}),
            ({"parent_id": None, "author": None}, {"/parent_id", "/author"}),
        ],
    )
    def test_an_invalid_edit_changes_nothing(self, alice, comment, body, wrong):
        assert faults(alice.patch(path(comment), json=body)) == wrong
        assert alice.get(path(comment)).json == comment

    def test_only_the_author_edits(self, bob, moderator, comment):
        for other in (bob, moderator):
            problem(other.patch(path(comment), json={"content": "Mine"}), 403)
        assert bob.get(path(comment)).json == comment

    def test_a_stale_edit_is_refused_and_changes_nothing(self, alice, comment):
        stale = {"If-Match": alice.get(path(comment)).headers["ETag"]}
        edited = alice.patch(path(comment), json={"content": "Two"}, headers=stale)
        assert edited.status_code == 200
        problem(alice.patch(path(comment), json={"content": "3"}, headers=stale), 412)
        problem(alice.delete(path(comment), headers=stale), 412)
        assert alice.get(path(comment)).json == edited.json


class TestDeleting:
    def test_a_comment_without_replies_goes(self, alice, anonymous, post, comment):
        delete(alice, comment)
        problem(alice.delete(path(comment)), 404)
        problem(anonymous.get(path(comment)), 404)
        assert listed(anonymous, post) == []
        assert count(anonymous, post) == 0

    def test_one_with_replies_leaves_its_place(self, alice, bob, anonymous, post, comment):
        reply = bob.add_comment(post, "A reply", parent_id=comment["id"])
        tag = anonymous.get(path(comment)).headers["ETag"]
        delete(alice, comment)

        tombstone = anonymous.get(path(comment), headers={"If-None-Match": tag}).json
        gone = {"deleted": True, "content": None, "author": None}
        assert tombstone == comment | gone | {"updated_at": tombstone["updated_at"]}
        assert listed(anonymous, post) == [tombstone, reply]
        assert count(anonymous, post) == 1

    def test_a_place_is_not_edited_nor_deleted(self, alice, bob, moderator, post, comment):
        bob.add_comment(post, "A reply", parent_id=comment["id"])
        delete(alice, comment)
        for client in (alice, bob, moderator):
            problem(client.patch(path(comment), json={"content": "x"}), 404)
            problem(client.delete(path(comment)), 404)
        assert count(alice, post) == 1

    def test_a_place_goes_with_its_last_reply(self, alice, bob, anonymous, post, comment):
        replies = [bob.add_comment(post, "Reply", parent_id=comment["id"]) for _ in range(2)]
        delete(alice, comment)
        delete(bob, replies[0])
        assert [row["id"] for row in listed(anonymous, post)] == [comment["id"], replies[1]["id"]]
        delete(bob, replies[1])
        assert listed(anonymous, post) == []

    @pytest.mark.parametrize("deepest_first", [True, False])
    def test_a_chain_of_places_goes_with_its_last_reply(
        self, alice, bob, post, comment, deepest_first
    ):
        chain = [comment]
        for _ in range(30):
            chain.append(bob.add_comment(post, "Deeper", parent_id=chain[-1]["id"]))
        other = bob.add_comment(post, "Beside", parent_id=chain[10]["id"])
        *above, last = chain
        for row in reversed(above) if deepest_first else above:
            delete(alice if row is comment else bob, row)
        assert len(listed(alice, post)) == 32
        assert count(alice, post) == 2
        delete(bob, last)
        assert [row["id"] for row in listed(alice, post)] == [
            *(row["id"] for row in chain[:11]),
            other["id"],
        ]
        delete(bob, other)
        assert listed(alice, post) == []

    def test_a_live_comment_ends_the_chain(self, alice, bob, anonymous, post, comment):
        middle = bob.add_comment(post, "Stays", parent_id=comment["id"])
        below = alice.add_comment(post, "Goes", parent_id=middle["id"])
        leaf = alice.add_comment(post, "Leaf", parent_id=below["id"])
        for row in (comment, below, leaf):
            delete(alice, row)
        assert [row["deleted"] for row in listed(anonymous, post)] == [True, False]

    def test_others_do_not_delete_but_moderators_do(self, bob, moderator, post, comment):
        problem(bob.delete(path(comment)), 403)
        delete(moderator, comment)
        assert count(bob, post) == 0

    def test_comments_go_with_their_post(self, alice, bob, anonymous, post, comment):
        reply = bob.add_comment(post, "A reply", parent_id=comment["id"])
        bob.add_comment(post, "Deeper", parent_id=reply["id"])
        delete(bob, reply)
        assert alice.delete(f"/posts/{post['id']}").status_code == 204
        problem(anonymous.get(comments_of(post)), 404)
        for row in (comment, reply):
            problem(anonymous.get(path(row)), 404)


class TestAccountsThatGo:
    @pytest.fixture
    def talk(self, alice, bob):
        """Bob's post, on which Alice and Bob talk: a > b > c, a > d, e, f > g, of whom?"""
        post = bob.create_post("Bob's")
        made = {}
        for name, author, parent in (
            ("a", alice, None),
            ("b", bob, "a"),
            ("c", alice, "b"),
            ("d", alice, "a"),
            ("e", alice, None),
            ("f", alice, None),
            ("g", alice, "f"),
        ):
            parent_id = made[parent]["id"] if parent else None
            made[name] = author.add_comment(post, name, parent_id=parent_id)
        return post

    def leave(self, client, content):
        answer = client.delete(f"/users/{client.user['id']}?content={content}")
        assert answer.status_code == 204

    def test_comments_stay_without_an_author(self, alice, anonymous, talk):
        before = listed(anonymous, talk)
        self.leave(alice, "keep")
        after = listed(anonymous, talk)
        assert [row["content"] for row in after] == list("abcdefg")
        for old, new in zip(before, after, strict=True):
            own = old["author"]["username"] == "alice"
            assert new == old | ({"author": None} if own else {})
        assert count(anonymous, talk) == 7

    def test_or_go_as_far_as_nobody_replied(self, alice, anonymous, talk):
        self.leave(alice, "delete")
        assert [(row["content"], row["deleted"]) for row in listed(anonymous, talk)] == [
            (None, True),
            ("b", False),
        ]
        assert count(anonymous, talk) == 1

    def test_posts_go_with_what_others_said_to_them(self, bob, anonymous, talk):
        self.leave(bob, "delete")
        problem(anonymous.get(comments_of(talk)), 404)

    def test_a_place_of_ones_own_goes_too(self, alice, bob, anonymous, post):
        """Places left earlier, by whoever, go when all that is under them goes."""
        root = bob.add_comment(post, "root")
        below = alice.add_comment(post, "below", parent_id=root["id"])
        alice.add_comment(post, "leaf", parent_id=below["id"])
        delete(bob, root)
        delete(alice, below)
        self.leave(alice, "keep")
        assert len(listed(anonymous, post)) == 3

    def test_a_comment_without_an_author_is_nobodys(self, alice, bob, moderator, anonymous, talk):
        self.leave(alice, "keep")
        [orphan, *_] = listed(anonymous, talk)
        problem(bob.patch(path(orphan), json={"content": "x"}), 403)
        problem(bob.delete(path(orphan)), 403)
        delete(moderator, orphan)
