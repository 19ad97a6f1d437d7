"""Locked and pinned posts."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from posting.moderation.views.acts import MAX_PINNED
from tests.helpers.assertions import assert_problem, error_locations, follow_list
from tests.helpers.moderation import log

pytestmark = pytest.mark.usefixtures("stays_consistent")


class TestLock:
    def test_members_can_no_longer_comment(self, alice, bob, moderator, post):
        comment = bob.add_comment(post, "Before")
        assert moderator.put(f"/posts/{post['id']}/lock").status_code == 204
        assert bob.get(f"/posts/{post['id']}").json["locked"] is True
        for client in (alice, bob):
            for body in ({"content": "x"}, {"content": "x", "parent_id": comment["id"]}):
                response = client.post(f"/posts/{post['id']}/comments", json=body)
                assert assert_problem(response, 403)["code"] == "post_locked"
        moderator.add_comment(post, "The last word")
        edited = bob.patch(f"/comments/{comment['id']}", json={"content": "After"})
        assert edited.status_code == 200
        assert moderator.delete(f"/posts/{post['id']}/lock").status_code == 204
        bob.add_comment(post, "Again")

    def test_only_what_changes_is_in_the_log(self, moderator, post):
        for _ in range(2):
            moderator.put(f"/posts/{post['id']}/lock")
        for _ in range(2):
            moderator.delete(f"/posts/{post['id']}/lock")
        assert log(moderator) == [
            ("unlocked", "post", post["id"], None),
            ("locked", "post", post["id"], None),
        ]

    def test_an_unknown_post_gets_404(self, moderator):
        for method in ("PUT", "DELETE"):
            for mark in ("lock", "pin"):
                response = moderator.open(f"/posts/{'x' * 21}/{mark}", method=method)
                assert_problem(response, 404)


@pytest.mark.parametrize("mark", ["lock", "pin"])
def test_it_is_no_edit(alice, moderator, post, mark):
    url = f"/posts/{post['id']}"
    before = alice.get(url)
    assert moderator.put(f"{url}/{mark}").status_code == 204
    after = alice.get(url)
    assert after.json["updated_at"] == before.json["updated_at"]
    assert after.headers["ETag"] != before.headers["ETag"]  # it has another content
    etag = {"If-Match": before.headers["ETag"]}
    edited = alice.patch(url, json={"title": "Mine"}, headers=etag)
    assert (edited.status_code, edited.json["title"]) == (200, "Mine")
    assert edited.json["locked" if mark == "lock" else "pinned"] is True


class TestPin:
    def test_pinned_posts_are_listed(self, alice, bob, moderator):
        posts = [alice.create_post(f"Post {number}") for number in range(3)]
        for post in posts[:2]:
            assert moderator.put(f"/posts/{post['id']}/pin").status_code == 204
        listed = bob.get("/posts?pinned=true").json
        assert [post["id"] for post in listed] == [posts[1]["id"], posts[0]["id"]]
        assert all(post["pinned"] for post in listed)
        assert follow_list(bob, "/posts?pinned=true&limit=1") == listed
        assert [post["title"] for post in bob.get("/posts").json] == ["Post 2", "Post 1", "Post 0"]
        moderator.delete(f"/posts/{posts[0]['id']}/pin")
        assert [post["id"] for post in bob.get("/posts?pinned=true").json] == [posts[1]["id"]]

    def test_five_at_most(self, alice, moderator):
        *posts, last = [alice.create_post(f"Post {number}") for number in range(MAX_PINNED + 1)]
        for post in posts:
            assert moderator.put(f"/posts/{post['id']}/pin").status_code == 204
        problem = assert_problem(moderator.put(f"/posts/{last['id']}/pin"), 409)
        assert problem["code"] == "too_many_pinned"
        assert moderator.put(f"/posts/{posts[0]['id']}/pin").status_code == 204  # it is pinned
        assert_problem(moderator.put(f"/posts/{'x' * 21}/pin"), 404)
        moderator.delete(f"/posts/{posts[0]['id']}/pin")
        assert moderator.put(f"/posts/{last['id']}/pin").status_code == 204

    def test_five_at_most_also_at_once(self, alice, bob, moderator):
        posts = [alice.create_post(f"Post {number}") for number in range(10)]

        def pin(post):
            return moderator.copy().put(f"/posts/{post['id']}/pin").status_code

        with ThreadPoolExecutor(10) as pool:
            statuses = sorted(pool.map(pin, posts))
        assert statuses == [204] * MAX_PINNED + [409] * 5
        assert len(bob.get("/posts?pinned=true").json) == MAX_PINNED

    @pytest.mark.parametrize("query", ["pinned=false", "pinned=", "pinned=true&q=engines"])
    def test_an_invalid_query_gets_422(self, bob, query):
        assert error_locations(bob.get(f"/posts?{query}")) == {"pinned"}
