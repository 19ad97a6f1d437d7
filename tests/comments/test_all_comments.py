"""`GET /comments`: the comments of the community, and those that a search finds."""

import pytest

from tests.helpers.assertions import assert_problem, error_locations, follow_pages, next_url

pytestmark = pytest.mark.usefixtures("stays_consistent")
UNKNOWN = "a" * 21


@pytest.fixture
def posts(alice, bob):
    return alice.create_post("On engines"), bob.create_post("On looms")


def ids(rows):
    return [row["id"] for row in rows]


def test_a_comment_says_on_which_post_it_is(alice, bob, anonymous, posts):
    first = bob.add_comment(posts[0], "One")
    reply = alice.add_comment(posts[0], "Two", parent_id=first["id"])
    other = alice.add_comment(posts[1], "Three")
    expected = [
        other | {"post_title": "On looms"},
        reply | {"post_title": "On engines"},
        first | {"post_title": "On engines"},
    ]
    assert anonymous.get("/comments").json == expected
    assert anonymous.get("/comments?q=two").json == [expected[1]]
    alice.patch(f"/posts/{posts[0]['id']}", json={"title": "On mills"})
    assert anonymous.get("/comments?q=one").json[0]["post_title"] == "On mills"


def test_comments_come_newest_first_in_pages(alice, bob, anonymous, posts):
    rows = [(alice, bob)[n % 2].add_comment(posts[n % 2], str(n)) for n in range(7)]
    pages = list(follow_pages(anonymous, "/comments?limit=3"))
    assert [len(page) for page in pages] == [3, 3, 1]
    assert ids(row for page in pages for row in page) == ids(reversed(rows))
    pages = follow_pages(anonymous, f"/comments?limit=2&author={bob.user['id']}")
    assert ids(row for page in pages for row in page) == ids([rows[5], rows[3], rows[1]])


def test_a_page_has_fifty_comments_by_default(alice, anonymous, posts):
    for number in range(51):
        alice.add_comment(posts[0], str(number))
    assert [len(page) for page in follow_pages(anonymous, "/comments")] == [50, 1]


def test_deleted_comments_are_left_out(alice, bob, anonymous, posts):
    comment = alice.add_comment(posts[0], "Found and deleted")
    reply = bob.add_comment(posts[0], "Found and kept", parent_id=comment["id"])
    alice.delete(f"/comments/{comment['id']}")
    for path in ("/comments", "/comments?q=found"):
        assert ids(anonymous.get(path).json) == [reply["id"]]
    bob.delete(f"/comments/{reply['id']}")
    for path in ("/comments", "/comments?q=found"):
        assert anonymous.get(path).json == []


@pytest.mark.parametrize("path", ["/comments", "/comments?q=found"])
def test_comments_are_deleted_with_their_post(alice, bob, anonymous, posts, path):
    kept = [alice.add_comment(post, "Found") for post in posts][1]
    bob.add_comment(posts[0], "Found", parent_id=anonymous.get(path).json[-1]["id"])
    assert alice.delete(f"/posts/{posts[0]['id']}").status_code == 204
    assert ids(anonymous.get(path).json) == [kept["id"]]
    assert bob.delete(f"/users/{bob.user['id']}?content=delete").status_code == 204
    assert anonymous.get(path).json == []


def test_the_comments_of_an_unknown_author_get_404(alice, anonymous, posts):
    assert anonymous.get(f"/comments?author={alice.user['id']}").json == []
    response = anonymous.get(f"/comments?author={UNKNOWN}")
    assert assert_problem(response, 404)["code"] == "no_such_user"
    assert error_locations(anonymous.get("/comments?author=short")) == {"author"}


def test_changes_between_pages_neither_repeat_nor_skip_a_comment(alice, anonymous, posts):
    rows = [alice.add_comment(posts[0], str(number)) for number in range(6)]
    pages = follow_pages(anonymous, "/comments?limit=3")
    assert ids(next(pages)) == ids([rows[5], rows[4], rows[3]])
    alice.add_comment(posts[0], "new")
    for deleted in (rows[3], rows[1]):
        alice.delete(f"/comments/{deleted['id']}")
    assert [ids(page) for page in pages] == [ids([rows[2], rows[0]])]


@pytest.mark.parametrize("path", ["/posts?", "/posts/{}/comments?", "/comments?q=text&"])
def test_a_cursor_of_another_list_gets_422(alice, anonymous, posts, path):
    for _ in range(2):
        alice.add_comment(posts[0], "Text")
    url = next_url(anonymous.get(f"{path.format(posts[0]['id'])}limit=1"))
    cursor = url.rpartition("cursor=")[2]
    assert error_locations(anonymous.get(f"/comments?cursor={cursor}")) == {"cursor"}
