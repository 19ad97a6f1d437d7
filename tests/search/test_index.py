"""The search index: the same answers on both databases, and its maintenance."""

import random
import string
from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa
from alembic.migration import MigrationContext
from alembic.operations import Operations
from hypothesis import settings

from posting.accounts.models import User
from posting.db.base import db
from posting.db.migrations.upgrades import schema_change
from posting.db.transactions import transaction
from posting.db.types import new_id, now, truncate_to_milliseconds
from posting.posts import store as post_store
from posting.posts.models import Post
from posting.search import index, postgres
from posting.search.words import has_short_prefix, parse_query, split_words
from posting.testbed import sign_in
from tests.conftest import POSTGRES
from tests.helpers.assertions import assert_indexed, follow_pages
from tests.helpers.transactions import is_in_transaction

ROWS, AUTHORS = 5000, 20
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


def some_query(rng, rows):
    """Return a query, most often for something that occurs."""
    words = rng.choice([some_words(rng, 8), rng.choice(rows)["content"].split()])
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
    """Return an ID that is the same in each run, as it decides the order of two rows."""
    return "".join(rng.choices(string.ascii_letters + string.digits, k=21))


@pytest.fixture
def corpus(app, kind, vacuum):
    """Rows of seven years in several scripts."""
    rng = random.Random(7)
    end, step = now(), timedelta(days=7 * 365) / ROWS
    authors = [some_id(rng) for _ in range(AUTHORS)]
    users = [
        {"id": id, "username": f"user-{number}", "password_hash": "x"}
        for number, id in enumerate(authors)
    ]
    rows = [
        kind.row(
            " ".join(some_words(rng, rng.randint(8, 40))),
            title=" ".join(some_words(rng, rng.randint(1, 5))),
            id=some_id(rng),
            author_id=rng.choice(authors),
            created_at=truncate_to_milliseconds(end - number // 2 * 2 * step),  # two at a time
        )
        for number in range(ROWS)
    ]
    with app.app_context(), transaction() as connection:
        connection.execute(sa.insert(User), users)
        connection.execute(sa.insert(kind.model), rows)
        assert sum(kind.index.build(connection)) == ROWS
    vacuum()
    return sorted(rows, key=lambda row: (row["created_at"], row["id"]), reverse=True)


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


def test_queries_find_what_reading_all_rows_finds(corpus, anonymous, kind, monkeypatch):
    """Both databases are held to the same answers, found without an index.

    On Postgres, some words are looked up in all years at once, others by year and month.
    """
    monkeypatch.setattr(postgres, "READ_SECONDS", 60)  # for a slow machine
    rng = random.Random(8)
    queries, rare = 8 * settings().max_examples, postgres.RARE
    fields = {
        row["id"]: [split_words(row[name]) for name in ("title", "content") if name in row]
        for row in corpus
    }
    answers = 0
    for number in range(queries):
        query = some_query(rng, corpus)
        terms = parse_query(query)
        author = rng.choice(corpus)["author_id"] if number % 5 == 0 else None
        expected = [
            row["id"]
            for row in corpus
            if terms
            and (author is None or row["author_id"] == author)
            and all(contains(fields[row["id"]], term) for term in terms)
        ]
        monkeypatch.setattr(postgres, "RARE", rng.choice([0, rare]))
        arguments = {"q": query, "limit": 30} | ({"author": author} if author else {})
        response = anonymous.get(kind.path, query_string=arguments)
        if has_short_prefix(query):
            assert response.status_code == 422, query
            continue
        found = [row["id"] for row in response.json]
        assert found == expected[:30], query
        if number % 10 == 0 and "Link" in response.headers:  # and all pages of some
            pages = follow_pages(anonymous, response.request.full_path)
            assert [row["id"] for page in pages for row in page] == expected, query
        answers += bool(expected)
    assert answers > queries / 2


@pytest.mark.skipif(bool(POSTGRES), reason="SQLite only")
@pytest.mark.usefixtures("corpus")
def test_an_index_that_was_built_leaves_nothing_to_merge(app, kind):
    with app.app_context(), db.engine.connect() as connection:
        segments = f"SELECT count(DISTINCT segid) FROM {kind.index.table}_idx"
        assert connection.exec_driver_sql(segments).scalar() == 1


def test_writes_keep_the_index_up_to_date(alice, kind):
    items = [kind.create(alice, f"Number {number}") for number in range(3)]
    kind.edit(alice, items[0], "Edited")
    kind.delete(alice, items[2])
    assert kind.count_stale() == 0


@pytest.mark.parametrize(
    ("kind", "statement"),
    [
        ("posts", "DELETE FROM post_search"),
        ("comments", "DELETE FROM comment_search"),
        ("posts", "UPDATE posts SET version = 2"),
        ("comments", "UPDATE comments SET version = 2"),
        (
            "posts",
            "INSERT INTO posts (id, title, content, comment_count, version, created_at, updated_at)"
            " SELECT '{id}', title, content, 0, 1, created_at, updated_at FROM posts",
        ),
        (
            "comments",
            "INSERT INTO comments (id, post_id, content, version, created_at, updated_at) "
            "SELECT '{id}', post_id, content, 1, created_at, updated_at FROM comments",
        ),
        pytest.param(
            "posts",
            "DELETE FROM posts",
            marks=pytest.mark.skipif(bool(POSTGRES), reason="deletes the entry with the post"),
        ),
        ("comments", "UPDATE comments SET content = NULL"),
    ],
    indirect=["kind"],
)
def test_an_entry_that_is_wrong_is_found_and_corrected(app, alice, kind, statement):
    kind.create(alice, "Text")
    assert kind.count_stale() == 0
    with app.app_context(), transaction() as connection:
        connection.exec_driver_sql(statement.format(id="a" * 21))
    assert kind.count_stale() == 1
    kind.rebuild()
    assert kind.count_stale() == 0


def test_words_are_split_before_a_transaction_begins(app, alice, kind, monkeypatch):
    states = []
    with app.app_context():
        idle = db.engine.pool.checkedout()

    def split(text):
        states.append((db.engine.pool.checkedout(), is_in_transaction()))
        return split_words(text)

    monkeypatch.setattr(index, "split_words", split)
    item = kind.create(alice, "On looms")
    kind.edit(alice, item, "Edited")
    kind.rebuild()
    assert set(states) == {(idle, False)}
    assert len(states) == 3 * len(kind.texts)
    assert kind.count_stale() == 0


def test_a_rebuild_leaves_rows_that_change_meanwhile_to_the_edit(alice, kind, monkeypatch):
    item = kind.create(alice, "Text")

    def split(text):
        monkeypatch.undo()
        kind.edit(alice, item, "Edited")
        return split_words(text)

    monkeypatch.setattr(index, "split_words", split)
    kind.rebuild()
    assert kind.count_stale() == 0
    assert kind.find(alice, "edited") == ["Edited"]


def test_an_edit_splits_the_words_again_if_another_was_faster(alice, kind, monkeypatch):
    item = kind.create(alice, "Text")

    def split(text):
        monkeypatch.undo()
        kind.edit(alice, item, "Faster")
        return split_words(text)

    monkeypatch.setattr(index, "split_words", split)
    kind.edit(alice, item, "Slower")
    assert (kind.find(alice, "faster"), kind.find(alice, "slower")) == ([], ["Slower"])
    assert kind.count_stale() == 0


def test_words_by_other_rules_are_replaced_when_the_index_is_rebuilt(
    flask, app, alice, kind, monkeypatch
):
    kind.create(alice, "In Łódź")
    with monkeypatch.context() as former, app.app_context(), transaction() as connection:
        former.setattr("posting.search.words.FOLDED", {})
        kind.index.clear(connection)
        assert sum(kind.index.build(connection)) == 1
    assert kind.find(alice, "lodz") == []
    assert flask("search", "rebuild")[0] == 0
    assert kind.find(alice, "lodz") == ["In Łódź"]


@pytest.mark.skipif(not POSTGRES, reason="Postgres only")
def test_a_search_looks_into_no_more_months_after_two_seconds(
    anonymous, alice, kind, monkeypatch, caplog
):
    kind.create(alice, "On engines")
    monkeypatch.setattr(postgres, "RARE", 0)  # a query for each month
    assert kind.find(anonymous, "engines") == ["On engines"]
    monkeypatch.setattr(postgres, "READ_SECONDS", 0)
    response = anonymous.get(f"{kind.path}?q=engines&limit=99")  # which is not cached
    assert response.status_code == 503
    assert response.json["code"] == "query_timeout"
    assert "months left after two seconds" in caplog.text


@pytest.mark.skipif(bool(POSTGRES), reason="SQLite only")
def test_the_index_survives_a_vacuum(app, alice, kind):
    items = [kind.create(alice, f"Number {number}") for number in range(9)]
    for item in items[::2]:
        kind.delete(alice, item)
    with app.app_context():
        connection = db.engine.raw_connection()
        connection.execute("VACUUM")
        connection.close()
    for number in range(9):
        assert kind.find(alice, str(number)) == ([f"Number {number}"] if number % 2 else [])


@pytest.mark.filterwarnings("ignore:Skipped unsupported reflection")
def test_the_index_survives_a_migration_that_rebuilds_the_table(empty_app):
    client = sign_in(empty_app, "ada")
    post = client.create_post("On engines")
    client.add_comment(post, "Engines weave.")
    with empty_app.app_context(), schema_change(db.engine) as connection:
        operations = Operations(MigrationContext.configure(connection))
        for table in ("comments", "posts"):
            with operations.batch_alter_table(table, recreate="always") as altered:
                altered.alter_column("version", new_column_name="version")
    for path in ("/posts", "/comments"):
        assert len(client.get(f"{path}?q=engines").json) == 1
    with empty_app.app_context(), db.engine.connect() as connection:
        assert_indexed(connection)


@pytest.mark.skipif(bool(POSTGRES), reason="SQLite only")
def test_the_index_survives_a_backup_and_its_restoration(alice, post, make_app, flask, tmp_path):
    alice.add_comment(post, "Engines weave.")
    copy, other = tmp_path / "copy.db", make_app(DATABASE_URL=f"sqlite:///{tmp_path / 'other.db'}")
    assert flask("backup", str(copy))[0] == 0
    assert flask("restore", str(copy), on=other)[0] == 0
    for path in ("/posts", "/comments"):
        assert len(other.test_client().get(f"{path}?q=engines").json) == 1
    with other.app_context(), db.engine.connect() as connection:
        assert_indexed(connection)


@pytest.fixture
def of_all_years(app, kind):
    """Rows of many years, the newest last, with the word found."""
    rows = [
        kind.row(
            "Found",
            id=new_id(),
            created_at=datetime(year, 12, 31, 23, 59, number, 999_000, tzinfo=UTC),
        )
        for number, year in enumerate([1, 1500, *[1750] * 20, 1970, 2500, *[9999] * 10])
    ]
    with app.app_context(), transaction() as connection:
        connection.execute(sa.insert(kind.model), rows)
        list(kind.index.build(connection))
    return rows


def test_rows_of_all_years_are_found_in_their_order(anonymous, kind, of_all_years):
    assert kind.count_stale() == 0
    pages = follow_pages(anonymous, f"{kind.path}?q=found&limit=7")
    expected = [row["id"] for row in reversed(of_all_years)]
    assert [row["id"] for page in pages for row in page] == expected


@pytest.mark.parametrize("kind", ["comments"], indirect=True)
@pytest.mark.parametrize("table", ["comments", "posts"])
@pytest.mark.usefixtures("of_all_years")
def test_a_deleted_comment_takes_its_entry_along(app, kind, table):
    """SQLite has a trigger for that, which makes the rowids of entries from the comments."""
    with app.app_context(), transaction() as connection:
        assert kind.index.count_stale(connection) == 0
        assert connection.exec_driver_sql("SELECT count(*) FROM comment_search").scalar() > 0
        connection.exec_driver_sql(f"DELETE FROM {table}")
        assert connection.exec_driver_sql("SELECT count(*) FROM comment_search").scalar() == 0


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


def test_each_word_of_a_monotonous_text_is_indexed_a_number_of_times(alice, anonymous, kind):
    """A phrase is found in the beginning, and not across words that were left out."""
    text = "first loom " + "a b " * 1200 + "last loom, a c b"
    kind.create(alice, text)
    for query in ("a b c first last loom", '"loom a"', '"b a b a"', '"last loom"'):
        assert kind.find(anonymous, query) == [text], query
    for query in ('"loom b"', '"c last"', '"loom c"', "_"):
        assert kind.find(anonymous, query) == [], query


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("loom " * 1000, 1000),
        ("loom " * 1001, 1000),
        ("x y z v w s t u q r " * 4_000, 40_000),
        ("a b " * 25_000, 10_000),
        ("a " * 50_000, 5_000),
        ("字" * 100_000, 10_000),
    ],
    ids=lambda value: str(value)[:20],
)
def test_a_word_that_is_not_a_tenth_of_a_text_is_always_indexed(text, kept):
    words = split_words(text)
    limited = index.limit_occurrences(words)
    assert len(limited) == len(words)
    assert len(words) - limited.count(index.NO_WORD) == kept


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
        connection.set_progress_handler(lambda: steps.append(1), 10)

    def steps_of(query):
        steps.clear()
        assert anonymous.get("/posts", query_string={"q": query, "limit": 1}).status_code == 200
        return len(steps)

    with app.app_context(), transaction() as connection:
        connection.execute(sa.insert(Post), posts)
        sum(post_store.INDEX.build(connection))
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
