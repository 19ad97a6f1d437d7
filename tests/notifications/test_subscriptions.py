"""Posts that a member follows or mutes."""

import pytest

from posting.db.types import new_id
from tests.helpers.assertions import assert_problem, error_locations
from tests.helpers.notifications import choose, count_rows, kinds_of, told

pytestmark = pytest.mark.usefixtures("stays_consistent")


class TestSubscriptions:
    def test_a_choice_is_set_read_and_deleted(self, bob, post):
        path = f"/posts/{post['id']}/subscription"
        assert bob.get(path).json == {"level": "default"}
        for level in ("all", "muted", "muted"):
            response = bob.put(path, json={"level": level})
            assert (response.status_code, response.json) == (200, {"level": level})
            assert bob.get(path).json == {"level": level}
        for _ in range(2):
            assert bob.delete(path).status_code == 204
            assert bob.get(path).json == {"level": "default"}

    def test_a_follower_is_told_of_all_comments(self, alice, bob, eve, post):
        bob.add_comment(post, "And cloth?")
        choose(eve, post, "all")
        bob.add_comment(post, "And wool?")
        assert kinds_of(eve) == ["comment"]
        assert kinds_of(alice) == ["comment", "comment"]
        eve.delete(f"/posts/{post['id']}/subscription")
        bob.add_comment(post, "And silk?")
        assert kinds_of(eve) == ["comment"]

    def test_a_muted_post_tells_nothing(self, alice, bob, post):
        own = alice.add_comment(post, "And cloth?")
        choose(alice, post, "muted")
        bob.add_comment(post, "@alice", parent_id=own["id"])
        comment = bob.add_comment(post, "And wool?")
        bob.patch(f"/comments/{comment['id']}", json={"content": "And wool, @alice?"})
        assert told(alice) == []
        bob.add_comment(alice.create_post("On looms"), "And cloth?")
        assert kinds_of(alice) == ["comment"]

    def test_a_muted_post_that_is_edited_tells_nothing(self, alice, bob, post):
        choose(bob, post, "muted")
        alice.patch(f"/posts/{post['id']}", json={"content": "Ask @bob."})
        assert told(bob) == []

    @pytest.mark.parametrize("body", [{}, {"level": "default"}, {"level": None}, {"level": 1}])
    def test_another_choice_gets_422(self, bob, post, body):
        response = bob.put(f"/posts/{post['id']}/subscription", json=body)
        assert error_locations(response) == {"/level"}

    def test_an_unknown_post_gets_404(self, bob):
        path = f"/posts/{new_id()}/subscription"
        body = {"level": "all"}
        for response in (bob.get(path), bob.put(path, json=body), bob.delete(path)):
            assert assert_problem(response, 404)["code"] == "no_such_post"

    def test_it_ends_with_the_post_and_with_the_account(self, app, alice, bob, eve, post):
        choose(bob, post, "all")
        choose(eve, post, "all")
        assert bob.delete("/users/me").status_code == 204
        alice.add_comment(post, "And cloth?")
        assert count_rows(app) == 1
        assert alice.delete(f"/posts/{post['id']}").status_code == 204
        assert count_rows(app) == 0

    def test_choices_are_limited(self, make_app, bob, post):
        limited = bob.copy(make_app(RATE_LIMITS="on", LIMIT_COMMENTS="1/hour"))
        path = f"/posts/{post['id']}/subscription"
        assert limited.put(path, json={"level": "all"}).status_code == 200
        response = limited.put(path, json={"level": "muted"})
        assert_problem(response, 429)
        assert response.headers["RateLimit-Policy"] == '"subscriptions";q=1;w=3600'
        assert limited.get(path).json == {"level": "all"}
