"""Removals of posts, comments and images, and of everything that a member wrote."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.helpers.assertions import assert_problem, error_locations
from tests.helpers.moderation import log

pytestmark = pytest.mark.usefixtures("stays_consistent")


def removals(client):
    response = client.get("/notifications")
    return [told for told in response.json if told["kind"] == "removal"]


class TestRemoval:
    def test_the_author_of_a_post_is_told_why(self, alice, moderator, post):
        reason = "This is advertising."
        url = f"/posts/{post['id']}"
        assert moderator.delete(url, query_string={"reason": reason}).status_code == 204
        [told] = removals(alice)
        assert (told["reason"], told["excerpt"]) == (reason, "On engines: Some text.")
        assert (told["actor"], told["post"], told["comment"]) == (None, None, None)
        assert log(moderator) == [("deleted", "post", post["id"], reason)]

    def test_the_author_of_a_comment_is_told_why(self, alice, bob, moderator, post):
        comment = bob.add_comment(post, "Buy *cloth*!")
        alice.add_comment(post, "No.", parent_id=comment["id"])
        moderator.delete(f"/comments/{comment['id']}?reason=Advertising.")
        [told] = removals(bob)
        assert (told["reason"], told["excerpt"]) == ("Advertising.", "Buy cloth!")
        moderator.delete(f"/posts/{post['id']}")
        assert removals(bob) == [told]

    def test_the_author_of_an_image_is_told_why(self, alice, moderator, post):
        image = alice.add_image(post, alt="An engine")
        moderator.delete(f"/images/{image['id']}?reason=Not+yours.")
        [told] = removals(alice)
        assert (told["reason"], told["excerpt"]) == ("Not yours.", "An engine")
        assert told["post"] == {"id": post["id"], "title": "On engines"}

    def test_a_reason_is_optional(self, alice, moderator, post):
        moderator.delete(f"/posts/{post['id']}")
        [told] = removals(alice)
        assert told["reason"] is None

    @pytest.mark.parametrize("reason", ["", " ", "x" * 501, "a\x00b"])
    def test_an_invalid_reason_gets_422(self, moderator, post, reason):
        response = moderator.delete(f"/posts/{post['id']}", query_string={"reason": reason})
        assert error_locations(response) == {"reason"}
        assert moderator.get(f"/posts/{post['id']}").status_code == 200

    def test_who_deletes_the_own_text_is_not_told(self, moderator, alice, post):
        alice.delete(f"/posts/{post['id']}?reason=Mine.")
        assert removals(alice) == []
        assert log(moderator) == []

    def test_a_post_without_an_author_is_deleted(self, alice, moderator, post):
        alice.delete("/users/me")
        assert moderator.delete(f"/posts/{post['id']}?reason=Old.").status_code == 204
        assert log(moderator) == [("deleted", "post", post["id"], "Old.")]

    def test_the_second_moderator_learns_that_it_is_gone(self, moderator, other_moderator, post):
        assert moderator.delete(f"/posts/{post['id']}").status_code == 204
        assert_problem(other_moderator.delete(f"/posts/{post['id']}"), 404)


class TestRemovalOfEverything:
    @pytest.fixture
    def written(self, alice, bob):
        """Posts and comments of Alice, one of them with a reply of Bob."""
        posts = [alice.create_post(f"Post {number}") for number in range(3)]
        other = bob.create_post("By Bob")
        comment = alice.add_comment(other, "With a reply")
        bob.add_comment(other, "The reply", parent_id=comment["id"])
        alice.add_comment(other, "Without")
        return [*posts, comment]

    def remove(self, moderator, client, **body):
        url = f"/moderation/users/{client.user['id']}/removal"
        response = moderator.post(url, json=body)
        assert response.status_code == 200, response.text
        return response.json

    def test_it_takes_steps_until_nothing_is_left(
        self, alice, bob, moderator, written, monkeypatch
    ):
        monkeypatch.setattr("posting.comments.deletion.COMMENTS_PER_STEP", 1)
        monkeypatch.setattr("posting.posts.deletion.POSTS_PER_STEP", 2)
        steps = []
        while not steps or steps[-1]["left"]:
            steps.append(self.remove(moderator, alice, reason="Advertising."))
            assert len(removals(alice)) == 1
        assert [step["removed"] for step in steps] == [1, 1, 2, 1]
        assert [step["left"] for step in steps] == [4, 3, 1, 0]
        assert self.remove(moderator, alice) == {"removed": 0, "left": 0}
        [told] = removals(alice)
        assert (told["reason"], told["excerpt"]) == ("Advertising.", None)
        assert [post["title"] for post in bob.get("/posts").json] == ["By Bob"]
        assert bob.get(f"/users/{alice.user['id']}/comments").json == []
        found = [
            (act["action"], act["target"]["kind"]) for act in moderator.get("/moderation/log").json
        ]
        assert found == [("deleted", "content")]

    def test_a_step_that_deletes_only_reactions_is_the_first_one(
        self, alice, bob, moderator, post, monkeypatch
    ):
        monkeypatch.setattr("posting.comments.deletion.REACTIONS_PER_STEP", 1)
        comment = alice.add_comment(post, "And cloth?")
        assert bob.put(f"/comments/{comment['id']}/reactions/heart").status_code == 200
        assert self.remove(moderator, alice, reason="Advertising.") == {"removed": 0, "left": 2}
        assert [told["reason"] for told in removals(alice)] == ["Advertising."]
        assert self.remove(moderator, alice, reason="Again.") == {"removed": 1, "left": 1}
        assert self.remove(moderator, alice, reason="Again.") == {"removed": 1, "left": 0}
        assert [act["reason"] for act in moderator.get("/moderation/log").json] == ["Advertising."]

    def test_a_second_removal_is_in_the_log_with_its_reason(self, alice, moderator, written):
        for number in range(2):
            while self.remove(moderator, alice, reason=f"Reason {number}")["left"]:
                pass
            alice.create_post("Again")
        found = [act["reason"] for act in moderator.get("/moderation/log").json]
        assert found == ["Reason 1", "Reason 0"]
        assert [told["reason"] for told in removals(alice)] == found

    def test_a_step_has_few_comments_of_others(self, alice, bob, moderator, monkeypatch):
        monkeypatch.setattr("posting.posts.deletion.COMMENTS_PER_STEP", 3)
        for count in (1, 2, 1, 7, 0):
            post = alice.create_post("On engines")
            for _ in range(count):
                bob.add_comment(post, "Below")
        steps = []
        while not steps or steps[-1]["left"]:
            steps.append(self.remove(moderator, alice))
        assert len(steps) > 2
        assert sum(step["removed"] for step in steps) == 5
        assert bob.get(f"/users/{bob.user['id']}/comments").json == []

    def test_others_delete_their_comments_meanwhile(self, alice, bob, moderator):
        """Neither waits for the other in another order of locks."""
        for _ in range(3):
            posts = [alice.create_post(f"Post {number}") for number in range(8)]
            comments = [bob.add_comment(post, "Below") for post in posts]

            def delete(comment):
                return bob.copy().delete(f"/comments/{comment['id']}").status_code

            with ThreadPoolExecutor(5) as pool:
                deletions = [pool.submit(delete, comment) for comment in comments]
                while self.remove(moderator.copy(), alice)["left"]:
                    pass
                assert {future.result() for future in deletions} <= {204, 404}

    def test_the_account_and_its_notifications_stay(self, alice, bob, moderator, written):
        bob.add_comment(written[0], "An answer")
        before = len(alice.get("/notifications").json)
        assert before == 2
        self.remove(moderator, alice)
        assert alice.get("/users/me").status_code == 200
        assert [told["kind"] for told in alice.get("/notifications").json].count("reply") == 1

    def test_reports_on_it_are_closed(self, alice, bob, moderator, written):
        url = f"/posts/{written[0]['id']}/reports"
        closed = bob.post(url, json={"reason": "Advertising."}).json
        on_user = bob.post(f"/users/{alice.user['id']}/reports", json={"reason": "A robot."}).json
        while self.remove(moderator, alice)["left"]:
            pass
        assert bob.get(f"/reports/{closed['id']}").json["outcome"] == "removed"
        assert moderator.get("/reports").json == [on_user]

    def test_reports_on_comments_of_others_below_it_are_closed(self, alice, bob, moderator):
        post = alice.create_post("On engines")
        comment = bob.add_comment(post, "Below")
        closed = alice.post(f"/comments/{comment['id']}/reports", json={"reason": "No."}).json
        self.remove(moderator, alice)
        assert moderator.get(f"/reports/{closed['id']}").json["outcome"] == "removed"

    def test_an_account_is_deleted_when_nothing_is_left(self, alice, bob, moderator, written):
        on_user = bob.post(f"/users/{alice.user['id']}/reports", json={"reason": "A robot."}).json
        url = f"/moderation/users/{alice.user['id']}?reason=A+robot."
        assert assert_problem(moderator.delete(url), 409)["code"] == "has_content"
        while self.remove(moderator, alice)["left"]:
            pass
        assert moderator.delete(url).status_code == 204
        assert_problem(moderator.get(f"/users/{alice.user['id']}"), 404)
        assert_problem(alice.get("/users/me"), 401)
        assert [post["title"] for post in moderator.get("/posts").json] == ["By Bob"]
        assert log(moderator)[0] == ("deleted", "user", alice.user["id"], "A robot.")
        assert moderator.get(f"/reports/{on_user['id']}").json["outcome"] == "removed"
        assert_problem(moderator.delete(url), 404)
