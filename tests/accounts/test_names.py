"""`GET /users?q=`: members by the beginning of a name."""

import random
from urllib.parse import urlencode

import pytest
import sqlalchemy as sa
from hypothesis import settings

from posting.accounts.models import User
from posting.accounts.names import INDEX
from posting.accounts.store import insert_users
from posting.db.base import db
from posting.db.transactions import transaction, unit_of_work
from posting.db.types import new_id
from posting.search.words import split_words
from tests.helpers.assertions import error_locations, follow_pages

MEMBERS = 300
PARTS = (
    "Ada|ada|Adam|Lovelace|love|O'Brien|Émile|Zoë|Ångström|Жанна|жан|Straße|東京|太郎|אדה|عائشة|李|x|"
    "ﬁ|de la|van den|Ⅳ|🧵|-|İpek|Øyvind|Łukasz|کریم|كريم|٧"
).split("|")


@pytest.fixture
def found(anonymous):
    """Return a function that returns the usernames that a query finds."""

    def found(q, **others):
        response = anonymous.get("/users", query_string={"q": q} | others)
        assert response.status_code == 200, response.text
        return [user["username"] for user in response.json]

    return found


def test_a_member_is_found_by_the_beginning_of_a_name(sign_in, found, anonymous):
    ada = sign_in("countess_of-math", display_name="Ada King-Lovelace")
    for q in ("countess", "COUNT", "@count", "of", "math", "countess_of", "ada", "Á", "ada k"):
        assert found(q) == ["countess_of-math"], q
    for q in ("king", "lovel", "  KING lovelace "):
        assert found(q) == ["countess_of-math"], q
    for q in ("untess", "da", "ada lovelace", "ada x", "countess math"):
        assert found(q) == [], q
    assert anonymous.get("/users?q=ada").json == [ada.user]


@pytest.mark.parametrize(
    ("name", "q"),
    [
        ("Łukasz Ørsted", "luk"),
        ("Łukasz Ørsted", "orst"),
        ("کریم", "كري"),
        ("Oʼbrien ۷", "o'brien 7"),
    ],
)
def test_a_name_is_found_by_letters_that_look_alike(sign_in, found, name, q):
    sign_in("member", display_name=name)
    assert found(q) == found(name) == ["member"]


def test_members_come_in_the_order_of_the_names_by_which_they_are_found(sign_in, found):
    sign_in("adam")
    sign_in("zed", display_name="Ada")
    sign_in("adair", display_name="Ada Byron")
    sign_in("bea", display_name="Bea Adé")
    assert found("ad") == ["zed", "adair", "adam", "bea"]
    assert found("ad", limit=3) == ["zed", "adair", "adam"]


def test_a_member_is_found_once(sign_in, anonymous):
    for number in range(9):
        sign_in(f"ada-{number}", display_name=f"Ada Ada-{9 - number} of Adaland")
    pages = [*follow_pages(anonymous, "/users?q=ada&limit=2")]
    names = [user["username"] for page in pages for user in page]
    assert sorted(names) == [f"ada-{number}" for number in range(9)]
    assert max(map(len, pages)) == 2


def test_a_new_name_replaces_the_former_one(alice, found):
    path = f"/users/{alice.user['id']}"
    assert alice.patch(path, json={"username": "ally"}).status_code == 200
    assert (found("alice"), found("ally")) == (["ally"], ["ally"])  # alice is the display name
    assert alice.patch(path, json={"display_name": None, "bio": "Alice"}).status_code == 200
    assert (found("alice"), found("al")) == ([], ["ally"])
    assert alice.patch(path, json={"bio": None}).status_code == 200
    assert found("ally") == ["ally"]
    assert alice.delete(path).status_code == 204
    assert found("al") == []


def test_a_refused_name_changes_nothing(alice, bob, found):
    path = f"/users/{alice.user['id']}"
    assert alice.patch(path, json={"username": "bob"}).status_code == 409
    assert (found("alice"), found("bob")) == (["alice"], ["bob"])


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("q=", {"q"}),
        ("q=+", {"q"}),
        (f"q={'x' * 65}", {"q"}),
        ("q=a&username=alice", {"q"}),
        ("username=alice&cursor=x", {"cursor"}),
        ("q=a&limit=0", {"limit"}),
        ("q=a&cursor=x", {"cursor"}),
        ("q=a&cursor=found_users.a.x", {"cursor"}),
        (f"q=a&cursor=found_users..{'a' * 21}", {"cursor"}),
        (f"q=a&cursor=found_users.a%00.{'a' * 21}", {"cursor"}),
        (f"q=a&cursor=list_posts.1.{'a' * 21}", {"cursor"}),
    ],
)
def test_a_query_that_is_not_valid_gets_422(anonymous, query, expected):
    assert error_locations(anonymous.get(f"/users?{query}")) == expected


@pytest.mark.parametrize("name", ["b", "alice", "zz", "\U0010ffff", "東", "'", "a\nb"])
def test_a_cursor_of_any_name_is_valid(alice, found, name):
    cursor = f"found_users.{name}.{'a' * 21}"
    assert found("alice", cursor=cursor) in ([], ["alice"])


@pytest.mark.parametrize(
    "q", ["%", "_", "*", "'", '"', "\\", "\ud800", "🧵", "@", "--", "ﷺ" * 64, "\u0301", "a\0"]
)
def test_any_text_is_a_query(bob, anonymous, q):
    query = {"q": q.encode("utf-8", "surrogatepass")}
    response = anonymous.get("/users", query_string=query)
    assert (response.status_code, response.json) == (200, [])


def test_queries_find_what_reading_all_names_finds(app, anonymous):
    """Both databases are held to the same answers, found without an index."""
    rng = random.Random(9)
    users = [
        {
            "id": new_id(),
            "username": f"{rng.choice(['ada', 'Zed', 'love', 'x-y'])}{rng.choice('-_')}{number}",
            "display_name": " ".join(rng.choices(PARTS, k=rng.randint(1, 4))) or None,
            "password_hash": "x",
        }
        for number in range(MEMBERS)
    ]
    with app.app_context():
        with unit_of_work():
            insert_users(users)
        with db.engine.connect() as connection:
            assert INDEX.count_stale(connection) == 0

    def names(user):
        for text in (user["username"], user["display_name"]):
            words = split_words(text)[:8]
            yield from (" ".join(words[start:])[:64] for start in range(len(words)))

    found_any = 0
    for _ in range(8 * settings().max_examples):
        text = rng.choice(users)[rng.choice(["username", "display_name"])]
        start = rng.randrange(len(text))
        q = text[start : start + rng.randint(1, 6)]
        if not q.strip(" "):
            continue
        prefix = " ".join(split_words(q)[:8])
        expected = sorted(
            (min(matching), user["id"])
            for user in users
            if prefix and (matching := [name for name in names(user) if name.startswith(prefix)])
        )
        url = f"/users?{urlencode({'q': q, 'limit': rng.choice([3, 100])})}"
        found = [user["id"] for page in follow_pages(anonymous, url) for user in page]
        assert found == [id for _, id in expected], q
        found_any += bool(found)
    assert found_any > 8 * settings().max_examples / 2


class TestIndex:
    @pytest.fixture
    def count_stale(self, app):
        def count_stale():
            with app.app_context(), db.engine.connect() as connection:
                return INDEX.count_stale(connection)

        return count_stale

    @pytest.mark.parametrize(
        "statement",
        [
            "DELETE FROM user_search",
            "UPDATE users SET username = 'another'",
            "UPDATE users SET display_name = 'Another'",
            "INSERT INTO users (id, username, role, password_hash, created_at) "
            "SELECT 'aaaaaaaaaaaaaaaaaaaaa', 'another', role, 'x', created_at FROM users",
        ],
    )
    def test_a_name_that_is_wrong_is_found_and_corrected(self, app, bob, count_stale, statement):
        assert count_stale() == 0
        with app.app_context(), transaction() as connection:
            connection.exec_driver_sql(statement)
        assert count_stale() == 1
        with app.app_context():
            assert sum(INDEX.rebuild()) in {1, 2}
        assert count_stale() == 0

    def test_outdated_names_find_nobody(self, app, bob, found):
        with app.app_context(), transaction() as connection:
            connection.execute(sa.update(User).values(username="another"))
        assert found("bob") == []

    def test_a_name_of_very_many_words_is_found_by_its_beginning(self, alice, found, count_stale):
        name = "東京" * 32
        alice.patch("/users/me", json={"display_name": name})
        assert found(name[:20]) == found(name) == found("京") == ["alice"]
        assert count_stale() == 0
