"""The thread of each comment, also of those that are inserted without one."""

import sqlalchemy as sa

from posting.comments.models import Comment
from posting.db.transactions import fetch_all, transaction
from posting.db.types import new_id

INSERT = sa.text("""
    INSERT INTO comments (id, post_id, parent_id, content, version, created_at, updated_at)
    SELECT :id, post_id, :parent, 'x', 1, created_at, created_at
    FROM comments WHERE id = :other""")


def threads_of(app):
    with app.app_context():
        rows = fetch_all(sa.select(Comment.id, Comment.thread_id, Comment.thread_at))
        return {row.id: (row.thread_id, row.thread_at) for row in rows}


def test_a_reply_is_in_the_thread_of_its_parent(app, alice, post):
    first = alice.add_comment(post, "a")["id"]
    reply = alice.add_comment(post, "b", parent_id=first)["id"]
    below = alice.add_comment(post, "c", parent_id=reply)["id"]
    other = alice.add_comment(post, "d")["id"]
    threads = threads_of(app)
    assert {threads[id] for id in (first, reply, below)} == {threads[first]}
    assert threads[first][0] == first
    assert threads[other][0] == other


def test_a_comment_that_is_inserted_without_a_thread_gets_one(app, alice, post):
    first = alice.add_comment(post, "a")["id"]
    reply = alice.add_comment(post, "b", parent_id=first)["id"]
    added, answer = new_id(), new_id()
    with app.app_context():
        for id, parent in ((added, None), (answer, reply)):
            with transaction() as connection:
                connection.execute(INSERT, {"id": id, "parent": parent, "other": first})
    threads = threads_of(app)
    assert threads[added] == (added, threads[first][1])
    assert threads[answer] == threads[first]
