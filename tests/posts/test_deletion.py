"""Deletion of posts to which very many rows belong: in steps, and at once for all readers."""

import os
import subprocess
import sys

import pytest
import sqlalchemy as sa

from posting.comments import deletion as comment_deletion
from posting.comments.models import Comment
from posting.db.base import db
from posting.db.transactions import fetch_all, fetch_value
from posting.images.models import Image, ImageData, ImageSize, Thumbnail
from posting.indexes import INDEXES
from posting.notifications.models import Notification, Subscription
from posting.posts import deletion
from posting.posts.models import Post
from posting.web.idempotency import IdempotencyKey
from tests.changes.test_changes import follow
from tests.helpers import pictures
from tests.helpers.assertions import assert_indexed, assert_problem
from tests.helpers.changes import cursor_of_now

pytestmark = pytest.mark.usefixtures("stays_consistent")
PARTS = (Comment, Image, ImageData, ImageSize, Thumbnail, Notification, Subscription)
LIMIT = 3  # rows in a step
WORD = "zebra"


class Killed(BaseException):
    """The end of the process."""


@pytest.fixture(autouse=True)
def small_steps(monkeypatch):
    for module in (deletion, comment_deletion):
        monkeypatch.setattr(module, "ROWS_PER_STEP", LIMIT)
    monkeypatch.setattr(deletion, "PAUSE", 0)
    monkeypatch.setattr("posting.accounts.deletion.PAUSE", 0)


@pytest.fixture
def killed(monkeypatch):
    """Let the process end after the first transaction of a deletion."""
    monkeypatch.setattr(deletion, "_finish_step", kill)


def kill():
    raise Killed


@pytest.fixture
def large(alice, bob, eve):
    """A post by Alice that others follow, with comments, replies, images and notifications."""
    post = alice.create_post(WORD, content=f"{WORD} @bob")
    for member in (bob, eve):
        member.put(f"/posts/{post['id']}/subscription", json={"level": "all"})
    comment = bob.add_comment(post, f"{WORD} @eve")
    for number in range(4):
        comment = eve.add_comment(post, f"{WORD} {number}", parent_id=comment["id"])
    alice.add_image(post, pictures.photo(), alt=WORD)
    return post | {"images": alice.get(f"/posts/{post['id']}").json["images"], "last": comment}


def count(app, *models):
    with app.app_context():
        return [fetch_value(sa.select(sa.func.count()).select_from(model)) for model in models]


@pytest.fixture
def deleted_rows(app):
    """The numbers of rows that the statements of each transaction have deleted."""
    rows = [0]

    def add(_connection, cursor, statement, *_):
        if statement.lstrip().startswith(("DELETE", "WITH chosen")) and "search" not in statement:
            rows[-1] += cursor.rowcount

    with app.app_context():
        engine = db.engine
    end = lambda _: rows.append(0)  # noqa: E731
    sa.event.listen(engine, "after_cursor_execute", add)
    sa.event.listen(engine, "commit", end)
    yield rows
    sa.event.remove(engine, "after_cursor_execute", add)
    sa.event.remove(engine, "commit", end)


def test_no_transaction_deletes_more_rows_than_a_step(app, alice, large, deleted_rows):
    total = sum(count(app, *PARTS, Post))
    assert total > 20
    deleted_rows[:] = [0]
    assert alice.delete(f"/posts/{large['id']}").status_code == 204
    assert max(deleted_rows) <= LIMIT + 1  # and the post itself
    assert sum(deleted_rows) == total  # so nothing went by cascades
    assert count(app, *PARTS, Post) == [0] * 8


def test_a_small_post_is_deleted_in_one_transaction(app, alice, monkeypatch, deleted_rows):
    monkeypatch.setattr(deletion, "ROWS_PER_STEP", 100)
    post = alice.create_post("On engines")
    alice.add_comment(post, "And cloth?")
    deleted_rows[:] = [0]
    alice.delete(f"/posts/{post['id']}")
    assert [rows for rows in deleted_rows if rows] == [2]


@pytest.fixture
def half_deleted(app, alice, moderator, large, killed):
    assert moderator.put(f"/posts/{large['id']}/lock").status_code == 204
    with pytest.raises(Killed):
        alice.delete(f"/posts/{large['id']}")
    [posts, comments] = count(app, Post, Comment)
    assert posts == 1
    assert comments > 0
    return large


@pytest.mark.usefixtures("killed")
def test_no_reader_sees_a_post_of_which_rows_are_left(request, app, half_deleted):
    readers = map(request.getfixturevalue, ("anonymous", "alice", "bob", "eve", "moderator"))
    anonymous, alice, bob, eve, moderator = readers
    id, comment, image = (half_deleted["id"], half_deleted["last"]["id"], half_deleted["images"][0])
    with app.app_context():
        comments = [row.id for row in fetch_all(sa.select(Comment.id))]
    gone = [
        f"/posts/{id}",
        f"/posts/{id}/comments",
        f"/posts/{id}/comments?sort=newest",
        *(f"/comments/{each}" for each in {*comments, comment}),
        f"/images/{image['id']}",
        f"/images/{image['id']}/metadata",
        f"/images/{image['id']}/thumbnail",
        f"/images/{image['id']}/640",
        f"/p/{id}",
        f"/p/{id}?comment={comment}",
        f"/p/{id}/feed.atom",
        f"/p/{id}/feed.json",
        f"/p/{id}/edit",
    ]
    lists = [
        "/posts?expand=content,images",
        "/posts?sort=active",
        "/posts?pinned=true",
        f"/posts?author={alice.user['id']}",
        f"/posts?q={WORD}",
        f"/comments?q={WORD}",
        "/comments",
        *(f"/users/{member.user['id']}/comments" for member in (bob, eve)),
        "/",
        "/?sort=active",
        f"/search?q={WORD}",
        f"/search?q={WORD}&show=comments",
        "/@alice",
        "/@eve?show=comments",
        "/feed.atom",
        "/feed.json",
        "/comments/feed.atom",
        "/@alice/feed.json",
        "/notifications",
        "/notifications/unread",
    ]
    for client in (anonymous, alice, bob, eve, moderator):
        for url in gone:
            response = client.get(url)
            assert response.status_code in {404, 200 if url.endswith("/edit") else 404}, url
            assert WORD not in response.text, url
        for url in lists:
            response = client.get(url)
            assert id not in response.text, url
            if "q=" not in url or response.is_json:
                assert WORD not in response.text, url
    for member in (alice, bob, eve):
        assert member.get("/notifications").json == []
        assert member.get("/notifications/unread").json == {"count": 0}


@pytest.mark.usefixtures("killed")
def test_nothing_can_be_done_to_a_post_of_which_rows_are_left(alice, eve, moderator, half_deleted):
    id, comment = half_deleted["id"], half_deleted["last"]["id"]
    requests = [
        (alice, "delete", f"/posts/{id}", {}),
        (alice, "patch", f"/posts/{id}", {"title": "x"}),
        (eve, "patch", f"/comments/{comment}", {"content": "x"}),
        (eve, "delete", f"/comments/{comment}", {}),
        (eve, "post", f"/posts/{id}/comments", {"content": "x"}),
        (eve, "post", f"/posts/{id}/reports", {"reason": "x"}),
        (eve, "post", f"/comments/{comment}/reports", {"reason": "x"}),
        (eve, "put", f"/posts/{id}/subscription", {"level": "all"}),
        (eve, "delete", f"/posts/{id}/subscription", {}),
        (moderator, "put", f"/posts/{id}/lock", {}),
        (moderator, "put", f"/posts/{id}/pin", {}),
    ]
    for client, method, path, body in requests:
        arguments = {"json": body} if body else {}
        assert_problem(getattr(client, method)(path, **arguments), 404)
    for client, path in ((eve, "subscription"), (moderator, "lock"), (moderator, "pin")):
        problem = assert_problem(client.get(f"/posts/{id}/{path}"), 404)
        assert problem["code"] == "no_such_post", path


@pytest.mark.usefixtures("killed")
def test_its_text_is_gone_from_the_database(app, half_deleted):
    """Every text, even of a column that is added later."""
    with app.app_context():
        [row] = fetch_all(sa.select(Post.__table__))
        assert_indexed(db.session.connection())
    texts = {name: value for name, value in row._asdict().items() if isinstance(value, str)}
    assert texts == {"id": half_deleted["id"], "title": "-", "content": "-"}


@pytest.mark.parametrize("act", ["post", "account", "removal"])
def test_the_next_deletion_finishes_it(request, app, large, monkeypatch, act):
    alice, bob, moderator = map(request.getfixturevalue, ("alice", "bob", "moderator"))
    with monkeypatch.context() as killing:
        killing.setattr(deletion, "_finish_step", kill)
        with pytest.raises(Killed):
            alice.delete(f"/posts/{large['id']}")
    assert count(app, Post) == [1]
    other = bob.create_post("On looms")
    if act == "post":
        assert bob.delete(f"/posts/{other['id']}").status_code == 204
    elif act == "account":
        assert bob.delete("/users/me?content=delete").status_code == 204
    else:
        removal = f"/moderation/users/{bob.user['id']}/removal"
        response = moderator.post(removal, json={})
        assert response.status_code == 200, response.text
        while response.json["left"]:
            response = moderator.post(removal, json={})
    assert count(app, Post, Comment, Subscription) == [0, 0, 0]


@pytest.mark.parametrize("leaver", ["alice", "eve"])
def test_an_account_is_deleted_in_such_steps(request, app, large, deleted_rows, leaver):
    """Of the author of the post, or of a member with many comments on it."""
    member = request.getfixturevalue(leaver)
    deleted_rows[:] = [0]
    assert member.delete("/users/me?content=delete").status_code == 204
    if leaver == "alice":
        assert count(app, *PARTS, Post) == [0] * 8
    else:
        assert count(app, Post, Comment) == [1, 1]
    # The last transaction deletes the account with its sessions.
    assert max(deleted_rows[:-2]) <= 2 * LIMIT, deleted_rows


def test_what_an_account_has_besides_its_texts_is_deleted_in_such_steps(
    app, alice, eve, monkeypatch, deleted_rows
):
    """Its subscriptions, and the responses that are stored under the keys of its requests."""
    monkeypatch.setattr("posting.accounts.deletion.RESPONSES_PER_STEP", LIMIT)
    monkeypatch.setattr("posting.notifications.deletion.ROWS_PER_STEP", LIMIT)
    for number in range(8):
        post = alice.create_post(str(number))
        eve.put(f"/posts/{post['id']}/subscription", json={"level": "all"})
        body, key = {"title": "x", "content": "y"}, {"Idempotency-Key": str(number)}
        assert eve.post("/posts", json=body, headers=key).status_code == 201
    assert count(app, Subscription, IdempotencyKey) == [8, 8]
    deleted_rows[:] = [0]
    assert eve.delete("/users/me").status_code == 204
    assert max(deleted_rows) <= LIMIT
    assert sum(deleted_rows) >= 8 + 8


def test_all_changes_are_told_at_once(anonymous, alice, large):
    cursor = cursor_of_now(anonymous)
    alice.delete(f"/posts/{large['id']}")
    changes, _ = follow(anonymous, cursor, limit=100)
    assert sorted((change["kind"], change["change"]) for change in changes) == [
        *[("comment", "deleted")] * 5,
        ("image", "deleted"),
        ("post", "deleted"),
    ]


def test_a_busy_database_leaves_the_rest_to_the_next_deletion(app, alice, large, monkeypatch):
    def fail():
        raise sa.exc.OperationalError("BEGIN", None, Exception("database is locked"))

    with monkeypatch.context() as busy:
        busy.setattr(deletion, "unit_of_work", fail)
        assert alice.delete(f"/posts/{large['id']}").status_code == 204
    assert count(app, Post) == [1]
    assert_problem(alice.get(f"/posts/{large['id']}"), 404)
    alice.delete(f"/posts/{alice.create_post('x')['id']}")
    assert count(app, Post) == [0]


def test_a_deletion_does_not_wait_for_those_of_others(app, alice, bob, large):
    with deletion._finishing:  # another thread is at it
        assert alice.delete(f"/posts/{large['id']}").status_code == 204
    assert count(app, Post) == [1]
    bob.delete(f"/posts/{bob.create_post('x')['id']}")
    assert count(app, Post) == [0]


def test_a_start_finishes_the_deletion_of_a_process_that_was_killed(app, alice, large):
    with deletion._finishing:
        alice.delete(f"/posts/{large['id']}")
    assert count(app, Post) == [1]
    settings = {"POSTING_DATABASE_URL": app.config["DATABASE_URL"]}
    serve = [sys.executable, "-c", "import posting.wsgi"]
    subprocess.run(serve, env=os.environ | settings, check=True)
    assert count(app, *PARTS, Post) == [0] * 8


def test_the_indexes_have_nothing_left(app, alice, large):
    alice.delete(f"/posts/{large['id']}")
    with app.app_context():
        for table in (index.table for index in INDEXES if index.name != "user"):
            assert db.session.scalar(sa.text(f"SELECT count(*) FROM {table}")) == 0, table
