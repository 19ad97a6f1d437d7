"""The list of notifications, the number of unread ones, and marking them as read."""

import pytest

from posting.db.types import new_id
from tests.helpers.assertions import assert_problem, error_locations, follow_pages
from tests.helpers.notifications import add, choose, count_rows, read, told

pytestmark = pytest.mark.usefixtures("stays_consistent")


def unread(client):
    return client.get("/notifications/unread").json["count"]


class TestList:
    def test_it_is_newest_first_and_has_pages(self, alice, bob, post):
        ids = [bob.add_comment(post, str(number))["id"] for number in range(5)]
        for query in ("", "&unread=true"):
            pages = [*follow_pages(alice, f"/notifications?limit=2{query}")]
            assert [len(page) for page in pages] == [2, 2, 1]
            listed = [row["comment"]["id"] for page in pages for row in page]
            assert listed == ids[::-1]

    def test_a_cursor_is_that_of_its_list(self, alice, bob, post):
        for number in range(2):
            bob.add_comment(post, str(number))
        [url] = [alice.get("/notifications?limit=1").headers["Link"].split(">")[0].strip("<")]
        assert alice.get(url).status_code == 200
        assert error_locations(alice.get(f"{url}&unread=true")) == {"cursor"}

    @pytest.mark.parametrize("value", ["false", "", "1"])
    def test_another_choice_gets_422(self, alice, value):
        assert error_locations(alice.get(f"/notifications?unread={value}")) == {"unread"}

    def test_an_excerpt_is_short(self, alice, bob, post):
        bob.add_comment(post, "word " * 1000)
        [notification] = told(alice)
        assert notification["comment"]["excerpt"] == ("word " * 40).strip() + " …"

    def test_it_takes_one_query(self, alice, bob, post, statements):
        for number in range(3):
            bob.add_comment(post, str(number))
        statements.clear()
        alice.get("/notifications")
        assert len([sql for sql in statements if "FROM" in sql]) == 2  # with that of the session

    def test_others_are_not_seen(self, alice, bob, reader, post):
        bob.add_comment(post, "And cloth?")
        assert told(bob) == []
        assert unread(bob) == 0
        assert told(reader) == told(alice) != []

    def test_it_is_not_stored(self, alice):
        response = alice.get("/notifications")
        assert response.headers["Cache-Control"] == "private, no-store"


class TestReading:
    def test_all_up_to_one_become_read(self, alice, bob, post):
        for number in range(3):
            bob.add_comment(post, str(number))
        newest, middle, oldest = told(alice)
        assert unread(alice) == 3
        response = read(alice, middle)
        assert (response.status_code, response.json) == (200, {"count": 1})
        assert told(alice) == [newest, middle | {"read": True}, oldest | {"read": True}]
        assert told(alice, "?unread=true") == [newest]
        assert read(alice, oldest).json == {"count": 1}
        assert read(alice, newest).json == {"count": 0}
        assert unread(alice) == 0

    def test_those_of_others_stay_unread(self, alice, bob, eve, post):
        choose(eve, post, "all")
        bob.add_comment(post, "And cloth?")
        [notification] = told(alice)
        assert read(alice, notification).json == {"count": 0}
        assert unread(eve) == 1

    def test_an_unknown_notification_gets_422(self, alice, bob, post):
        comment = bob.add_comment(post, "And cloth?")
        [notification] = told(alice)
        bob.delete(f"/comments/{comment['id']}")
        for sent in (notification, {"id": new_id()}):
            [error] = assert_problem(read(alice, sent), 422)["errors"]
            assert (error["pointer"], error["code"]) == ("/up_to", "no_such_notification")

    def test_a_notification_of_another_member_gets_422(self, alice, bob, post):
        bob.add_comment(post, "And cloth?")
        [notification] = told(alice)
        assert error_locations(read(bob, notification)) == {"/up_to"}

    @pytest.mark.parametrize("body", [{}, {"up_to": None}, {"up_to": "x"}, {"up_to": 1}])
    def test_a_malformed_body_gets_422(self, alice, body):
        assert error_locations(alice.post("/notifications/read", json=body)) == {"/up_to"}


class TestCount:
    def test_it_ends_at_a_hundred(self, app, alice):
        for number in (99, 1, 1):
            add(app, alice, number)
            expected = min(100, count_rows(app))
            assert unread(alice) == expected
        assert count_rows(app) == 101

    def test_a_client_asks_whether_it_has_changed(self, alice, bob, post):
        response = alice.get("/notifications/unread")
        assert response.headers["Cache-Control"] == "private, no-store"
        unchanged = {"If-None-Match": response.headers["ETag"]}
        assert alice.get("/notifications/unread", headers=unchanged).status_code == 304
        bob.add_comment(post, "And cloth?")
        assert alice.get("/notifications/unread", headers=unchanged).json == {"count": 1}
