"""Topics: owners name them, and posts have up to three."""

import pytest
import sqlalchemy as sa

from posting.db.base import db
from posting.topics import store
from posting.topics.models import COLORS, MAX_TOPICS, PostTopic
from tests.helpers.assertions import assert_problem, follow_list

pytestmark = pytest.mark.usefixtures("stays_consistent")
UNKNOWN = "a" * 21


def create(owner, name="Looms", color="green"):
    response = owner.post("/topics", json={"name": name, "color": color})
    assert response.status_code == 201, response.text
    return response.json


def ids(items):
    return [item["id"] for item in items]


def error_codes(problem):
    return [error["code"] for error in problem["errors"]]


def labels(post):
    return [topic["name"] for topic in post["topics"]]


def in_topic(client, topic, query=""):
    return ids(client.get(f"/posts?topic={topic['id']}{query}").json)


@pytest.fixture
def looms(owner):
    return create(owner)


class TestTopics:
    def test_a_topic_is_created_and_read(self, owner, anonymous):
        topic = create(owner, "Looms", "mint")
        assert (topic["name"], topic["color"]) == ("Looms", "mint")
        assert anonymous.get(f"/topics/{topic['id']}").json == topic
        assert anonymous.get("/topics").json == [topic]

    def test_they_are_listed_by_name(self, owner, anonymous):
        for name in ("weaving", "Algebra", "Looms"):
            create(owner, name)
        names = [topic["name"] for topic in anonymous.get("/topics").json]
        assert names == ["Algebra", "Looms", "weaving"]

    @pytest.mark.parametrize(
        ("change", "code"),
        [
            ({"name": ""}, "too_short"),
            ({"name": " "}, "blank"),
            ({"name": "a\nb"}, "line_break"),
            ({"name": "x" * 41}, "too_long"),
            ({"color": "grey"}, "not_a_choice"),
            ({"color": "#ff0000"}, "not_a_choice"),
        ],
    )
    def test_what_is_no_topic(self, owner, looms, change, code):
        response = owner.post("/topics", json={"name": "Engines", "color": "red"} | change)
        assert error_codes(assert_problem(response, 422)) == [code]

    @pytest.mark.parametrize("color", COLORS)
    def test_each_color(self, owner, color):
        assert create(owner, color=color)["color"] == color

    def test_there_are_thirty_at_most(self, owner):
        topics = [create(owner, str(number)) for number in range(MAX_TOPICS)]
        other = {"json": {"name": "Looms", "color": "red"}}
        problem = assert_problem(owner.post("/topics", **other), 409)
        assert problem["code"] == "too_many_topics"
        assert owner.delete(f"/topics/{topics[0]['id']}").status_code == 204
        assert owner.post("/topics", **other).status_code == 201

    def test_it_is_renamed_and_keeps_its_own_name(self, owner, looms, anonymous):
        url = f"/topics/{looms['id']}"
        assert owner.patch(url, json={"name": "LOOMS", "color": "red"}).json["name"] == "LOOMS"
        create(owner, "Engines")
        taken = owner.patch(url, json={"name": "engines"})
        [error] = assert_problem(taken, 409)["errors"]
        assert (error["code"], error["pointer"]) == ("topic_taken", "/name")
        again = owner.post("/topics", json={"name": "ENGINES", "color": "red"})
        assert assert_problem(again, 409)["code"] == "topic_taken"
        assert anonymous.get(url).json["name"] == "LOOMS"

    def test_an_edit_compares(self, owner, looms):
        url = f"/topics/{looms['id']}"
        etag = owner.get(url).headers["ETag"]
        assert owner.patch(url, json={"color": "red"}).status_code == 200
        stale = {"headers": {"If-Match": etag}}
        assert_problem(owner.patch(url, json={"color": "blue"}, **stale), 412)
        assert_problem(owner.delete(url, **stale), 412)
        assert owner.get(url).json["color"] == "red"

    def test_an_unknown_one(self, owner):
        for method in ("GET", "PATCH", "DELETE"):
            body = {"json": {}} if method == "PATCH" else {}
            problem = assert_problem(owner.open(f"/topics/{UNKNOWN}", method=method, **body), 404)
            assert problem["code"] == "no_such_topic"

    def test_the_log_has_what_owners_do(self, owner, looms):
        url = f"/topics/{looms['id']}"
        owner.patch(url, json={"name": "Engines"})
        owner.delete(url)
        acts = [
            act for act in owner.get("/moderation/log").json if act["target"]["kind"] == "topic"
        ]
        assert [(act["action"], act["reason"]) for act in acts] == [
            ("deleted", "Engines"),
            ("edited", "Engines"),
            ("created", "Looms"),
        ]


class TestPosts:
    def test_a_post_has_topics_by_name(self, owner, alice, looms):
        topics = [looms, create(owner, "algebra"), create(owner, "Weaving")]
        post = alice.create_post("On engines", topics=ids(topics))
        expected = [
            {name: topic[name] for name in ("id", "name", "color")}
            for topic in (topics[1], topics[0], topics[2])
        ]
        assert post["topics"] == expected
        assert alice.get(f"/posts/{post['id']}").json["topics"] == expected
        assert alice.get("/posts").json[0]["topics"] == expected

    def test_without_topics_there_are_none(self, alice, post):
        assert post["topics"] == alice.get("/posts").json[0]["topics"] == []

    @pytest.mark.parametrize("topics", [[UNKNOWN], ["first", UNKNOWN]])
    def test_an_unknown_topic(self, alice, looms, topics):
        topics = [looms["id"] if each == "first" else each for each in topics]
        body = {"title": "x", "content": "x", "topics": topics}
        problem = assert_problem(alice.post("/posts", json=body), 422)
        [error] = problem["errors"]
        assert (error["code"], error["pointer"]) == ("no_such_topic", f"/topics/{len(topics) - 1}")
        assert alice.get("/posts").json == []

    def test_more_than_three_and_one_twice(self, owner, alice):
        topics = ids(create(owner, str(number)) for number in range(4))
        for chosen, code in ((topics, "too_many"), ([topics[0]] * 2, "repeated")):
            body = {"title": "x", "content": "x", "topics": chosen}
            problem = assert_problem(alice.post("/posts", json=body), 422)
            assert error_codes(problem) == [code]

    def test_an_edit_replaces_them(self, owner, alice, looms):
        other = create(owner, "Engines")
        post = alice.create_post("x", topics=[looms["id"]])
        url = f"/posts/{post['id']}"
        edited = alice.patch(url, json={"topics": [other["id"]]})
        assert labels(edited.json) == ["Engines"]
        assert edited.json["updated_at"] > post["updated_at"]
        assert in_topic(alice, looms) == []
        assert labels(alice.patch(url, json={"title": "y"}).json) == ["Engines"]
        same = alice.patch(url, json={"topics": [other["id"]]}).json
        assert same["updated_at"] == alice.get(url).json["updated_at"]
        assert labels(alice.patch(url, json={"topics": []}).json) == []
        assert in_topic(alice, other) == []

    def test_a_new_name_is_that_of_all_posts(self, owner, alice, looms):
        post = alice.create_post("x", topics=[looms["id"]])
        owner.patch(f"/topics/{looms['id']}", json={"name": "Engines"})
        assert labels(alice.get(f"/posts/{post['id']}").json) == ["Engines"]

    def test_a_deleted_topic_is_taken_from_its_posts(self, app, owner, alice, looms, monkeypatch):
        monkeypatch.setattr(store, "POSTS_PER_STEP", 2)
        other = create(owner, "Engines")
        posts = [alice.create_post("x", topics=[looms["id"], other["id"]]) for _ in range(5)]
        assert owner.delete(f"/topics/{looms['id']}").status_code == 204
        assert [labels(post) for post in alice.get("/posts").json] == [["Engines"]] * 5
        assert owner.delete(f"/topics/{other['id']}").status_code == 204
        assert alice.get(f"/posts/{posts[0]['id']}").json["topics"] == []
        with app.app_context():
            assert db.session.scalars(sa.select(PostTopic)).all() == []


class TestLists:
    def test_the_posts_of_a_topic_in_pages(self, alice, looms):
        posts = [alice.create_post(str(number), topics=[looms["id"]]) for number in range(5)]
        alice.create_post("another")
        expected = ids(reversed(posts))
        assert in_topic(alice, looms) == expected
        pages = follow_list(alice, f"/posts?topic={looms['id']}&limit=2")
        assert ids(pages) == expected

    def test_by_activity(self, alice, bob, looms):
        posts = [alice.create_post(str(number), topics=[looms["id"]]) for number in range(3)]
        comment = bob.add_comment(posts[0], "x")
        latest = bob.add_comment(posts[1], "x")
        expected = ids([posts[1], posts[0], posts[2]])
        assert in_topic(alice, looms, "&sort=active") == expected
        pages = follow_list(alice, f"/posts?topic={looms['id']}&sort=active&limit=1")
        assert ids(pages) == expected
        bob.delete(f"/comments/{latest['id']}")
        assert in_topic(alice, looms, "&sort=active") == ids([posts[0], posts[2], posts[1]])
        bob.delete(f"/comments/{comment['id']}")
        assert in_topic(alice, looms, "&sort=active") == in_topic(alice, looms)

    def test_a_post_that_gets_a_topic_later_has_its_place(self, alice, bob, looms):
        first, second = alice.create_post("1"), alice.create_post("2", topics=[looms["id"]])
        bob.add_comment(first, "x")
        alice.patch(f"/posts/{first['id']}", json={"topics": [looms["id"]]})
        assert in_topic(alice, looms) == ids([second, first])
        assert in_topic(alice, looms, "&sort=active") == ids([first, second])

    def test_deleted_posts_are_left_out(self, alice, looms):
        posts = [alice.create_post(str(number), topics=[looms["id"]]) for number in range(2)]
        alice.delete(f"/posts/{posts[0]['id']}")
        assert in_topic(alice, looms) == [posts[1]["id"]]

    def test_an_empty_topic_and_an_unknown_one(self, alice, looms):
        assert in_topic(alice, looms) == []
        problem = assert_problem(alice.get(f"/posts?topic={UNKNOWN}"), 404)
        assert problem["code"] == "no_such_topic"

    @pytest.mark.parametrize("other", ["q=looms", f"author={UNKNOWN}", "pinned=true"])
    def test_one_choice_at_a_time(self, alice, looms, other):
        problem = assert_problem(alice.get(f"/posts?topic={looms['id']}&{other}"), 422)
        [error] = problem["errors"]
        assert (error["code"], error["parameter"]) == ("repeated", "topic")

    def test_a_cursor_of_another_topic(self, owner, alice, looms):
        other = create(owner, "Engines")
        for _ in range(2):
            alice.create_post("x", topics=[looms["id"], other["id"]])
        response = alice.get(f"/posts?topic={looms['id']}&limit=1")
        query = response.headers["Link"].partition("cursor=")[2].partition(">")[0]
        problem = assert_problem(alice.get(f"/posts?topic={other['id']}&cursor={query}"), 422)
        assert problem["errors"][0]["parameter"] == "cursor"
