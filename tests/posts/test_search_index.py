"""The search index: the same answers on both databases, and its maintenance."""

import random
import string
from datetime import UTC, datetime, timedelta

import flask_migrate
import pytest
import sqlalchemy as sa
from alembic.migration import MigrationContext
from alembic.operations import Operations
from hypothesis import settings

from posting.accounts.models import User
from posting.db.base import db
from posting.db.migrations.upgrades import schema_change
from posting.db.transactions import is_in_transaction
from posting.db.types import new_id, now, truncate_to_milliseconds
from posting.posts import search
from posting.posts.models import Post
from posting.posts.search import entries, postgres
from posting.posts.search.words import has_short_prefix, parse_query, split_words
from posting.testbed import sign_in
from tests.conftest import POSTGRES
from tests.helpers.assertions import follow_pages

POSTS, AUTHORS = 5000, 20
VOCABULARY = [
    *"the engine weaves algebra as a loom weaves cloth and leaves of grass in rain".split(),
    *"Straße naïve café Ångström Żółć coöperate résumé El Niño über façade Smörgåsbord".split(),
    *"двигатель ткёт алгебру как станок мой йод объём".split(),
    *"μηχανή υφαίνει άλγεβρα λόγος".split(),
    *"मशीन बुनती है कपड़ा हिन्दी में".split(),
    *"المحرك ينسج مَرْحَبًا שָׁלוֹם מכונה אורגת".split(),
    *"機械は布を織る 東京タワー カフェ 京都大学 机器编织代数".split(),
    *"เครื่องจักรทอผ้า ភាសាខ្មែរ 한국어 기계".split(),
    *"e-mail don't a_b x² ﬁne 2026 3.14 C++ 🧵 #tag @name".split(),
    *(f"word{number}" for number in range(300)),
]


def some_words(rng, count):
    """Return words, some of which are much more common than others."""
    return [VOCABULARY[min(int(rng.expovariate(0.015)), len(VOCABULARY) - 1)] for _ in range(count)]


def some_query(rng, posts):
    """Return a query, most often for something that occurs."""
    words = rng.choice([some_words(rng, 8), rng.choice(posts)["content"].split()])
    start = rng.randrange(len(words) - 4)
    parts = []
    for _ in range(rng.randint(1, 3)):
        word = rng.choice(words)
        parts.append(
            rng.choice(
                [
                    word,
                    word,
                    word.upper(),
                    f"{word[:3]}*",
                    f"{word}*",
                    f'"{" ".join(words[start : start + rng.randint(2, 4)])}"',
                    word[1:3] or word,
                ]
            )
        )
    return " ".join(parts)[:200]


def some_id(rng):
    """Return an ID that is the same in each run, as it decides the order of two posts."""
    return "".join(rng.choices(string.ascii_letters + string.digits, k=21))


@pytest.fixture
def corpus(app):
    """Posts of seven years in several scripts, as rows."""
    rng = random.Random(7)
    end, step = now(), timedelta(days=7 * 365) / POSTS
    authors = [some_id(rng) for _ in range(AUTHORS)]
    users = [
        {"id": id, "username": f"user-{number}", "password_hash": "x"}
        for number, id in enumerate(authors)
    ]
    posts = [
        {
            "id": some_id(rng),
            "author_id": rng.choice(authors),
            "title": " ".join(some_words(rng, rng.randint(1, 5))),
            "content": " ".join(some_words(rng, rng.randint(8, 40))),
            "created_at": truncate_to_milliseconds(end - number // 2 * 2 * step),  # two at a time
        }
        for number in range(POSTS)
    ]
    with app.app_context(), db.engine.begin() as connection:
        connection.execute(sa.insert(User), users)
        connection.execute(sa.insert(Post), posts)
        assert sum(search.build(connection)) == POSTS
    return sorted(posts, key=lambda post: (post["created_at"], post["id"]), reverse=True)


def contains(fields, term):
    """Return whether a term occurs in one of several lists of words."""
    *first, last = term.words
    for words in fields:
        for start in range(len(words) - len(first)):
            found = words[start + len(first)]
            if words[start : start + len(first)] == first and (
                found.startswith(last) if term.is_prefix else found == last
            ):
                return True
    return False


def test_queries_find_what_reading_all_posts_finds(corpus, anonymous, monkeypatch):
    """Both databases are held to the same answers, found without an index.

    On Postgres, some words are looked up in all years at once, others by year and month.
    """
    rng = random.Random(8)
    queries, rare = 8 * settings().max_examples, postgres.RARE
    fields = {
        post["id"]: [split_words(post["title"]), split_words(post["content"])] for post in corpus
    }
    answers = 0
    for number in range(queries):
        query = some_query(rng, corpus)
        terms = parse_query(query)
        author = rng.choice(corpus)["author_id"] if number % 5 == 0 else None
        expected = [
            post["id"]
            for post in corpus
            if terms
            and (author is None or post["author_id"] == author)
            and all(contains(fields[post["id"]], term) for term in terms)
        ]
        monkeypatch.setattr(postgres, "RARE", rng.choice([0, rare]))
        arguments = {"q": query, "limit": 30} | ({"author": author} if author else {})
        response = anonymous.get("/posts", query_string=arguments)
        if has_short_prefix(query):
            assert response.status_code == 422, query
            continue
        found = [post["id"] for post in response.json]
        assert found == expected[:30], query
        if number % 10 == 0 and "Link" in response.headers:  # and all pages of some
            pages = follow_pages(anonymous, response.request.full_path)
            assert [post["id"] for page in pages for post in page] == expected, query
        answers += bool(expected)
    assert answers > queries / 2


def count_stale(app):
    with app.app_context(), db.engine.connect() as connection:
        return search.count_stale_entries(connection)


@pytest.mark.skipif(bool(POSTGRES), reason="SQLite only")
def test_an_index_that_was_built_leaves_nothing_to_merge(app, corpus):
    with app.app_context(), db.engine.connect() as connection:
        segments = "SELECT count(DISTINCT segid) FROM post_search_idx"
        assert connection.exec_driver_sql(segments).scalar() == 1


def rebuild(app):
    with app.app_context():
        return sum(search.rebuild())


def test_writes_keep_the_index_up_to_date(app, alice):
    posts = [alice.create_post(f"Post {number}") for number in range(3)]
    alice.patch(f"/posts/{posts[0]['id']}", json={"content": "Edited"})
    alice.add_comment(posts[1], "A comment")
    alice.delete(f"/posts/{posts[2]['id']}")
    assert count_stale(app) == 0


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM post_search",
        "UPDATE posts SET version = 2",
        "INSERT INTO posts (id, title, content, comment_count, version, created_at, updated_at) "
        "SELECT '{id}', title, content, 0, 1, created_at, updated_at FROM posts",
        pytest.param(
            "DELETE FROM posts",
            marks=pytest.mark.skipif(bool(POSTGRES), reason="deletes the entry with the post"),
        ),
    ],
)
def test_an_entry_that_is_wrong_is_found_and_corrected(app, post, statement):
    assert count_stale(app) == 0
    with app.app_context(), db.engine.begin() as connection:
        connection.exec_driver_sql(statement.format(id="a" * 21))
    assert count_stale(app) == 1
    rebuild(app)
    assert count_stale(app) == 0


def test_words_are_split_before_a_transaction_begins(app, alice, post, monkeypatch):
    states = []
    with app.app_context():
        idle = db.engine.pool.checkedout()

    def split(text):
        states.append((db.engine.pool.checkedout(), is_in_transaction()))
        return split_words(text)

    monkeypatch.setattr(entries, "split_words", split)
    alice.create_post("On looms")
    alice.patch(f"/posts/{post['id']}", json={"title": "Edited"})
    rebuild(app)
    assert states == [(idle, False)] * 8  # a title and a content, and at last those of two posts
    assert count_stale(app) == 0


def test_a_rebuild_leaves_posts_that_change_meanwhile_to_the_edit(app, alice, post, monkeypatch):
    def split(text):
        monkeypatch.undo()
        assert alice.patch(f"/posts/{post['id']}", json={"title": "Edited"}).status_code == 200
        return split_words(text)

    monkeypatch.setattr(entries, "split_words", split)
    rebuild(app)
    assert count_stale(app) == 0
    assert [found["id"] for found in alice.get("/posts?q=edited").json] == [post["id"]]


def test_an_edit_splits_the_words_again_if_another_was_faster(app, alice, post, monkeypatch):
    def split(text):
        monkeypatch.undo()
        assert alice.patch(f"/posts/{post['id']}", json={"content": "Faster."}).status_code == 200
        return split_words(text)

    monkeypatch.setattr(entries, "split_words", split)
    assert alice.patch(f"/posts/{post['id']}", json={"title": "Slower"}).status_code == 200
    [found] = alice.get("/posts?q=slower+faster").json
    assert found["id"] == post["id"]


def test_posts_of_before_the_index_are_found_after_the_upgrade(app, alice, anonymous):
    alice.create_post("On engines")
    with app.app_context(), db.engine.begin() as connection:
        search.clear(connection)
        assert search.count_stale_entries(connection) == 1
    with app.app_context():
        flask_migrate.upgrade()
    assert count_stale(app) == 0
    assert len(anonymous.get("/posts?q=engines").json) == 1


@pytest.mark.skipif(bool(POSTGRES), reason="SQLite only")
def test_the_index_survives_a_vacuum(app, alice, anonymous):
    posts = [alice.create_post(f"Post {number}") for number in range(9)]
    for post in posts[::2]:
        alice.delete(f"/posts/{post['id']}")
    with app.app_context():
        connection = db.engine.raw_connection()
        connection.execute("VACUUM")
        connection.close()
    for number in range(9):
        found = [post["title"] for post in anonymous.get(f"/posts?q={number}").json]
        assert found == ([f"Post {number}"] if number % 2 else [])


@pytest.mark.filterwarnings("ignore:Skipped unsupported reflection")
def test_the_index_survives_a_migration_that_rebuilds_the_table_of_posts(empty_app):
    client = sign_in(empty_app, "ada")
    post = {"title": "On engines", "content": "They weave algebra."}
    assert client.post("/posts", json=post).status_code == 201
    with empty_app.app_context(), schema_change(db.engine) as connection:
        operations = Operations(MigrationContext.configure(connection))
        with operations.batch_alter_table("posts", recreate="always") as posts:
            posts.alter_column("version", new_column_name="version")
    assert len(client.get("/posts?q=engines").json) == 1
    assert count_stale(empty_app) == 0


@pytest.mark.skipif(bool(POSTGRES), reason="SQLite only")
def test_the_index_survives_a_backup_and_its_restoration(alice, make_app, flask, tmp_path):
    alice.create_post("On engines")
    copy, other = tmp_path / "copy.db", make_app(DATABASE_URL=f"sqlite:///{tmp_path / 'other.db'}")
    assert flask("backup", str(copy))[0] == 0
    assert flask("restore", str(copy), on=other)[0] == 0
    found = other.test_client().get("/posts?q=engines").json
    assert [post["title"] for post in found] == ["On engines"]
    assert count_stale(other) == 0


def test_posts_of_all_years_are_found_in_their_order(app, anonymous):
    years = [1, 1500, *[1750] * 20, 1970, 2500, *[9999] * 10]
    rows = [
        {
            "id": new_id(),
            "title": "Found",
            "content": "x",
            "created_at": datetime(year, 12, 31, 23, 59, number, tzinfo=UTC),
        }
        for number, year in enumerate(years)
    ]
    with app.app_context(), db.engine.begin() as connection:
        connection.execute(sa.insert(Post), rows)
        list(search.build(connection))
        assert search.count_stale_entries(connection) == 0
    pages = follow_pages(anonymous, "/posts?q=found&limit=7")
    expected = [row["id"] for row in sorted(rows, key=lambda row: row["created_at"], reverse=True)]
    assert [post["id"] for page in pages for post in page] == expected


def test_a_phrase_ends_before_the_fourth_occurrence_of_a_word(alice, anonymous):
    alice.create_post("To be or not to be", content="to be is to do is to be")
    alice.create_post("Fa", content="la la la and so fa")
    titles = {
        '"to be or not to be"': ["To be or not to be"],
        '"to be or not to do"': [],
        '"to be is to do is to be"': ["To be or not to be"],
        '"to be is to do is to do"': [],
        '"la la la and"': ["Fa"],
        '"la la la fa"': [],
        '"la la la la fa"': ["Fa"],
        '"la la la la so-long"': [],
        '"la la la" "la fa"': ["Fa"],
        '"la fa" "la la la"': [],
    }
    for query, expected in titles.items():
        found = anonymous.get("/posts", query_string={"q": query}).json
        assert [post["title"] for post in found] == expected, query


@pytest.mark.skipif(bool(POSTGRES), reason="counts the steps of SQLite")
def test_a_word_that_is_repeated_does_not_make_a_search_slow(app, anonymous):
    start = now()
    posts = [
        {
            "id": new_id(),
            "title": "x",
            "content": "c " + "a " * 49_990,
            "created_at": start + timedelta(milliseconds=number),
        }
        for number in range(30)
    ]
    steps = []

    def count_steps(connection, *_):
        connection.set_progress_handler(lambda: steps.append(1), 100)

    def steps_of(query):
        steps.clear()
        assert anonymous.get("/posts", query_string={"q": query, "limit": 1}).status_code == 200
        return len(steps)

    with app.app_context(), db.engine.begin() as connection:
        connection.execute(sa.insert(Post), posts)
        sum(search.build(connection))
    with app.app_context():
        engine = db.engine
    sa.event.listen(engine, "checkout", count_steps)
    try:
        short = steps_of('"a c"')
        assert short > 10
        for query in ('"c {}a"', '"{}c"', '"a c" "a c {}"', '"{0}c" "{0}c"'):
            assert steps_of(query.format("a " * 18)) < 4 * short, query
    finally:
        sa.event.remove(engine, "checkout", count_steps)
        engine.dispose()
