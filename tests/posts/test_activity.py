"""`GET /posts?sort=active`: posts in the order of their last comments."""

import time

import pytest

from tests.helpers.assertions import error_locations, follow_pages


@pytest.fixture
def posts(alice):
    """Three posts, the last of which is the newest."""
    posts = []
    for number in range(3):
        posts.append(alice.create_post(f"Post {number}"))
        time.sleep(0.002)  # with the same timestamp, their ids would decide
    return posts


@pytest.fixture
def active(anonymous):
    """Return a function that returns the titles of posts, the most active first."""

    def active(query=""):
        pages = follow_pages(anonymous, f"/posts?sort=active&limit=2{query}")
        return [row["title"] for page in pages for row in page]

    return active


def last_activity(anonymous, post):
    return anonymous.get(f"/posts/{post['id']}").json["last_activity_at"]


def test_a_new_post_was_active_when_it_was_written(anonymous, post, active):
    assert post["last_activity_at"] == post["created_at"]
    assert anonymous.get("/posts?sort=active").json == anonymous.get("/posts").json
    assert active() == ["On engines"]


def test_a_comment_moves_its_post_to_the_front(bob, anonymous, posts, active):
    assert active() == ["Post 2", "Post 1", "Post 0"]
    comment = bob.add_comment(posts[0], "A comment")
    assert active() == ["Post 0", "Post 2", "Post 1"]
    assert last_activity(anonymous, posts[0]) == comment["created_at"]
    bob.add_comment(posts[1], "A comment")
    assert active() == ["Post 1", "Post 0", "Post 2"]
    assert [post["title"] for post in anonymous.get("/posts").json] == [
        "Post 2",
        "Post 1",
        "Post 0",
    ]


def test_an_edit_is_no_activity(alice, anonymous, posts, active):
    alice.patch(f"/posts/{posts[0]['id']}", json={"title": "Edited"})
    assert active() == ["Post 2", "Post 1", "Edited"]
    assert last_activity(anonymous, posts[0]) == posts[0]["created_at"]


def test_deleting_the_last_comment_moves_its_post_back(bob, anonymous, posts, active):
    comments = [bob.add_comment(posts[0], text) for text in ("One", "Two", "Three")]
    for left in (2, 1):
        assert bob.delete(f"/comments/{comments[left]['id']}").status_code == 204
        assert last_activity(anonymous, posts[0]) == comments[left - 1]["created_at"]
    assert bob.delete(f"/comments/{comments[0]['id']}").status_code == 204
    assert last_activity(anonymous, posts[0]) == posts[0]["created_at"]
    assert active() == ["Post 2", "Post 1", "Post 0"]


def test_deleting_an_earlier_comment_leaves_its_post(alice, bob, anonymous, posts):
    first = bob.add_comment(posts[0], "One")
    reply = alice.add_comment(posts[0], "Two", parent_id=first["id"])
    assert bob.delete(f"/comments/{first['id']}").status_code == 204  # now a placeholder
    assert last_activity(anonymous, posts[0]) == reply["created_at"]
    assert alice.delete(f"/comments/{reply['id']}").status_code == 204  # and the placeholder
    assert last_activity(anonymous, posts[0]) == posts[0]["created_at"]


@pytest.mark.parametrize("content", ["keep", "delete"])
def test_deleting_an_account_moves_posts_back_only_if_its_comments_are_deleted(
    alice, bob, posts, active, content
):
    bob.add_comment(posts[0], "Last of all")
    alice.add_comment(posts[1], "Last but one")
    bob.add_comment(posts[1], "And now the last")
    assert bob.delete(f"/users/{bob.user['id']}?content={content}").status_code == 204
    first, second = ("Post 1", "Post 0") if content == "keep" else ("Post 1", "Post 2")
    assert active()[:2] == [first, second]


def test_the_posts_of_an_author_may_be_in_this_order(bob, posts, active):
    bob.create_post("Bob's")
    bob.add_comment(posts[0], "A comment")
    assert active(f"&author={bob.user['id']}") == ["Bob's"]
    assert active(f"&author={posts[0]['author']['id']}") == ["Post 0", "Post 2", "Post 1"]


def test_a_cursor_belongs_to_its_order(anonymous, posts):
    for sort, other in (("active", "new"), ("new", "active")):
        link = anonymous.get(f"/posts?limit=1&sort={sort}").headers["Link"]
        cursor = link.partition("cursor=")[2].partition(">")[0]
        response = anonymous.get(f"/posts?limit=1&sort={other}&cursor={cursor}")
        assert error_locations(response) == {"cursor"}


@pytest.mark.parametrize("sort", ["", "old", "Active"])
def test_another_order_gets_422(anonymous, sort):
    assert error_locations(anonymous.get(f"/posts?sort={sort}")) == {"sort"}
