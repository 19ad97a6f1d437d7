"""Pages of lists, and the cursors that link them."""

from datetime import timedelta
from urllib.parse import parse_qs, urlsplit

import pytest
import sqlalchemy as sa

from posting.accounts.models import User
from posting.db.base import db
from posting.db.types import new_id, now
from posting.posts.models import Post
from tests.helpers.assertions import error_locations, follow_pages, next_url


@pytest.fixture
def fill(app, alice, bob):
    """Return a function that adds posts, by Alice and Bob in turn, two in each millisecond."""

    def fill(count):
        start = now() - timedelta(days=1)
        rows = [
            {
                "id": new_id(),
                "author_id": (alice, bob)[number % 2].user["id"],
                "title": f"Post {number}",
                "content": "Some text.",
                "version": 1,
                "created_at": start + timedelta(milliseconds=number // 2),
                "updated_at": start,
            }
            for number in range(count)
        ]
        with app.app_context():
            db.session.execute(sa.insert(Post), rows)
            db.session.commit()
        return sorted(rows, key=lambda row: (row["created_at"], row["id"]), reverse=True)

    return fill


def ids(rows):
    return [row["id"] for row in rows]


@pytest.mark.parametrize("limit", [1, 3, 24, 25, 26, 100])
def test_pages_contain_each_row_once_and_in_order(fill, anonymous, limit):
    rows = fill(25)
    pages = list(follow_pages(anonymous, f"/posts?limit={limit}"))
    assert [row for page in pages for row in ids(page)] == ids(rows)
    assert all(len(page) == limit for page in pages[:-1])
    assert pages[-1]


def test_a_page_has_twenty_posts_by_default(fill, anonymous):
    fill(21)
    response = anonymous.get("/posts")
    assert len(response.json) == 20
    assert parse_qs(urlsplit(next_url(response)).query).keys() == {"cursor"}


def test_changes_between_pages_neither_repeat_nor_skip_a_post(fill, alice, anonymous):
    rows = fill(10)
    first = anonymous.get("/posts?limit=4")
    alice.create_post("Created between the pages")
    own = [row for row in rows if row["author_id"] == alice.user["id"]]
    last_seen = first.json[-1]["id"]
    deleted = {own[0]["id"], own[-1]["id"]}
    for id in deleted:
        assert alice.delete(f"/posts/{id}").status_code == 204
    rest = [row for page in follow_pages(anonymous, next_url(first)) for row in ids(page)]
    after = ids(rows)[ids(rows).index(last_seen) + 1 :]
    assert rest == [id for id in after if id not in deleted]


def test_the_post_in_a_cursor_may_be_deleted(fill, app, anonymous):
    rows = fill(6)
    first = anonymous.get("/posts?limit=3")
    with app.app_context():
        db.session.execute(sa.delete(Post).where(Post.id == first.json[-1]["id"]))
        db.session.commit()
    assert ids(anonymous.get(next_url(first)).json) == ids(rows)[3:]


def test_the_posts_of_one_author_are_paginated(fill, alice, anonymous):
    rows = fill(9)
    own = [row["id"] for row in rows if row["author_id"] == alice.user["id"]]
    pages = list(follow_pages(anonymous, f"/posts?author={alice.user['id']}&limit=2"))
    assert [id for page in pages for id in ids(page)] == own


def test_posts_without_an_author_are_listed(fill, app, alice, anonymous):
    fill(3)
    with app.app_context():
        db.session.execute(sa.delete(User).where(User.id == alice.user["id"]))
        db.session.commit()
    authors = [post["author"] for post in anonymous.get("/posts").json]
    assert authors.count(None) == 2
    assert len(authors) == 3


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("limit=0", {"limit"}),
        ("limit=101", {"limit"}),
        ("limit=-1", {"limit"}),
        ("limit=1e3", {"limit"}),
        ("limit=", {"limit"}),
        ("limit=" + "9" * 5000, {"limit"}),
        ("limit=9223372036854775808", {"limit"}),
        ("limit=5&limit=6", {"limit"}),
        ("author=short", {"author"}),
        ("author=%00", {"author"}),
        ("limt=5", {"limt"}),
        ("cursor=", {"cursor"}),
        ("cursor=W10", {"cursor"}),
        ("cursor=%00%ff", {"cursor"}),
        ("limit=0&author=x&page=2", {"limit", "author", "page"}),
    ],
)
def test_an_invalid_query_gets_422(anonymous, query, expected):
    assert error_locations(anonymous.get(f"/posts?{query}")) == expected


@pytest.mark.parametrize(
    "cursor",
    [
        "list_posts.1234567890123",
        "list_posts..{id}",
        "list_posts.{id}",
        "list_posts.12 34.{id}",
        "list_posts.1e3.{id}",
        "list_posts.1_000.{id}",
        "list_posts.+1000.{id}",
        "list_posts.\N{ARABIC-INDIC DIGIT ONE}.{id}",
        "list_posts.\N{FULLWIDTH DIGIT ONE}.{id}",
        "list_posts.253402300800000.{id}",  # the year 10000
        "list_posts.-62135596800001.{id}",  # the year 0
        "list_posts.999999999999999.{id}",
        "list_posts.1000000000000000.{id}",
        "list_posts." + "9" * 400 + ".{id}",
        "list_posts.1000.short",
        "list_posts.1000.{id}A",
        "list_posts.1000.{id}\n",
        "list_posts.1000.{id}.{id}",
        "list_posts.1000.aaaaaaaaaaaaaaaaaaaa.",
        "list_posts.1000.aaaaaaaaaaaaaaaaaaaa\N{LATIN SMALL LETTER E WITH ACUTE}",
        "list_comments.1000.{id}",
        "LIST_POSTS.1000.{id}",
        "posts.list_posts.1000.{id}",
        ".1000.{id}",
        "1000.{id}",
        " list_posts.1000.{id}",
    ],
)
def test_a_malformed_cursor_gets_422(fill, anonymous, cursor):
    [row] = fill(1)
    sent = {"cursor": cursor.format(id=row["id"])}
    assert error_locations(anonymous.get("/posts", query_string=sent)) == {"cursor"}


@pytest.mark.parametrize(
    ("milliseconds", "count"), [("-62135596800000", 0), ("-1", 0), ("0", 0), ("253402300799999", 2)]
)
def test_a_cursor_may_hold_any_date(fill, anonymous, milliseconds, count):
    fill(2)
    response = anonymous.get(f"/posts?cursor=list_posts.{milliseconds}.{'a' * 21}")
    assert len(response.json) == count


def test_a_cursor_of_another_list_gets_422(fill, alice, anonymous):
    [post, other] = fill(2)
    for _ in range(2):
        alice.add_comment(post, "Indeed.")
    posts, comments = (
        parse_qs(urlsplit(next_url(anonymous.get(f"{path}?limit=1"))).query)["cursor"][0]
        for path in ("/posts", f"/posts/{post['id']}/comments")
    )
    for path, cursor in (
        ("/posts", comments),
        (f"/posts/{post['id']}/comments", posts),
        (f"/posts/{other['id']}/comments", comments),
    ):
        assert error_locations(anonymous.get(path, query_string={"cursor": cursor})) == {"cursor"}


def test_a_changed_cursor_gets_422(fill, anonymous):
    fill(2)
    url = next_url(anonymous.get("/posts?limit=1"))
    assert error_locations(anonymous.get(url.replace("cursor=", "cursor=A"))) == {"cursor"}
    assert error_locations(anonymous.get(url + "A")) == {"cursor"}


def test_a_cursor_contains_the_list_and_the_last_row(fill, anonymous):
    row, _ = fill(2)
    query = parse_qs(urlsplit(next_url(anonymous.get("/posts?limit=1"))).query)
    milliseconds = round(row["created_at"].timestamp() * 1000)
    assert query["cursor"] == [f"list_posts.{milliseconds}.{row['id']}"]


def test_links_start_with_the_public_url(fill, make_app):
    fill(2)
    client = make_app(PUBLIC_URL="https://example.org/community", PROXY_HOPS="1").test_client()
    prefixed = {"X-Forwarded-Prefix": "/community", "X-Forwarded-Host": "example.org"}
    for headers in ({}, prefixed):
        url = next_url(client.get("/posts?limit=1", headers=headers))
        assert url.startswith("https://example.org/community/posts?limit=1&cursor=")
