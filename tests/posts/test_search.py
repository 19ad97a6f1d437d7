"""`GET /posts?q=`: posts that contain words."""

from datetime import datetime

import pytest

from posting.posts.search import results as search
from tests.helpers.assertions import error_locations, follow_pages


@pytest.fixture
def found(anonymous):
    """Return a function that returns the titles of the posts that a query finds."""

    def found(q, **others):
        response = anonymous.get("/posts", query_string={"q": q} | others)
        assert response.status_code == 200, response.text
        return [post["title"] for post in response.json]

    return found


def test_posts_are_found_by_words_of_their_title_and_content(alice, found):
    alice.create_post("On engines", content="They *weave* algebra.")
    alice.create_post("On looms", content="Looms weave cloth, Émile says: “don't!”")
    assert found("engines") == ["On engines"]
    assert found("weave looms") == found("LOOMS   weave!") == ["On looms"]
    assert sorted(found("on")) == ["On engines", "On looms"]
    assert found("emile") == found("ÉMILE") == ["On looms"]
    assert found("loom") == []  # whole words
    assert found("loo*") == ["On looms"]
    assert found('"looms weave"') == found("don't") == ["On looms"]
    assert found('"weave looms"') == found("weave engines cloth") == []
    assert found('"engines they"') == []  # a phrase is in the title or in the content
    assert found('"weave clo*"') == []


@pytest.mark.parametrize(
    ("q", "code"),
    [
        ("", "too_short"),
        ("x" * 201, "too_long"),
        (" ", "blank"),
        (" \t\u3000\u200b\0", "blank"),
        ("a*", "too_short"),
        ("looms É*", "too_short"),
        ('a*"looms"', "too_short"),
        ("e-m*", "too_short"),
        ("a:*", "too_short"),
    ],
)
def test_a_query_that_is_blank_too_long_or_has_a_short_prefix_is_422(anonymous, q, code):
    response = anonymous.get("/posts", query_string={"q": q})
    assert error_locations(response) == {"q"}
    assert [error["code"] for error in response.json["errors"]] == [code]


def test_a_prefix_of_one_character_is_a_word_where_each_character_is_one(alice, found):
    alice.create_post("東京タワー", content="x")
    for q in ("東*", "東京*", "ワ*"):
        assert found(q) == found(q.removesuffix("*")) == ["東京タワー"]
    assert found('"x* x*"') == []  # no prefixes, since they are in quotes


@pytest.mark.parametrize(
    "q",
    [
        '"', '"""', "*", "**", "a*b", "AND", "OR NOT", "NEAR(a b)", "{title} : x", "title:x", "^x",
        "-x", "a & b | !c", "a <-> b", "aa:*", "'", "';--", "\\", "%", "_", "\0x", "\ud800",
        "🧵", "  x  ", "x" * 200, "a " * 100, "aa* " * 50, '"a' * 60, "\u0301", "ﷺ" * 200, "@",
    ],
)  # fmt: skip
def test_any_text_is_a_query(alice, anonymous, q):
    alice.create_post("Another", content="z")
    response = anonymous.get("/posts", query_string={"q": q.encode("utf-8", "surrogatepass")})
    assert (response.status_code, response.json) == (200, [])


def test_an_edit_and_a_deletion_change_what_is_found(alice, found):
    post = alice.create_post("On engines", content="Algebra")
    path = f"/posts/{post['id']}"
    alice.patch(path, json={"content": "Cloth"})
    assert (found("algebra"), found("cloth engines")) == ([], ["On engines"])
    alice.patch(path, json={"title": "On looms"})
    assert (found("engines"), found("looms cloth")) == ([], ["On looms"])
    alice.delete(path)
    assert found("looms") == []


def test_a_refused_write_changes_nothing(alice, found):
    post = alice.create_post("On engines", content="Algebra")
    edit = alice.patch(
        f"/posts/{post['id']}", json={"content": "Cloth"}, headers={"If-Match": '"7"'}
    )
    assert edit.status_code == 412
    assert (found("algebra"), found("cloth")) == (["On engines"], [])


def test_results_come_newest_first_in_pages(alice, anonymous):
    for number in range(7):
        alice.create_post(f"Post {number}", content="odd" if number % 2 else "even")
    pages = list(follow_pages(anonymous, "/posts?q=odd+post&limit=2"))
    assert [len(page) for page in pages] == [2, 1]
    odd = [post for post in anonymous.get("/posts").json if post["title"][-1] in "135"]
    assert [post for page in pages for post in page] == odd


def test_posts_of_an_author_are_found(alice, bob, found):
    alice.create_post("Alice's", content="common")
    bob.create_post("Bob's", content="common")
    assert found("common", author=bob.user["id"]) == ["Bob's"]
    assert found("unknown", author=bob.user["id"]) == []


def test_results_may_be_whole_posts(alice, anonymous):
    alice.create_post("On engines", content="Algebra")
    [post] = anonymous.get("/posts?q=algebra&expand=content,images").json
    assert (post["content"], post["images"]) == ("Algebra", [])


def test_results_have_no_other_order(anonymous):
    assert error_locations(anonymous.get("/posts?q=x&sort=active")) == {"sort"}
    assert anonymous.get("/posts?q=x&sort=new").status_code == 200


def test_a_cursor_of_another_list_is_422(alice, anonymous):
    for _ in range(2):
        alice.create_post("Title")
    cursor = anonymous.get("/posts?limit=1").headers["Link"].partition("cursor=")[2].partition(">")
    assert error_locations(anonymous.get(f"/posts?q=title&cursor={cursor[0]}")) == {"cursor"}


@pytest.mark.parametrize("milliseconds", ["-99999999999999", "0", "253402300799999"])
def test_a_cursor_of_any_time_is_valid(alice, anonymous, milliseconds):
    alice.create_post("Title")
    cursor = f"found_posts.{milliseconds}.{'a' * 21}"
    response = anonymous.get(f"/posts?q=title&cursor={cursor}")
    if milliseconds.startswith("-"):  # before the year 1
        assert error_locations(response) == {"cursor"}
    else:
        assert len(response.json) == (milliseconds != "0")


def test_posts_of_a_deleted_account_are_found_if_they_were_kept(alice, bob, found):
    alice.create_post("Kept", content="common")
    assert alice.delete(f"/users/{alice.user['id']}").status_code == 204
    bob.create_post("Deleted", content="common")
    assert bob.delete(f"/users/{bob.user['id']}?content=delete").status_code == 204
    assert found("common") == ["Kept"]


def test_posts_of_the_same_millisecond_are_all_found(alice, anonymous, monkeypatch):
    class Stopped(datetime):
        @classmethod
        def now(cls, tz):
            return datetime(2026, 11, 22, 9, 30, tzinfo=tz)

    ids = iter([*(f"{'a' * 20}{n}" for n in range(5)), *(f"{'b' * 20}{n}" for n in range(5))])
    monkeypatch.setattr("posting.db.types.nanoid.generate", lambda size: next(ids))
    monkeypatch.setattr("posting.db.types.datetime", Stopped)
    posts = [alice.create_post("Same", content=f"number {number}") for number in range(6)]
    assert len({post["created_at"] for post in posts}) == 1
    assert len(anonymous.get("/posts?q=same").json) == 6
    for number, post in enumerate(posts):
        assert [row["id"] for row in anonymous.get(f"/posts?q={number}").json] == [post["id"]]
        alice.patch(f"/posts/{post['id']}", json={"content": "changed"})
        assert anonymous.get(f"/posts?q={number}").json == []
        alice.delete(f"/posts/{post['id']}")
    assert anonymous.get("/posts?q=same").json == []


@pytest.mark.parametrize("deleted", [1, 4, 5])
def test_posts_deleted_during_a_search_do_not_end_the_list(alice, anonymous, monkeypatch, deleted):
    posts = [alice.create_post(f"Found {number}") for number in range(12)]
    newest = [post["id"] for post in anonymous.get("/posts?q=found").json]
    assert set(newest) == {post["id"] for post in posts}

    def find_and_delete(*arguments):
        found = find_posts(*arguments)
        for _, id in found[:deleted]:
            if id in newest[:deleted]:
                alice.delete(f"/posts/{id}")
        return found

    find_posts = search.find_posts
    monkeypatch.setattr(search, "find_posts", find_and_delete)
    pages = follow_pages(anonymous, "/posts?q=found&limit=4")
    assert [post["id"] for page in pages for post in page] == newest[deleted:]
