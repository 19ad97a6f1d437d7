"""`GET /posts?q=` and `GET /comments?q=`: posts and comments that contain words."""

from datetime import datetime

import pytest

from posting.search.index import Index
from tests.helpers.assertions import assert_problem, error_locations, follow_pages, next_url

UNKNOWN = "a" * 21


def test_texts_are_found_by_their_words(alice, anonymous, kind):
    engines, looms = "Engines *weave* algebra.", "Looms weave cloth, Émile says: “don't!”"
    for text in (engines, looms):
        kind.create(alice, text)
    assert kind.find(anonymous, "engines") == [engines]
    assert kind.find(anonymous, "weave looms") == kind.find(anonymous, "LOOMS   weave!") == [looms]
    assert kind.find(anonymous, "weave") == [looms, engines]
    assert kind.find(anonymous, "emile") == kind.find(anonymous, "ÉMILE") == [looms]
    assert kind.find(anonymous, "loom") == []  # whole words
    assert kind.find(anonymous, "loo*") == [looms]
    assert kind.find(anonymous, '"looms weave"') == kind.find(anonymous, "don't") == [looms]
    assert (
        kind.find(anonymous, '"weave looms"') == kind.find(anonymous, "weave engines cloth") == []
    )
    assert kind.find(anonymous, '"weave clo*"') == []


@pytest.mark.parametrize(
    ("text", "queries"),
    [
        ("In Łódź and København", ["lodz", "ŁÓDŹ", "kobenhavn", "koben*", "kobenhavn łódź"]),
        ("Đà Nẵng, mon cœur", ["da nang", '"da nang"', "đà nẵng", "coeur"]),
        ("компʼютер", ["комп'ютер", "комп’ютер", "комп*"]),
        ("LEGO™ 10½ №5 ㍿", ["lego", "lego™", "10", "10½", "no5", "株式会社"]),
        ("کتاب مـرحبا ۱۴۰۵", ["كتاب", "مرحبا", "1405", "١٤٠٥"]),
    ],
)
def test_letters_that_look_alike_find_each_other(alice, anonymous, kind, text, queries):
    kind.create(alice, text)
    for query in queries:
        assert kind.find(anonymous, query) == [text], query


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
def test_a_query_that_is_blank_too_long_or_has_a_short_prefix_gets_422(anonymous, kind, q, code):
    response = anonymous.get(kind.path, query_string={"q": q})
    assert error_locations(response) == {"q"}
    assert [error["code"] for error in response.json["errors"]] == [code]


def test_a_prefix_of_one_character_is_a_word_where_each_character_is_one(alice, anonymous, kind):
    kind.create(alice, "x 東京タワー")
    for q in ("東*", "東京*", "ワ*"):
        assert (
            kind.find(anonymous, q) == kind.find(anonymous, q.removesuffix("*")) == ["x 東京タワー"]
        )
    assert kind.find(anonymous, '"x* x*"') == []  # no prefixes, since they are in quotes


@pytest.mark.parametrize(
    "q",
    [
        '"', '"""', "*", "**", "a*b", "AND", "OR NOT", "NEAR(a b)", "{title} : x", "title:x", "^x",
        "-x", "a & b | !c", "a <-> b", "aa:*", "'", "';--", "\\", "%", "_", "\0x", "\ud800",
        "🧵", "  x  ", "x" * 200, "a " * 100, "aa* " * 50, '"a' * 60, "\u0301", "ﷺ" * 200, "@",
    ],
)  # fmt: skip
def test_any_text_is_a_query(alice, anonymous, kind, q):
    kind.create(alice, "z")
    query = {"q": q.encode("utf-8", "surrogatepass")}
    response = anonymous.get(kind.path, query_string=query)
    assert (response.status_code, response.json) == (200, [])


def test_an_edit_and_a_deletion_change_what_is_found(alice, anonymous, kind):
    item = kind.create(alice, "Algebra")
    path = f"{kind.path}/{item['id']}"
    assert alice.patch(path, json={"content": "Cloth"}).status_code == 200
    assert (kind.find(anonymous, "algebra"), kind.find(anonymous, "cloth")) == ([], ["Cloth"])
    assert alice.delete(path).status_code == 204
    assert kind.find(anonymous, "cloth") == []


def test_a_refused_write_changes_nothing(alice, anonymous, kind):
    item = kind.create(alice, "Algebra")
    path, headers = f"{kind.path}/{item['id']}", {"If-Match": '"7"'}
    assert alice.patch(path, json={"content": "Cloth"}, headers=headers).status_code == 412
    assert alice.delete(path, headers=headers).status_code == 412
    assert (kind.find(anonymous, "algebra"), kind.find(anonymous, "cloth")) == (["Algebra"], [])


def test_results_come_newest_first_in_pages(alice, anonymous, kind):
    items = [kind.create(alice, f"{('even', 'odd')[n % 2]} number") for n in range(7)]
    pages = list(follow_pages(anonymous, f"{kind.path}?q=odd+number&limit=2"))
    assert [len(page) for page in pages] == [2, 1]
    found = [item["id"] for page in pages for item in page]
    assert found == [items[n]["id"] for n in (5, 3, 1)]


def test_the_texts_of_an_author_are_found(alice, bob, anonymous, kind):
    kind.create(alice, "common, of Alice")
    kind.create(bob, "common, of Bob")
    assert kind.find(anonymous, "common", author=bob.user["id"]) == ["common, of Bob"]
    assert kind.find(anonymous, "unknown", author=bob.user["id"]) == []
    assert_problem(anonymous.get(f"{kind.path}?q=common&author={UNKNOWN}"), 404)


def test_a_cursor_of_another_list_gets_422(alice, anonymous, kind):
    for _ in range(2):
        kind.create(alice, "Text")
    cursor = next_url(anonymous.get(f"{kind.path}?limit=1")).rpartition("cursor=")[2]
    assert error_locations(anonymous.get(f"{kind.path}?q=text&cursor={cursor}")) == {"cursor"}


@pytest.mark.parametrize("milliseconds", ["-99999999999999", "0", "253402300799999"])
def test_a_cursor_of_any_time_is_valid(alice, anonymous, kind, milliseconds):
    kind.create(alice, "Text")
    cursor = f"found_{kind.index.name}s.{milliseconds}.{'a' * 21}"
    response = anonymous.get(f"{kind.path}?q=text&cursor={cursor}")
    if milliseconds.startswith("-"):  # before the year 1
        assert error_locations(response) == {"cursor"}
    else:
        assert len(response.json) == (milliseconds != "0")


def test_texts_of_a_deleted_account_are_found_if_they_were_kept(alice, bob, anonymous, kind):
    kind.create(alice, "common, kept")
    assert alice.delete(f"/users/{alice.user['id']}").status_code == 204
    kind.create(bob, "common, deleted")
    assert bob.delete(f"/users/{bob.user['id']}?content=delete").status_code == 204
    assert kind.find(anonymous, "common") == ["common, kept"]
    assert_problem(anonymous.get(f"{kind.path}?q=common&author={alice.user['id']}"), 404)


def test_texts_of_the_same_millisecond_are_all_found(alice, anonymous, kind, monkeypatch):
    class Stopped(datetime):
        @classmethod
        def now(cls, tz):
            return datetime(2026, 11, 22, 9, 30, tzinfo=tz)

    # Also for notifications.
    ids = iter([*(f"{'a' * 20}{n}" for n in range(10)), *(f"{'b' * 20}{n}" for n in range(10))])
    monkeypatch.setattr("posting.db.types.nanoid.generate", lambda size: next(ids))
    monkeypatch.setattr("posting.db.types.datetime", Stopped)
    items = [kind.create(alice, f"same {number}") for number in range(6)]
    assert len({item["created_at"] for item in items}) == 1
    assert len(anonymous.get(f"{kind.path}?q=same").json) == 6
    for number, item in enumerate(items):
        [row] = anonymous.get(f"{kind.path}?q={number}").json
        assert row["id"] == item["id"]
        alice.patch(f"{kind.path}/{item['id']}", json={"content": "same, changed"})
        assert anonymous.get(f"{kind.path}?q={number}").json == []
        alice.delete(f"{kind.path}/{item['id']}")
        assert len(anonymous.get(f"{kind.path}?q=same").json) == 5 - number


@pytest.mark.parametrize("deleted", [1, 4, 5])
def test_deletions_during_a_search_do_not_end_the_list(
    alice, anonymous, kind, monkeypatch, deleted
):
    items = [kind.create(alice, f"Found {number}") for number in range(12)]
    # Two may have the time of one millisecond.
    items.sort(key=lambda item: (item["created_at"], item["id"]), reverse=True)
    newest = [item["id"] for item in items]

    def find_and_delete(*arguments):
        found = find(*arguments)
        for _, id in found[:deleted]:
            if id in newest[:deleted]:
                alice.delete(f"{kind.path}/{id}")
        return found

    find = Index.find
    monkeypatch.setattr(Index, "find", find_and_delete)
    pages = follow_pages(anonymous, f"{kind.path}?q=found&limit=4")
    assert [item["id"] for page in pages for item in page] == newest[deleted:]
