"""The comments that members have seen, and the notifications that this marks as read."""

from datetime import timedelta

import pytest
import sqlalchemy as sa

from posting.comments.models import Comment
from posting.db.base import db
from posting.db.transactions import transaction
from posting.db.types import now
from posting.notifications.models import Seen
from posting.posts.models import Post
from tests.helpers.assertions import assert_problem, error_locations
from tests.helpers.notifications import choose

pytestmark = pytest.mark.usefixtures("stays_consistent")
UNKNOWN = "a" * 21


def path_of(post):
    return f"/posts/{post['id']}/seen"


def see(client, post, up_to=None, **fields):
    """Note that a client's user has read a post up to a comment; return the response."""
    return client.put(path_of(post), json={"up_to": up_to and up_to["id"]} | fields)


def unread(client):
    return [each["comment"]["id"] for each in client.get("/notifications?unread=true").json]


def new_on(client, *posts):
    """Return what is new on some posts, by the ids of these."""
    response = client.get(f"/seen?ids={','.join(post['id'] for post in posts)}")
    assert response.status_code == 200, response.text
    return {each.pop("id"): each for each in response.json}


class TestSeveralPosts:
    def test_new_comments_are_counted_for_each_post_that_was_seen(self, alice, bob, eve):
        posts = [alice.create_post(str(number)) for number in range(4)]
        for post in posts[:3]:
            see(bob, post)
        first = eve.add_comment(posts[0], "One")
        bob.add_comment(posts[0], "Two")
        alice.add_comment(posts[0], "Three")
        own = bob.add_comment(posts[1], "Mine")
        alice.add_comment(posts[3], "Not seen")
        see(bob, posts[1], own)
        alice.delete(f"/comments/{alice.add_comment(posts[2], 'Gone')['id']}")
        assert new_on(bob, *posts) == {
            posts[0]["id"]: {"new": 2, "first": first["id"]},
            posts[1]["id"]: {"new": 0, "first": None},
            posts[2]["id"]: {"new": 0, "first": None},
        }
        assert new_on(bob, posts[1]).keys() == {posts[1]["id"]}
        assert new_on(eve, *posts) == {}

    def test_it_agrees_with_one_post_and_ends_at_a_hundred(self, alice, bob, post):
        see(bob, post)
        comments = [alice.add_comment(post, "x") for _ in range(102)]
        see(bob, post, comments[0])
        assert new_on(bob, post) == {post["id"]: {"new": 100, "first": comments[1]["id"]}}
        assert len(bob.get(path_of(post)).json["new"]) == 100
        see(bob, post, comments[99])
        assert new_on(bob, post) == {post["id"]: {"new": 2, "first": comments[100]["id"]}}

    def test_posts_that_are_gone_are_left_out(self, alice, bob, post):
        see(bob, post)
        assert alice.delete(f"/posts/{post['id']}").status_code == 204
        assert new_on(bob, post, {"id": UNKNOWN}) == {}

    @pytest.mark.parametrize(
        ("query", "code"),
        [
            ("", "required"),
            ("ids=", "malformed"),
            ("ids=x", "malformed"),
            (f"ids={UNKNOWN},", "malformed"),
            (f"ids={UNKNOWN}%0A", "malformed"),
            (f"ids={','.join(f'{number:021}' for number in range(101))}", "too_many"),
            (f"ids={UNKNOWN}&limit=5", "unknown"),
        ],
    )
    def test_a_bad_query_gets_422(self, bob, query, code):
        response = bob.get(f"/seen?{query}")
        assert_problem(response, 422)
        assert [error["code"] for error in response.json["errors"]] == [code]

    def test_a_hundred_posts_and_one_twice_are_fine(self, alice, bob, post):
        see(bob, post)
        ids = [f"{number:021}" for number in range(98)] + [post["id"]] * 2
        assert len(bob.get(f"/seen?ids={','.join(ids)}").json) == 1
        twice = f"ids={post['id']}&ids={UNKNOWN}"
        assert len(bob.get(f"/seen?{twice}").json) == 1

    def test_it_takes_one_query(self, alice, bob, post, statements):
        see(bob, post)
        statements.clear()
        new_on(bob, post)
        assert len([sql for sql in statements if "FROM" in sql]) == 2  # with that of the session


class TestSeen:
    def test_a_post_that_was_not_seen_has_nothing_new(self, bob, alice, post):
        comment = alice.add_comment(post, "And cloth?")
        expected = {"up_to": None, "until": None, "latest": comment["id"], "new": []}
        assert bob.get(path_of(post)).json == expected | {"unread": False}

    def test_it_says_whether_notifications_are_unread(self, alice, bob, post):
        other, comment = alice.create_post("On looms"), bob.add_comment(post, "One")
        for expected in (True, False):
            assert alice.get(path_of(post)).json["unread"] is expected
            assert alice.get(path_of(other)).json["unread"] is False
            see(alice, post, comment, shown=[comment["id"]])
        for text in (f"posts/{post['id']}", f"comments/{alice.add_comment(post, 'Two')['id']}"):
            bob.put(f"/{text}/reactions/heart")
            assert alice.get(path_of(post)).json["unread"] is True
            assert see(alice, post).json["unread"] is False

    def test_later_comments_by_others_are_new_oldest_first(self, alice, bob, eve, post):
        first = alice.add_comment(post, "One")
        response = see(bob, post, first)
        expected = {"up_to": first["id"], "until": first["created_at"], "latest": first["id"]}
        expected["unread"] = False
        assert response.json == expected | {"new": []}
        own = bob.add_comment(post, "Two")
        others = [client.add_comment(post, "Three") for client in (eve, alice)]
        read = bob.get(path_of(post)).json
        assert read == expected | {
            "latest": others[1]["id"],
            "new": [each["id"] for each in others],
        }
        assert see(bob, post, own).json["new"] == read["new"]
        assert see(bob, post, others[1]).json["new"] == []

    def test_a_post_without_comments_is_seen(self, alice, bob, post):
        seen = see(bob, post).json
        assert (seen["up_to"], seen["until"], seen["new"]) == (None, post["created_at"], [])
        comment = alice.add_comment(post, "One")
        assert bob.get(path_of(post)).json["new"] == [comment["id"]]

    def test_it_never_goes_back(self, alice, bob, post):
        comments = [alice.add_comment(post, "x") for _ in range(2)]
        see(bob, post, comments[1])
        for former in (comments[0], None):
            response = see(bob, post, former)
            assert response.status_code == 200
            assert response.json["up_to"] == comments[1]["id"]

    def test_it_outlives_the_comment(self, alice, bob, post):
        comments = [alice.add_comment(post, "x") for _ in range(3)]
        see(bob, post, comments[1])
        alice.delete(f"/comments/{comments[1]['id']}")
        seen = bob.get(path_of(post)).json
        assert (seen["up_to"], seen["new"]) == (comments[1]["id"], [comments[2]["id"]])

    def test_deleted_comments_are_not_new(self, alice, bob, post):
        see(bob, post)
        comment = alice.add_comment(post, "x")
        reply = alice.add_comment(post, "y", parent_id=comment["id"])
        alice.delete(f"/comments/{comment['id']}")
        assert bob.get(path_of(post)).json["new"] == [reply["id"]]

    def test_a_hundred_are_listed(self, app, alice, bob, post):
        see(bob, post)
        comments = [alice.add_comment(post, "x")["id"] for _ in range(101)]
        assert bob.get(path_of(post)).json["new"] == comments[:100]

    @pytest.mark.parametrize(
        ("body", "locations"),
        [
            ({}, {"/up_to"}),
            ({"up_to": "x"}, {"/up_to"}),
            ({"up_to": UNKNOWN}, {"/up_to"}),
            ({"up_to": None, "shown": ["x"]}, {"/shown/0"}),
            ({"up_to": None, "shown": [UNKNOWN] * 2}, {"/shown"}),
            ({"up_to": None, "x": 1}, {"/x"}),
        ],
    )
    def test_an_invalid_body_gets_422(self, app, bob, post, body, locations):
        assert error_locations(bob.put(path_of(post), json=body)) == locations
        with app.app_context():
            assert db.session.scalar(sa.select(sa.func.count()).select_from(Seen)) == 0

    def test_a_comment_on_another_post_gets_422(self, alice, bob, post):
        other = alice.add_comment(alice.create_post("x"), "x")
        response = see(bob, post, other)
        assert response.json["errors"][0]["code"] == "no_such_comment"

    def test_an_unknown_post_gets_404(self, alice, bob, post):
        alice.delete(f"/posts/{post['id']}")
        assert_problem(bob.get(path_of(post)), 404)
        assert_problem(see(bob, post), 404)

    def test_it_goes_with_the_account_and_with_the_post(self, app, alice, bob, eve, post):
        for client in (bob, eve):
            see(client, post)
        assert bob.delete("/users/me").status_code == 204

        def count():
            with app.app_context():
                return db.session.scalar(sa.select(sa.func.count()).select_from(Seen))

        assert count() == 1
        alice.delete(f"/posts/{post['id']}")
        assert count() == 0

    def test_it_expires_after_a_year(self, app, alice, bob, eve, post):
        see(bob, post)
        with app.app_context(), transaction() as connection:
            connection.execute(sa.update(Seen).values(seen_at=now() - timedelta(days=366)))
        see(eve, post)
        assert bob.get(path_of(post)).json["until"] is None
        assert eve.get(path_of(post)).json["until"]

    def test_comments_of_the_same_moment_are_in_the_order_of_their_ids(self, app, alice, bob, post):
        comments = [alice.add_comment(post, "x") for _ in range(2)]
        one, two = sorted(comments, key=lambda comment: comment["id"])
        with app.app_context(), transaction() as connection:
            time = now()
            connection.execute(sa.update(Comment).values(created_at=time, thread_at=time))
            connection.execute(sa.update(Post).values(last_comment_at=time))
        assert see(bob, post, one).json["new"] == [two["id"]]
        assert see(bob, post, two).json["new"] == []
        assert see(bob, post, one).json["up_to"] == two["id"]


class TestNotifications:
    def test_what_was_seen_is_read(self, alice, bob, post):
        see(alice, post)
        comments = [bob.add_comment(post, f"{number}") for number in range(3)]
        other = bob.add_comment(alice.create_post("Another"), "x")
        see(alice, post, comments[1])
        assert unread(alice) == [other["id"], comments[2]["id"]]
        assert alice.get("/notifications/unread").json == {"count": 2}

    def test_at_the_first_visit_only_what_was_shown_is_read(self, alice, bob, post):
        comments = [bob.add_comment(post, f"{number}") for number in range(3)]
        see(alice, post, comments[2], shown=[comments[1]["id"]])
        assert unread(alice) == [comments[2]["id"], comments[0]["id"]]
        assert alice.get(path_of(post)).json["new"] == []

    def test_what_was_shown_later_is_read_too(self, alice, bob, post):
        see(alice, post)
        comments = [bob.add_comment(post, f"{number}") for number in range(3)]
        foreign = bob.add_comment(alice.create_post("Another"), "x")
        shown = [comments[2]["id"], foreign["id"], UNKNOWN]
        assert see(alice, post, comments[0], shown=shown).status_code == 200
        assert unread(alice) == [foreign["id"], comments[1]["id"]]
        assert alice.get(path_of(post)).json["new"] == [each["id"] for each in comments[1:]]

    def test_a_post_that_mentions_its_reader_is_read(self, alice, bob):
        post = alice.create_post("x", content="@bob")
        [told] = bob.get("/notifications?unread=true").json
        assert told["post"]["id"] == post["id"]
        see(bob, post)
        assert bob.get("/notifications?unread=true").json == []

    def test_those_of_other_members_stay(self, alice, bob, eve, post):
        choose(eve, post, "all")
        comment = bob.add_comment(post, "x")
        see(alice, post, comment, shown=[comment["id"]])
        assert (unread(alice), unread(eve)) == ([], [comment["id"]])

    def test_what_moderators_must_decide_stays(self, alice, bob, moderator, post):
        bob.post(f"/posts/{post['id']}/reports", json={"reason": "x"})
        see(moderator, post)
        [told] = moderator.get("/notifications?unread=true").json
        assert told["kind"] == "report"

    def test_some_are_read_by_their_ids(self, alice, bob, eve, post):
        choose(eve, post, "all")
        for number in range(3):
            bob.add_comment(post, f"{number}")
        told = alice.get("/notifications").json
        body = {"ids": [told[1]["id"], UNKNOWN]}
        response = alice.post("/notifications/read", json=body)
        assert response.json == {"count": 2}
        left = alice.get("/notifications?unread=true").json
        assert [each["id"] for each in left] == [told[0]["id"], told[2]["id"]]
        assert len(unread(eve)) == 3

    @pytest.mark.parametrize("body", [{}, {"ids": [UNKNOWN], "up_to": UNKNOWN}, {"ids": ["x"]}])
    def test_one_of_two_ways_must_be_chosen(self, alice, body):
        response = alice.post("/notifications/read", json=body)
        assert error_locations(response) == ({"/ids/0"} if "x" in str(body) else {"/up_to"})
