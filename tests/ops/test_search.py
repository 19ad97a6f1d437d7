"""`flask search rebuild`."""

import pytest
import sqlalchemy as sa

from posting.comments.models import Comment
from posting.db.base import db
from posting.db.transactions import transaction
from posting.db.types import now
from posting.indexes import INDEXES
from posting.posts.models import Post
from posting.topics.models import PostTopic
from tests.helpers.assertions import assert_consistent, assert_indexed


@pytest.mark.parametrize(
    "wrong",
    [
        {"comment_count": 7},
        {"image_count": 7},
        {"last_comment_at": None},
        {"last_comment_at": now()},
        {"heart": 7},
        {"has_topics": False},
    ],
)
def test_what_a_post_says_about_other_rows_is_corrected(flask, app, alice, owner, wrong):
    topic = owner.post("/topics", json={"name": "Looms", "color": "green"}).json["id"]
    posts = [alice.create_post(title, topics=[topic]) for title in ("One", "Two", "Three")]
    alice.put(f"/posts/{posts[0]['id']}/reactions/heart")
    for post in posts[:2]:
        comment = alice.add_comment(post, "A comment")
        alice.add_comment(post, "A reply", parent_id=comment["id"])
        owner.delete(f"/comments/{comment['id']}")  # which becomes a placeholder
    before = alice.get("/posts?expand=content").json
    with app.app_context(), transaction() as connection:
        connection.execute(sa.update(Post).values(wrong))
        connection.execute(sa.update(PostTopic).values(last_activity_at=now()))
    code, output = flask("search", "rebuild")
    assert (code, output) == (0, "Indexed 3 posts, 2 comments and 2 users.\n")
    assert alice.get("/posts?expand=content").json == before
    with app.app_context(), db.engine.connect() as connection:
        assert_consistent(connection)


def test_what_a_comment_says_about_reactions_is_corrected(flask, app, alice, post):
    comment = alice.add_comment(post, "A comment")
    before = alice.put(f"/comments/{comment['id']}/reactions/heart").json
    with app.app_context(), transaction() as connection:
        connection.execute(sa.update(Comment).values(heart=0, party=1))
    assert flask("search", "rebuild")[0] == 0
    assert alice.get(f"/comments/{comment['id']}").json["reactions"] == before
    with app.app_context(), db.engine.connect() as connection:
        assert_consistent(connection)


def test_all_indexes_are_filled_again(flask, app, alice, post):
    alice.add_comment(post, "A comment")
    with app.app_context(), transaction() as connection:
        for index in INDEXES:
            index.clear(connection)
    assert flask("search", "rebuild")[0] == 0
    with app.app_context(), db.engine.connect() as connection:
        assert_indexed(connection)
